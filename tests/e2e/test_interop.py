"""Prompt-cache files go to mlx_lm and come from it.

mlx_lm computes with the same weights, dequantized to f32; nothing of
Afterglow takes part in that. It is slow on a CPU, so prompts are short.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from cache_tool import Outcome, entries, tool
from serving import MODEL, PROGRAM, ROOT, Server, ServerError

sys.path.insert(0, str(ROOT / "tests" / "parity"))

mx = pytest.importorskip("mlx.core")
cache_prompt = pytest.importorskip("mlx_lm.cache_prompt")
mlx_generate = pytest.importorskip("mlx_lm.generate")
oracle_smollm2 = pytest.importorskip("oracle_smollm2")

import text_goldens  # noqa: E402
from mlx_lm.models.cache import (  # noqa: E402
    load_prompt_cache,
    save_prompt_cache,
    trim_prompt_cache,
)
from mlx_lm.tokenizer_utils import TokenizerWrapper  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402

EXACT = ("--activations", "f32")
PROMPT = (
    "Captain's log: the old lighthouse keeper counted seven ships in the "
    "harbour on Monday."
)
OTHER_WORD = PROMPT.replace("Monday", "Friday")
QUESTION = " How many ships did the keeper count?"


@dataclass
class Oracle:
    model: object
    tokenizer: TokenizerWrapper

    def greedy(self, cache, token: int, count: int) -> list[int]:
        tokens = []
        for _ in range(count):
            logits = self.model(mx.array([[token]]), cache=cache)
            token = int(mx.argmax(logits[0, -1]).item())
            tokens.append(token)
        return tokens


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    mx.set_default_device(mx.cpu)
    fields = text_goldens.gguf_fields(MODEL)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=text_goldens.byte_level_bpe(
            fields["tokenizer.ggml.tokens"],
            fields["tokenizer.ggml.merges"],
            fields["tokenizer.ggml.token_type"],
            text_goldens.pre_tokenizer_of()[fields["tokenizer.ggml.pre"]],
        ),
        chat_template=fields["tokenizer.chat_template"],
        eos_token="<|im_end|>",
    )
    return Oracle(oracle_smollm2.load(MODEL), TokenizerWrapper(tokenizer))


@pytest.fixture(scope="module")
def mlx_file(oracle: Oracle, tmp_path_factory) -> Path:
    """What mlx_lm.cache_prompt writes for PROMPT."""
    path = tmp_path_factory.mktemp("mlx") / "prompt.safetensors"
    patch = pytest.MonkeyPatch()
    with patch.context() as patched:
        patched.setattr(
            cache_prompt,
            "load",
            lambda *_, **__: (oracle.model, oracle.tokenizer),
        )
        arguments = ["--model", "oracle", "--prompt", PROMPT]
        arguments += ["--prompt-cache-file", str(path)]
        patched.setattr(sys, "argv", ["cache_prompt", *arguments])
        cache_prompt.main()
    return path


@pytest.fixture
def mlx_lm_answer(oracle: Oracle, monkeypatch, capsys):
    """What mlx_lm.generate prints for these flags."""

    def answer(*flags, model: str = "oracle") -> str:
        monkeypatch.setattr(
            mlx_generate,
            "load",
            # A tokenizer of its own, for it keeps further end tokens.
            lambda *_, **__: (
                oracle.model,
                TokenizerWrapper(oracle.tokenizer._tokenizer),
                {},
            ),
        )
        arguments = ["generate", "--model", model, "--verbose", "False"]
        arguments += ["--max-tokens", "24", *map(str, flags)]
        monkeypatch.setattr(sys, "argv", arguments)
        capsys.readouterr()
        mlx_generate.main()
        return capsys.readouterr().out

    return answer


def our_answer(*flags) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [PROGRAM, "generate", "--model", MODEL, *EXACT]
        + ["--max-tokens", "24", *flags],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done


def import_file(path: Path, cache_dir: Path, *flags, status=0) -> Outcome:
    return tool(
        *("import", path, "--model", MODEL, "--json", *flags),
        cache=cache_dir,
        status=status,
    )


def export_file(entry: str, path: Path, cache_dir: Path) -> Path:
    tool("export", "--entry", entry, "--output", path, cache=cache_dir)
    return path


def test_export_goes_on_in_mlx_lm(oracle: Oracle, cache_dir: Path, tmp_path):
    with Server(*EXACT, cache=cache_dir) as server:
        answer = server.chat("Name three colours.", max_tokens=12)
        server.flush()
    assert answer.completion_tokens == 12
    (entry,) = [e for e in entries(cache_dir) if e["type"] == "assistant"]
    path = export_file(entry["id"], tmp_path / "out.safetensors", cache_dir)
    assert path.stat().st_mode & 0o777 == 0o600

    cache, metadata = load_prompt_cache(str(path), return_metadata=True)
    tokens = [int(t) for t in metadata["afterglow"]["tokens"].split()]
    assert json.loads(metadata["tokenizer_config"]) == {}
    prompt = answer.prompt_tokens
    # The last token of the answer was never read, so it is not in the file.
    assert len(tokens) == prompt + 11
    assert all(c.offset == len(tokens) for c in cache)
    # mlx_lm goes on from the third token of the answer, on our KV.
    trim_prompt_cache(cache, len(tokens) - (prompt + 2))
    went_on = oracle.greedy(cache, tokens[prompt + 2], 7)
    assert went_on == tokens[prompt + 3 : prompt + 10]
    text = oracle.tokenizer.decode(tokens[prompt:])
    assert answer.text.startswith(text)


def test_mlx_lm_file_serves_chats_that_begin_with_its_prompt(
    mlx_file: Path, cache_dir: Path, cold_chat
):
    imported = import_file(
        mlx_file, cache_dir, "--prompt", PROMPT, *EXACT
    ).json
    assert imported["pinned"] and not imported["own"]
    length = imported["tokens"]
    assert imported["checked_tokens"] == length
    # Both compute in f32.
    assert imported["worst_difference"] < 1e-3, imported
    for question in (QUESTION, " Who counted them, and when?"):
        cold = cold_chat(PROMPT + question, flags=EXACT)
        assert cold.cached_tokens == 0
        with Server(*EXACT, cache=cache_dir) as server:
            warm = server.chat(PROMPT + question)
            assert warm.cached_tokens == length
            assert warm.timings["cache_disk_n"] == length
            assert warm.text == cold.text
            # The next turn goes on where this one was recorded.
            more = server.chat(PROMPT + question, warm.text, "Why?")
            assert more.cached_tokens > warm.prompt_tokens
            assert server.terminate() == 0
        kept = [e for e in entries(cache_dir) if e["pinned"]]
        assert [e["tokens"] for e in kept] == [length]


def test_wrong_prompts_are_refused(mlx_file: Path, cache_dir: Path):
    def refused(*flags) -> str:
        return import_file(mlx_file, cache_dir, *EXACT, *flags, status=1).err

    message = refused("--prompt", OTHER_WORD)
    assert "is not this model's cache of this prompt" in message
    message = refused("--prompt", PROMPT + " And then?")
    assert "tokens, but the prompt has" in message
    message = refused()
    assert f"afterglow cache import '{mlx_file}' --prompt" in message
    assert entries(cache_dir) == []


@pytest.mark.parametrize("activations", ["int16", "int8"])
def test_other_roundings_are_told_from_other_prompts(
    oracle: Oracle, mlx_file: Path, cache_dir: Path, tmp_path, activations
):
    """The file in f16, the model with rounded inputs."""
    cache, metadata = load_prompt_cache(str(mlx_file), return_metadata=True)
    for layer in cache:
        layer.keys = layer.keys.astype(mx.float16)
        layer.values = layer.values.astype(mx.float16)
    path = tmp_path / "f16.safetensors"
    save_prompt_cache(str(path), cache, metadata)
    flags = ("--activations", activations)
    imported = import_file(path, cache_dir, "--prompt", PROMPT, *flags).json
    print(activations, imported)
    assert 0 < imported["mean_difference"] < 0.05
    refused = import_file(
        path, cache_dir, "--prompt", OTHER_WORD, *flags, status=1
    )
    assert "is not this model's cache of this prompt" in refused.err


def test_exported_file_is_preloaded_by_a_server(
    cache_dir: Path, tmp_path, cold_chat
):
    question = "What colour is the sea?"
    with Server(*EXACT, cache=cache_dir) as server:
        server.chat(question)
        server.flush()
    (entry,) = [e for e in entries(cache_dir) if e["type"] == "assistant"]
    path = export_file(entry["id"], tmp_path / "sea.safetensors", cache_dir)
    cold = cold_chat(question, flags=EXACT)
    fresh = tmp_path / "fresh"
    for cache in (None, fresh):
        with Server(
            *EXACT, "--prompt-cache-file", path, cache=cache
        ) as server:
            warm = server.chat(question)
            assert warm.cached_tokens == warm.prompt_tokens - 1
            assert warm.timings["cache_ram_n"] == warm.cached_tokens
            assert warm.text == cold.text
            server.terminate()
    assert any(e["pinned"] for e in entries(fresh))


def test_generate_goes_on_where_a_file_ends(
    mlx_file: Path, cache_dir: Path, tmp_path, cold_chat
):
    """As mlx_lm.generate does; the file was mlx_lm's and then exported."""
    imported = import_file(
        mlx_file, cache_dir, "--prompt", PROMPT, *EXACT
    ).json
    path = export_file(imported["id"], tmp_path / "out.safetensors", cache_dir)
    done = our_answer("--prompt-cache-file", path, "--prompt", QUESTION)
    cold = cold_chat(PROMPT + QUESTION, flags=EXACT)
    assert done.stdout == cold.text + "\n"
    tokens = f"{cold.prompt_tokens} tokens ({imported['tokens']} cached)"
    assert tokens in done.stderr


