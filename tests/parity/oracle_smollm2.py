"""Makes the golden files that the C++ tests compare a real model with.

The weights of a llama GGUF file are dequantized to f32 by the `gguf` package
and run through mlx_lm's own llama on MLX's CPU device, so nothing of
Afterglow takes part. Token ids come from llama.cpp's tokenizer.

    python tests/parity/oracle_smollm2.py MODEL.gguf

Writes tests/parity/golden/smollm2.safetensors (ids and logits of one prompt),
tests/parity/golden/smollm2_greedy.json (greedy continuations) and
tests/data/english.ids.json (token ids of tests/data/english.txt).
"""

import argparse
import json
import pathlib

import mlx.core as mx
import numpy as np
from gguf import GGUFReader, dequantize
from llama_cpp import Llama
from mlx_lm.models import llama
from mlx_lm.models.cache import make_prompt_cache
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "parity" / "golden"
TOP = 32
PROMPT_TOKENS = 64
GREEDY_TOKENS = 48

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
MODEL_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}

QUESTIONS = [
    "What is the capital of France?",
    "Write one sentence about the sea.",
    "How many legs does a spider have?",
    "Explain photosynthesis to a child.",
    "List three things to take on a hike.",
    "Translate 'good morning' into Spanish.",
    "Why is the sky blue?",
    "Give me a recipe for pancakes.",
    "Who wrote Hamlet?",
    "Write a short poem about a cat.",
]


def hf_name(name):
    stem, kind = name.rsplit(".", 1)
    if stem.startswith("blk."):
        _, layer, part = stem.split(".")
        return f"model.layers.{layer}.{LAYER_NAMES[part]}.{kind}"
    return f"{MODEL_NAMES[stem]}.{kind}"


def unpermute(rows, heads):
    """Rows of q or k from GGUF's order into HF's."""
    shape = rows.shape
    halves = rows.reshape(heads, shape[0] // heads // 2, 2, *shape[1:])
    return halves.swapaxes(1, 2).reshape(shape)


def load(path):
    reader = GGUFReader(path)

    def field(key):
        return reader.fields["llama." + key].contents()

    heads = field("attention.head_count")
    kv_heads = field("attention.head_count_kv")
    weights = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        values = values.astype(np.float32)
        name = hf_name(tensor.name)
        if ".q_proj." in name:
            values = unpermute(values, heads)
        if ".k_proj." in name:
            values = unpermute(values, kv_heads)
        weights[name] = mx.array(values)
    args = llama.ModelArgs(
        model_type="llama",
        hidden_size=field("embedding_length"),
        num_hidden_layers=field("block_count"),
        intermediate_size=field("feed_forward_length"),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        rms_norm_eps=field("attention.layer_norm_rms_epsilon"),
        vocab_size=weights["model.embed_tokens.weight"].shape[0],
        max_position_embeddings=field("context_length"),
        rope_theta=field("rope.freq_base"),
        tie_word_embeddings="lm_head.weight" not in weights,
    )
    model = llama.Model(args)
    model.load_weights(list(weights.items()), strict=True)
    mx.eval(model.parameters())
    return model


def greedy(model, prompt):
    """Greedy tokens and the smallest lead of the first over the second."""
    cache = make_prompt_cache(model)
    tokens, lead = [], float("inf")
    step = prompt
    for _ in range(GREEDY_TOKENS):
        logits = model(mx.array([step]), cache=cache)[0, -1]
        best = mx.topk(logits, 2)
        mx.eval(best, logits)
        lead = min(lead, abs(best[0].item() - best[1].item()))
        tokens.append(int(mx.argmax(logits).item()))
        step = [tokens[-1]]
    return tokens, lead


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    path = parser.parse_args().model
    mx.set_default_device(mx.cpu)
    tokenizer = Llama(path, vocab_only=True, verbose=False)

    def tokenize(text):
        return tokenizer.tokenize(
            text.encode(), add_bos=False, special=True
        )

    english = tokenize((ROOT / "tests/data/english.txt").read_text())
    (ROOT / "tests/data/english.ids.json").write_text(
        json.dumps(english) + "\n"
    )
    print(len(english), "tokens of English")

    model = load(path)
    prompt = english[:PROMPT_TOKENS]
    logits = np.array(model(mx.array([prompt]))[0])
    top = np.argsort(-logits, axis=-1)[:, :TOP]
    GOLDEN.mkdir(exist_ok=True)
    save_file(
        {
            "tokens": np.array(prompt, np.int32),
            "top.ids": top.astype(np.int32),
            "top.logits": np.take_along_axis(logits, top, -1),
            "last.logits": np.ascontiguousarray(logits[-1]),
        },
        GOLDEN / "smollm2.safetensors",
    )

    runs = []
    for question in QUESTIONS:
        prompt = tokenize(
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
            f"<|im_start|>user\n{question}<|im_end|>\n"
            "<|im_start|>assistant\n"
        )
        tokens, lead = greedy(model, prompt)
        text = tokenizer.detokenize(tokens).decode(errors="replace")
        print(f"{question} -> {text!r} (smallest lead {lead:.5f})")
        runs.append({"prompt": prompt, "tokens": tokens, "lead": lead})
    lines = ",\n".join(json.dumps(run) for run in runs)
    (GOLDEN / "smollm2_greedy.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
