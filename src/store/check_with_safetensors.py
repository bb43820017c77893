"""Opens the golden block file with the safetensors package, which knows
nothing of Afterglow, and checks what it sees."""

import pathlib
import sys

import numpy as np
from safetensors import safe_open


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    (path,) = folder.glob("format1-*.safetensors")
    with safe_open(path, framework="numpy") as file:
        meta = file.metadata()
        assert list(sorted(meta)) == [
            "fingerprint", "format", "n", "parent", "spec", "start", "sum",
            "sums",
        ], meta
        n, width = int(meta["n"]), 128
        assert (n, meta["start"], meta["format"]) == (70, "512", "1"), meta
        shapes = {name: file.get_tensor(name).shape for name in file.keys()}
        assert shapes == {
            "tokens": (256,),
            "layers.0.k": (2, 8, width),
            "layers.0.v": (2, width, 8),
            "layers.1.k": (1, 4, width),
            "layers.1.v": (1, width, 8),
        }, shapes
        tokens = file.get_tensor("tokens")
        assert tokens.dtype == np.uint32
        assert tokens[:n].any() and not tokens[n:].any()
        for layer, dtype in enumerate((np.float16, np.float32)):
            k = file.get_tensor(f"layers.{layer}.k")
            v = file.get_tensor(f"layers.{layer}.v")
            assert k.dtype == v.dtype == dtype
            # Columns without a token are zeros, the others are not.
            assert not k[:, :, n:].view(np.uint8).any()
            assert not v[:, n:, :].view(np.uint8).any()
            assert k[:, :, :n].view(np.uint8).any()
    print("ok:", path.name)


if __name__ == "__main__":
    main()