def test_prompts_are_those_of_mlx_lm(mlx_lm_answer):
    for flags in (
        ("--prompt", PROMPT),
        ("--prompt", PROMPT, "--system-prompt", "You are a pirate."),
        ("--prompt", PROMPT, "--prefill-response", "The captain saw "),
        ("--prompt", PROMPT, "--ignore-chat-template"),
        ("--prompt", PROMPT, "--extra-eos-token", "29", "30"),
    ):
        assert our_answer(*flags).stdout == mlx_lm_answer(*flags), flags


@pytest.mark.parametrize(
    "flags", [(), ("--ignore-chat-template",), ("--extra-eos-token", "28")]
)
def test_generate_continues_a_file_of_mlx_lm(
    mlx_file: Path, mlx_lm_answer, flags
):
    flags = ("--prompt-cache-file", mlx_file, "--prompt", QUESTION, *flags)
    ours = our_answer(*flags)
    assert ours.stdout == mlx_lm_answer(*flags)
    # The file cannot tell, and its model goes by another name.
    assert "was made with the model 'oracle'" in ours.stderr
    counted = re.search(r"Prompt: (\d+) tokens \((\d+) cached", ours.stderr)
    tokens, cached = map(int, counted.groups())
    held = load_prompt_cache(str(mlx_file))[0].offset
    assert cached == held < tokens


