#!/usr/bin/env python3
"""Writes a model of about 1 billion random 4-bit weights, to measure with.

    scripts/make_random_model.py OUTPUT.gguf [--type q4_0] [--layers 8] ...

A GGUF file of architecture llama in the shape of Llama 3.2 1B, with the
tokenizer of another GGUF file. Its numbers are random, but scaled so that
activations stay of order one; what it says is noise. The same seed gives the
same bytes. Needs numpy only, and seconds.
"""

import argparse
import os
import struct
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TOKENIZER = ROOT / "build/models/SmolLM2-135M-Instruct.Q4_1.gguf"
ALIGNMENT = 32
GROUP = 32

# Of GGUF: the types of fields and their sizes, the types of tensors.
# Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
UINT32, FLOAT32, STRING, ARRAY = 4, 6, 8, 9
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
F32, Q4_0, Q4_1, Q8_0 = 0, 2, 3, 8
FILE_TYPES = {Q4_0: 2, Q4_1: 3}


class Fields:
    """The fields at the head of a GGUF file, each as the bytes it has."""

    def __init__(self, path: Path):
        self._data = memoryview(path.read_bytes())
        self._at = 0
        if bytes(self._take(4)) != b"GGUF":
            raise SystemExit(f"{path} is no GGUF file")
        self._number("I")
        self._number("Q")
        self.raw: dict[str, bytes] = {}
        for _ in range(self._number("Q")):
            start = self._at
            name = self._string()
            self._skip(self._number("I"))
            self.raw[name] = bytes(self._data[start : self._at])

    def array_length(self, name: str) -> int:
        """Of an array field: key length, key, type, element type, length."""
        at = 8 + len(name) + 4 + 4
        return struct.unpack_from("<Q", self.raw[name], at)[0]

    def _take(self, count: int):
        self._at += count
        return self._data[self._at - count : self._at]

    def _number(self, kind: str) -> int:
        return struct.unpack("<" + kind, self._take(struct.calcsize(kind)))[0]

    def _string(self) -> str:
        return bytes(self._take(self._number("Q"))).decode()

    def _skip(self, kind: int) -> None:
        if kind == STRING:
            self._take(self._number("Q"))
        elif kind == ARRAY:
            element, count = self._number("I"), self._number("Q")
            if element in SIZES:
                self._take(SIZES[element] * count)
            else:
                for _ in range(count):
                    self._skip(element)
        else:
            self._take(SIZES[kind])


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def field(name: str, value) -> bytes:
    if isinstance(value, str):
        return text(name) + struct.pack("<I", STRING) + text(value)
    if isinstance(value, float):
        return text(name) + struct.pack("<If", FLOAT32, value)
    return text(name) + struct.pack("<II", UINT32, value)


class Weights:
    """Random blocks of a tensor type whose weights have a deviation."""

    def __init__(self, seed: int):
        self._draw = np.random.Generator(np.random.SFC64(seed))

    def _blocks(self, rows: int, cols: int, code_bytes: int, head) -> np.ndarray:
        count = rows * cols // GROUP
        blocks = np.empty((count, head.nbytes + code_bytes), np.uint8)
        blocks[:, : head.nbytes] = head.view(np.uint8)
        codes = self._draw.integers(
            0, 2**64, count * code_bytes // 8, dtype=np.uint64
        )
        blocks[:, head.nbytes :] = codes.view(np.uint8).reshape(count, -1)
        return blocks

    def make(self, kind: int, rows: int, cols: int, deviation: float):
        if kind == F32:
            return np.ones(cols, np.float32)
        # Codes are spread evenly over 2^bits values of this deviation.
        scale = deviation / np.sqrt((4.0**self.bits(kind) - 1) / 12)
        if kind == Q4_1:
            head = np.array([scale, -7.5 * scale], np.float16)
            return self._blocks(rows, cols, 16, head)
        head = np.array([scale], np.float16)
        return self._blocks(rows, cols, 16 if kind == Q4_0 else 32, head)

    @staticmethod
    def bits(kind: int) -> int:
        return 8 if kind == Q8_0 else 4

    @staticmethod
    def bytes_of(kind: int, rows: int, cols: int) -> int:
        if kind == F32:
            return 4 * cols
        return rows * cols // GROUP * {Q4_0: 18, Q4_1: 20, Q8_0: 34}[kind]


