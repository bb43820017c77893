"""Models and prompt-cache files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Literal

from . import _arguments, _native
from ._download_line import DownloadLine
from .tokenizer import Tokenizer

#: Called with the file that comes now (empty: none yet), and of all files the
#: bytes that are here and those there are (0: not known).
DownloadProgress = Callable[[str, int, int], object]


def load(
    path_or_hf_repo: str | os.PathLike[str],
    *,
    backend: Literal["cpu", "mlx"] = "cpu",
    activations: Literal["int16", "int8", "f32"] | None = None,
    threads: int = 0,
    chat_template: str = "",
    prompt_cache_dir: str | os.PathLike[str] | None = None,
    prompt_cache_bytes: int | None = None,
    prompt_cache_size: int | None = None,
    prompt_cache_disk_bytes: int | None = None,
    prompt_cache_ttl: float = 0.0,
    memory_limit: int | None = None,
    progress: DownloadProgress | None = None,
) -> tuple[_native.Model, Tokenizer]:
    """Loads a model: a GGUF file, a directory with safetensors, or the name of
    one on the Hugging Face hub ("org/name"), which is downloaded unless it is
    in the hub's cache.

    activations: of the CPU; "int16" unless given. threads: 0 is one for each
    core. chat_template: in place of the model's own. prompt_cache_dir: where
    prompts are kept over restarts; with None they are kept in memory only, at
    most prompt_cache_bytes (a quarter of the memory) and prompt_cache_size
    prompts. prompt_cache_ttl: seconds since the last use; 0: for ever.
    progress: of a download; by default it is shown on stderr when that is a
    terminal.
    Raises: FileNotFoundError, ValueError, OSError and Error, saying what is
    wrong with which file.
    """

    def limit(name: str, value: int | None) -> int | None:
        return None if value is None else _arguments.integer(name, value)

    line: DownloadLine | None = None
    if progress is None and sys.stderr is not None and sys.stderr.isatty():
        line = DownloadLine(sys.stderr)
    try:
        model = _native.load(
            os.fspath(path_or_hf_repo),
            backend=backend,
            activations=activations,
            threads=_arguments.integer("threads", threads),
            chat_template=chat_template,
            prompt_cache_dir=os.fspath(prompt_cache_dir or ""),
            prompt_cache_bytes=limit("prompt_cache_bytes", prompt_cache_bytes),
            prompt_cache_size=limit("prompt_cache_size", prompt_cache_size),
            prompt_cache_disk_bytes=limit(
                "prompt_cache_disk_bytes", prompt_cache_disk_bytes
            ),
            prompt_cache_ttl=_arguments.number(
                "prompt_cache_ttl", prompt_cache_ttl
            ),
            memory_limit=limit("memory_limit", memory_limit),
            progress=progress or line,
        )
    finally:
        if line is not None:
            line.end()
    return model, Tokenizer(model)


def save_cache(
    cache: _native.CacheHistory,
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes a history to one safetensors file, which mlx_lm's
    load_prompt_cache opens, too. An older file is replaced only when all is
    written.

    metadata: strings that are kept; "model_id" is the model's field.
    Raises: ValueError for an empty history or a name the format needs itself;
    OSError.
    """
    all_ = dict(metadata or {})
    for name, value in all_.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"metadata must be strings, not {name}: {value}")
    _native.save_cache(os.fspath(filename), cache, all_)


def load_cache(
    filename: str | os.PathLike[str],
) -> tuple[_native.CacheHistory, dict[str, str]]:
    """Reads a file of save_cache, or of mlx_lm's save_prompt_cache: the history
    and the metadata. A prompt continues a file of mlx_lm, which does not say
    which tokens it holds, instead of beginning like it.

    Raises: FileNotFoundError, OSError, and Error for a damaged file.
    """
    return _native.load_cache(os.fspath(filename))
