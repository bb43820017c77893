"""Makes the prompt-cache files that mlx_cache_file_test.cpp reads.

Written by mlx_lm 0.32.2 itself, but for the older layout, whose tree of
metadata is spelled out here.

    python make_mlx_caches.py
"""

from pathlib import Path

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models.cache import (
    KVCache,
    QuantizedKVCache,
    RotatingKVCache,
    save_prompt_cache,
)

HERE = Path(__file__).parent
TOKENS = 5
LAYERS = [(2, 8, 8), (1, 4, 8)]  # kv_heads, k_dim, v_dim
METADATA = {"model": "a/b", "tokenizer_config": '{"eos_token": "<é>"}'}


def values(layer, is_v, heads, dim, dtype):
    """Exact in all types: multiples of 1/8 below 16."""
    rows = [
        [
            [(layer + 2 * is_v + 4 * head + t + d) / 8 for d in range(dim)]
            for t in range(TOKENS)
        ]
        for head in range(heads)
    ]
    return mx.array([rows]).astype(dtype)


def caches(dtype, kind=KVCache):
    made = []
    for layer, (heads, k_dim, v_dim) in enumerate(LAYERS):
        cache = kind()
        cache.step = 8  # keeps the files small
        cache.update_and_fetch(
            values(layer, 0, heads, k_dim, dtype),
            values(layer, 1, heads, v_dim, dtype),
        )
        made.append(cache)
    return made


def save_old(path, made):
    data = dict(
        tree_flatten(
            [
                (c.keys[..., : c.offset, :], c.values[..., : c.offset, :])
                for c in made
            ]
        )
    )
    classes = ["KVCache" for _ in made]
    tree = [["" for _ in made], METADATA, classes]
    mx.save_safetensors(str(path), data, dict(tree_flatten(tree)))


def main():
    mx.set_default_device(mx.cpu)
    for name, dtype in (
        ("f16", mx.float16),
        ("bf16", mx.bfloat16),
        ("f32", mx.float32),
    ):
        path = HERE / f"mlx_cache_{name}.safetensors"
        save_prompt_cache(str(path), caches(dtype), METADATA)
    save_old(HERE / "mlx_cache_old.safetensors", caches(mx.float16))
    rotating = caches(mx.float16, lambda: RotatingKVCache(max_size=8))
    save_prompt_cache(
        str(HERE / "mlx_cache_rotating.safetensors"), rotating, METADATA
    )
    quantized = QuantizedKVCache(group_size=32, bits=8)
    quantized.step = 8
    quantized.update_and_fetch(
        mx.ones((1, 1, TOKENS, 32)), mx.ones((1, 1, TOKENS, 32))
    )
    save_prompt_cache(
        str(HERE / "mlx_cache_quantized.safetensors"), [quantized], METADATA
    )


if __name__ == "__main__":
    main()
