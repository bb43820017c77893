"""Looks into block files from outside, as any safetensors reader would."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Block:
    path: Path
    start: int  # position of its first token
    count: int  # tokens
    data: int  # offset of the tensors' bytes in the file


def read_block(path: Path) -> Block:
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    metadata = header["__metadata__"]
    return Block(
        path, int(metadata["start"]), int(metadata["n"]), 8 + length
    )


def blocks(cache_dir: Path) -> list[Block]:
    """All block files below a cache directory, by position."""
    paths = cache_dir.glob("v1/*/blocks/*.safetensors")
    return sorted(map(read_block, paths), key=lambda block: block.start)


def flip_byte(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x40]))


def truncate(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)
