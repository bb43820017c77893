"""Generating text, in the manner of mlx_lm."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

import numpy as np

from . import _arguments, _native
from ._error import Error
from ._native import CacheHistory, LogitsStream, Model
from .sample_utils import (
    Floats,
    LogitsProcessor,
    Penalties,
    Sampler,
    SamplerFunction,
    Tokens,
    call_processors,
    call_sampler,
    to_params,
)
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Tokens of the prompt that are read, and all.
Progress = Callable[[int, int], object]


class Options(TypedDict, total=False):
    """What stream_generate and generate take besides.

    max_tokens: at most so many; -1: as many as the context holds. 256 unless
    given. sampler, logits_processors: of sample_utils, or functions. stop:
    texts that end the answer and are left out. cache_history: what may be
    continued; the prompt is the full prompt all the same. logprobs: outputs
    have logprobs. top_logprobs: how many of the most likely tokens outputs
    tell.
    """

    max_tokens: int
    sampler: Sampler | SamplerFunction | None
    logits_processors: Sequence[LogitsProcessor] | None
    stop: str | Iterable[str] | None
    cache_history: CacheHistory | None
    prompt_progress_callback: Progress | None
    logprobs: bool
    top_logprobs: int


@dataclass
class StepOutput:
    """What one step of a generation gave. The last one has a finish_reason:
    "stop", "length" or "cancelled".

    token: the one that ended the answer, too; -1: none. prompt_tps and
    generation_tps: tokens a second, prompt tokens that were computed.
    peak_memory: GB. cached_tokens: of the prompt's, not computed.
    """

    text: str
    token: int
    from_draft: bool
    prompt_tokens: int
    prompt_tps: float
    generation_tokens: int
    generation_tps: float
    peak_memory: float
    finish_reason: str | None
    cached_tokens: int
    top_logprobs: list[tuple[int, float]]
    cache_history: CacheHistory | None
    _logits: Floats | None = field(default=None, repr=False)
    _logprobs: Floats | None = field(default=None, repr=False)

    @property
    def logprobs(self) -> Floats:
        """Log-probabilities of all tokens, [vocab_size], behind the logits
        processors. Raises: ValueError without logprobs=True."""
        if self._logprobs is None:
            if self._logits is None:
                raise ValueError(
                    "the generation was not asked for log-probabilities, or "
                    "there is no token; generate with logprobs=True"
                )
            self._logprobs = _log_softmax(self._logits)
        return self._logprobs


@overload
def stream_generate(
    model: Model,
    tokenizer: Tokenizer,
    prompt: Any,
    *,
    verbose: bool = False,
    return_cache: Literal[False] = False,
    **options: Unpack[Options],
) -> Generator[StepOutput, None, None]: ...
@overload
def stream_generate(
    model: Model,
    tokenizer: Tokenizer,
    prompt: Any,
    *,
    verbose: bool = False,
    return_cache: Literal[True],
    **options: Unpack[Options],
) -> Generator[tuple[str, CacheHistory], None, None]: ...
def stream_generate(
    model: Model,
    tokenizer: Tokenizer,
    prompt: Any,
    *,
    verbose: bool = False,
    return_cache: bool = False,
    **options: Unpack[Options],
) -> (
    Generator[StepOutput, None, None]
    | Generator[tuple[str, CacheHistory], None, None]
):
    """Continues the prompt, token by token.

    prompt: text, integers, or a one-dimensional array of them. return_cache:
    gives pairs of text and history instead. verbose: a progress bar and
    statistics on stderr. See Options for the rest.
    Raises: ValueError, TypeError, Error; KeyboardInterrupt ends the answer,
    not the model.
    """
    outputs = _stream(
        "stream_generate",
        model,
        tokenizer,
        prompt,
        verbose,
        return_cache,
        options,
    )
    return _pairs(outputs) if return_cache else outputs


@overload
def generate(
    model: Model,
    tokenizer: Tokenizer,
    prompt: Any,
    verbose: bool = False,
    *,
    return_cache: Literal[False] = False,
    **options: Unpack[Options],
) -> str: ...
@overload
def generate(
    model: Model,
    tokenizer: Tokenizer,
    prompt: Any,
    verbose: bool = False,
    *,
    return_cache: Literal[True],
    **options: Unpack[Options],
) -> tuple[str, CacheHistory]: ...
def generate(
    model: Model,
    tokenizer: Tokenizer,
    prompt: Any,
    verbose: bool = False,
    *,
    return_cache: bool = False,
    **options: Unpack[Options],
) -> str | tuple[str, CacheHistory]:
    """The whole answer; with return_cache also what is known of it and its
    prompt. verbose: the text goes to stdout as it comes. The rest is as with
    stream_generate."""
    text = ""
    cache: CacheHistory | None = None
    for output in _stream(
        "generate", model, tokenizer, prompt, verbose, return_cache, options
    ):
        if verbose:
            end = "\n" if output.finish_reason else ""
            print(output.text, end=end, flush=True)
        text += output.text
        cache = output.cache_history
    if not return_cache:
        return text
    if cache is None:
        raise Error(
            "[generate] the model was closed before the generation began",
            "cancelled",
        )
    return text, cache


def generate_step(
    prompt: Any,
    model: Model,
    *,
    max_tokens: int = 256,
    sampler: Sampler | SamplerFunction | None = None,
    logits_processors: Sequence[LogitsProcessor] | None = None,
    prompt_progress_callback: Progress | None = None,
    cache_history: CacheHistory | None = None,
) -> Generator[tuple[int, Floats], None, None]:
    """Gives tokens with the log-probabilities of all, [vocab_size]. It does not
    end at tokens that end an answer. max_tokens: -1 has no end but the
    context's, which is a ValueError."""
    limit = _arguments.integer("max_tokens", max_tokens, -1)
    processors = list(logits_processors or ())
    chooser = Sampler() if sampler is None else sampler

    def steps() -> Generator[tuple[int, Floats], None, None]:
        count = 0
        with stream:
            while count != limit:
                logits = stream.logits()
                position = len(stream.tokens)
                if processors:
                    so_far = np.array(stream.tokens, dtype=np.int32)
                    call_processors(processors, so_far, logits)
                logprobs = _log_softmax(logits)
                if isinstance(chooser, Sampler):
                    token = chooser(logits, position)
                else:
                    token = call_sampler(chooser, logprobs)
                yield token, logprobs
                count += 1
                if count != limit:
                    stream.accept(token)

    stream = logits_stream(
        model,
        prompt,
        max_tokens=max(limit, 1) if limit != -1 else -1,
        cache_history=cache_history,
        prompt_progress_callback=prompt_progress_callback,
    )
    return steps()


