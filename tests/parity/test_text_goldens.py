"""The goldens of src/text are what the packages give today, and what
llama.cpp gives where its tokenizers claim the same."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

# Texts where llama.cpp differs from Hugging Face by design: it has no NFC,
# and pieces of its own for letters that are no bytes.
ORDINARY = [
    "",
    "Hello, world!",
    " leading and trailing ",
    "I'm you're he's they'll we've I'd can't DON'T",
    "1 12 123 1234 12345 3.14159",
    "a\nb\n\nc\n\n\nd  e   f\t\tg\r\n",
    "def f(x):\n    return x ** 2\n",
    "caf\u00e9 stra\u00dfe \u4f60\u597d \u65e5\u672c\u8a9e \ud55c\uad6d",
    "\u0440\u0443\u0441\u0441\u043a\u0438\u0439 \U0001f600 \U0001f44d",
    "!?... --- (a) [b] {c} $x ~y `z` <=> a_b-c/d",
    "x" * 200,
]


def test_goldens_are_what_the_packages_give():
    for package in ("tokenizers", "transformers", "gguf"):
        pytest.importorskip(package)
    run = subprocess.run(
        [sys.executable, str(HERE / "text_goldens.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def llama():
    llama_cpp = pytest.importorskip("llama_cpp")
    goldens = pytest.importorskip("text_goldens")
    path = goldens.model_path()
    if path is None:
        pytest.skip("set AFTERGLOW_MODEL to the default model's file")
    return llama_cpp.Llama(str(path), vocab_only=True, verbose=False), path


@pytest.mark.parametrize("special", [False, True])
def test_real_model_ids_equal_llama_cpp(llama, special):
    import text_goldens

    model, path = llama
    fields = text_goldens.gguf_fields(path)
    ours = text_goldens.byte_level_bpe(
        fields["tokenizer.ggml.tokens"],
        fields["tokenizer.ggml.merges"],
        fields["tokenizer.ggml.token_type"],
        text_goldens.pre_tokenizer_of()["smollm"],
    )
    ours.encode_special_tokens = not special
    for text in [*ORDINARY, "<|im_start|>user\nhi<|im_end|>\n"]:
        theirs = model.tokenize(
            text.encode(), add_bos=False, special=special
        )
        assert ours.encode(text, add_special_tokens=False).ids == theirs, text


def write_vocab(path: Path, pre: str, tokens, merges, types) -> None:
    import gguf

    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(64)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


@pytest.mark.parametrize(
    "pre",
    ["gpt-2", "smollm", "starcoder", "refact", "command-r", "llama-bpe",
     "qwen2", "tekken", "gpt-4o", "falcon", "deepseek-coder", "deepseek-v3"],
)  # fmt: skip
def test_pre_tokenizers_equal_llama_cpp(pre, tmp_path):
    for package in ("llama_cpp", "gguf", "tokenizers"):
        pytest.importorskip(package)
    import json

    import llama_cpp
    import text_goldens

    tiny = json.loads(text_goldens.TINY_BPE.read_text())["model"]
    tokens = sorted(tiny["vocab"], key=tiny["vocab"].get)
    merges = [" ".join(merge) for merge in tiny["merges"]]
    types = [text_goldens.CONTROL] * 3
    types += [text_goldens.NORMAL] * (len(tokens) - 3)
    path = tmp_path / "vocab.gguf"
    write_vocab(path, pre, tokens, merges, types)
    theirs = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    ours = text_goldens.byte_level_bpe(
        tokens, merges, types, text_goldens.pre_tokenizer_of()[pre]
    )
    for text in [*ORDINARY, " ".join(text_goldens.TRAINING[:15])]:
        # Falcon's tokenizer.json looks for digits in the characters that
        # stand for bytes, such as U+00B2, which llama.cpp does not.
        if pre == "falcon" and not text.isascii():
            continue
        wanted = theirs.tokenize(text.encode(), add_bos=False, special=False)
        got = ours.encode(text, add_special_tokens=False).ids
        assert got == wanted, text