def test_mlx_lm_continues_a_file_of_cache_prompt(
    mlx_file: Path, mlx_lm_answer, tmp_path
):
    path = tmp_path / "ours.safetensors"
    done = subprocess.run(
        [PROGRAM, "cache-prompt", "--model", MODEL, *EXACT]
        + ["--prompt", PROMPT, "--prompt-cache-file", path],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    cache, metadata = load_prompt_cache(str(path), return_metadata=True)
    assert metadata["model"] == str(MODEL)
    for ours, theirs in zip(cache, load_prompt_cache(str(mlx_file))):
        assert ours.offset == theirs.offset
        for one, other in (
            (ours.keys, theirs.keys), (ours.values, theirs.values)
        ):  # fmt: skip
            held = other[..., : theirs.offset, :]  # of a longer buffer
            assert mx.allclose(one, held, atol=1e-3).item()
    flags = ("--prompt-cache-file", path, "--prompt", QUESTION)
    theirs = mlx_lm_answer(*flags, model=str(MODEL))
    assert our_answer(*flags).stdout == theirs
    # The file names its model, which is ours by its fingerprint.
    assert "was made with" not in our_answer(*flags).stderr


def test_a_server_says_what_to_do_with_a_file_of_mlx_lm(mlx_file: Path):
    with pytest.raises(ServerError) as failure:
        Server("--prompt-cache-file", mlx_file)
    assert f"afterglow cache import '{mlx_file}' --prompt" in str(
        failure.value
    )