def tensors(shape, kind: int, vocab: int) -> list[tuple]:
    """Name, type, rows, cols and the deviation of the weights."""
    hidden, inner = shape.hidden, shape.intermediate
    kv = shape.kv_heads * shape.head_dim
    query = shape.heads * shape.head_dim
    # What is added to the residual stream stays small against it.
    added = (2 * shape.layers) ** -0.5

    def linear(name, rows, cols, factor=1.0):
        return (f"{name}.weight", kind, rows, cols, factor * cols**-0.5)

    def norm(name):
        return (f"{name}.weight", F32, 1, hidden, 0)

    found = [("token_embd.weight", Q8_0, vocab, hidden, hidden**-0.5)]
    for layer in range(shape.layers):
        at = f"blk.{layer}."
        found += [
            norm(at + "attn_norm"),
            linear(at + "attn_q", query, hidden),
            linear(at + "attn_k", kv, hidden),
            linear(at + "attn_v", kv, hidden),
            linear(at + "attn_output", hidden, query, added),
            norm(at + "ffn_norm"),
            linear(at + "ffn_gate", inner, hidden),
            linear(at + "ffn_up", inner, hidden),
            linear(at + "ffn_down", hidden, inner, added),
        ]
    return found + [norm("output_norm")]


def head(shape, kind: int, source: Fields, layout: list[tuple]) -> bytes:
    count = sum(rows * cols for _, _, rows, cols, _ in layout)
    fields = {
        "general.architecture": "llama",
        "general.name": f"random-{count / 1e9:.1f}B",
        "general.file_type": FILE_TYPES[kind],
        "general.quantization_version": 2,
        "llama.block_count": shape.layers,
        "llama.context_length": shape.context,
        "llama.embedding_length": shape.hidden,
        "llama.feed_forward_length": shape.intermediate,
        "llama.attention.head_count": shape.heads,
        "llama.attention.head_count_kv": shape.kv_heads,
        "llama.attention.key_length": shape.head_dim,
        "llama.attention.value_length": shape.head_dim,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": shape.head_dim,
        "llama.rope.freq_base": 500000.0,
        "llama.vocab_size": source.array_length("tokenizer.ggml.tokens"),
    }
    parts = [field(name, value) for name, value in fields.items()]
    parts += [v for k, v in source.raw.items() if k.startswith("tokenizer.")]
    out = b"GGUF" + struct.pack("<IQQ", 3, len(layout), len(parts))
    out += b"".join(parts)
    offset = 0
    for name, tensor_kind, rows, cols, _ in layout:
        dims = [cols] if tensor_kind == F32 else [cols, rows]
        out += text(name) + struct.pack("<I", len(dims))
        out += struct.pack(f"<{len(dims)}Q", *dims)
        out += struct.pack("<IQ", tensor_kind, offset)
        offset = padded(offset + Weights.bytes_of(tensor_kind, rows, cols))
    return out.ljust(padded(len(out)), b"\0")


def padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def write(shape) -> int:
    kind = {"q4_0": Q4_0, "q4_1": Q4_1}[shape.type]
    source = Fields(Path(shape.tokenizer))
    vocab = source.array_length("tokenizer.ggml.tokens")
    layout = tensors(shape, kind, vocab)
    weights = Weights(shape.seed)
    target = Path(shape.output)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    with part.open("wb") as file:
        file.write(head(shape, kind, source, layout))
        for _, tensor_kind, rows, cols, deviation in layout:
            data = weights.make(tensor_kind, rows, cols, deviation)
            file.write(data.data)
            file.write(b"\0" * (padded(data.nbytes) - data.nbytes))
    os.replace(part, target)
    return sum(rows * cols for _, _, rows, cols, _ in layout)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("output")
    parser.add_argument("--type", choices=["q4_0", "q4_1"], default="q4_1")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--intermediate", type=int, default=8192)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--kv-heads", type=int, default=8)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--tokenizer", default=str(TOKENIZER), help="take it from this GGUF"
    )
    shape = parser.parse_args()
    count = write(shape)
    size = Path(shape.output).stat().st_size
    print(f"{shape.output}: {count / 1e9:.2f} B weights, {size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