def logits_stream(
    model: Model,
    prompt: Any,
    *,
    max_tokens: int = 256,
    cache_history: CacheHistory | None = None,
    prompt_progress_callback: Progress | None = None,
) -> LogitsStream:
    """Reads the prompt and gives logits, step by step, as arrays over the
    memory that they were computed into. max_tokens: how many are accepted at
    most, for which memory is set aside; -1: as many as the context holds."""
    limit = _arguments.integer("max_tokens", max_tokens, -1)
    if not isinstance(prompt, str):
        prompt = _arguments.tokens("prompt", prompt)
    return _native.logits_stream(
        model,
        prompt,
        cache_history,
        None if limit == -1 else limit,
        prompt_progress_callback,
    )


def _log_softmax(logits: Floats) -> Floats:
    most = logits.max()
    total = np.exp(logits - most, dtype=np.float32).sum(dtype=np.float64)
    return logits - np.float32(most + np.log(total))


def _pairs(
    outputs: Generator[StepOutput, None, None],
) -> Generator[tuple[str, CacheHistory], None, None]:
    try:
        for output in outputs:
            if output.cache_history is None:
                return  # the model was closed before it had begun
            yield output.text, output.cache_history
    finally:
        outputs.close()


def _stream(
    function: str,
    model: Model,
    tokenizer: Tokenizer,
    prompt: Any,
    verbose: bool,
    return_cache: bool,
    options: Options,
) -> Generator[StepOutput, None, None]:
    """Checks all now, and computes as the generator is asked."""
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        names = ", ".join(f"'{name}'" for name in unknown)
        raise TypeError(f"{function}() does not support {names}")
    if not isinstance(tokenizer, Tokenizer):
        kind = type(tokenizer).__name__
        raise TypeError(f"tokenizer must be the one load() gave, not {kind}")
    if tokenizer._model is not model:
        raise ValueError("the tokenizer is another model's")
    max_tokens = _arguments.integer(
        "max_tokens", options.get("max_tokens", 256), -1
    )
    if max_tokens == 0:
        raise ValueError("max_tokens must not be 0 (-1 is no limit)")

    system_tokens = getattr(prompt, "system_tokens", 0)
    if not isinstance(prompt, str):
        prompt = _arguments.tokens("prompt", prompt)
    sampler = options.get("sampler")
    if sampler is not None and not callable(sampler):
        raise TypeError("sampler must be a function or of make_sampler")
    processors = list(options.get("logits_processors") or ())
    penalties: Penalties | None = None
    # Those of the library come first: others behind them see their work.
    if processors and isinstance(processors[0], Penalties):
        penalties = processors[0]
        processors = processors[1:]
    own_sampler = sampler if isinstance(sampler, Sampler) else None
    function_ = None if own_sampler is sampler else sampler

    def choose(logprobs: Floats) -> int:
        assert function_ is not None
        return call_sampler(function_, logprobs)

    def process(tokens: Tokens, logits: Floats) -> None:
        call_processors(processors, tokens, logits)

    stream = _native.stream_generate(
        model,
        prompt,
        system_tokens=min(system_tokens, len(prompt)),
        max_tokens=None if max_tokens == -1 else max_tokens,
        sampling=to_params(own_sampler, penalties),
        sampler=choose if function_ is not None else None,
        processor=process if processors else None,
        stop=_arguments.texts("stop", options.get("stop")),
        stop_tokens=sorted(tokenizer._added_eos),
        cache_history=options.get("cache_history"),
        return_cache=bool(return_cache),
        logits=bool(options.get("logprobs", False)),
        top_logprobs=_arguments.integer(
            "top_logprobs", options.get("top_logprobs", 0)
        ),
        verbose=bool(verbose),
        progress=options.get("prompt_progress_callback"),
    )
    return _outputs(stream)


def _outputs(
    stream: _native.TextStream,
) -> Generator[StepOutput, None, None]:
    try:
        while (output := stream.next()) is not None:
            yield StepOutput(
                text=output.text,
                token=output.token,
                from_draft=False,
                prompt_tokens=output.prompt_tokens,
                prompt_tps=output.prompt_tps,
                generation_tokens=output.generation_tokens,
                generation_tps=output.generation_tps,
                peak_memory=output.peak_memory / 1e9,
                finish_reason=output.finish_reason,
                cached_tokens=output.cached_tokens,
                top_logprobs=output.top_logprobs,
                cache_history=output.cache_history,
                _logits=output.logits(),
            )
    finally:
        stream.close()
