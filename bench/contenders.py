"""Programs that run the same tests on the same file, each in its own way.

run(tests) returns tokens per second by test; all tests have one depth.
"""

import ctypes
import json
import os
import random
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

from speed_tests import Test

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/e2e"))

from serving import PROGRAM  # noqa: E402

CHUNK = 512  # tokens that llama.cpp takes at once


class Afterglow:
    """`afterglow bench`, a process for each call; loading is not counted."""

    def __init__(self, model: str, threads: int, activations: str, target=""):
        self.name = f"afterglow {activations}"
        self._command = [str(PROGRAM), "bench", "--model", model]
        self._command += ["--threads", str(threads)]
        self._command += ["--activations", activations]
        self._command += ["--no-profile", "--json", "-r", "1"]
        self._environment = {**os.environ}
        if target:
            self._environment["AFTERGLOW_TARGET"] = target
        self.last: dict = {}

    def command_line(self) -> str:
        return " ".join(["afterglow", *self._command[1:]])

    def run(self, tests: list[Test]) -> dict[Test, float]:
        def sizes(kind: str) -> str:
            found = [str(t.tokens) for t in tests if t.kind == kind]
            return ",".join(found) or "0"

        done = subprocess.run(
            [*self._command, "-p", sizes("pp"), "-n", sizes("tg"),
             "--depth", str(tests[0].depth)],
            capture_output=True, text=True, env=self._environment,
        )  # fmt: skip
        if done.returncode != 0:
            raise SystemExit(f"{self.name}: {done.stderr}")
        found = {each["test"]: each for each in json.loads(done.stdout)}
        self.last = next(iter(found.values()))
        return {test: found[str(test)]["tokens_per_second"] for test in tests}

    def close(self) -> None:
        pass


@cache
def silence(llama_cpp):
    """Keeps llama.cpp from logging; it needs the callback until it ends."""
    callback = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(callback, ctypes.c_void_p(0))
    return callback


class LlamaCpp:
    """A context of llama.cpp, driven by its C API; KV in f16."""

    def __init__(self, model: str, threads: int, flash: bool, context: int):
        import llama_cpp

        self._api = llama_cpp
        self.name = f"llama.cpp, flash attention {'on' if flash else 'off'}"
        self._draw = random.Random(1)
        silence(llama_cpp)
        self._model = llama_cpp.llama_model_load_from_file(
            model.encode(), llama_cpp.llama_model_default_params()
        )
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = context
        settings.n_batch = settings.n_ubatch = CHUNK
        settings.n_threads = settings.n_threads_batch = threads
        settings.flash_attn_type = 1 if flash else 0
        self._context = llama_cpp.llama_init_from_model(self._model, settings)
        if not self._model or not self._context:
            raise SystemExit(f"llama.cpp could not load {model}")
        vocab = llama_cpp.llama_model_get_vocab(self._model)
        self._vocab_size = llama_cpp.llama_vocab_n_tokens(vocab)
        # KV by depth: made once, as that takes minutes with a large model.
        self._states: dict[int, ctypes.Array] = {}
        self._eval(64, CHUNK)  # warm up

    def _clear(self) -> None:
        memory = self._api.llama_get_memory(self._context)
        self._api.llama_memory_clear(memory, True)

    def _eval(self, count: int, at_once: int) -> float:
        """Evaluates random tokens; returns the seconds it took."""
        tokens = [self._draw.randrange(100, self._vocab_size) for _ in range(count)]
        start = time.perf_counter()
        for begin in range(0, count, at_once):
            part = tokens[begin : begin + at_once]
            array = (self._api.llama_token * len(part))(*part)
            batch = self._api.llama_batch_get_one(array, len(part))
            if self._api.llama_decode(self._context, batch) != 0:
                raise SystemExit("llama_decode failed")
        self._api.llama_synchronize(self._context)
        return time.perf_counter() - start

    def _go_to(self, depth: int) -> None:
        self._clear()
        if depth == 0:
            return
        api, context = self._api, self._context
        state = self._states.get(depth)
        if state is None:
            self._eval(depth, CHUNK)
            size = api.llama_state_seq_get_size(context, 0)
            state = (ctypes.c_uint8 * size)()
            if api.llama_state_seq_get_data(context, state, size, 0) != size:
                raise SystemExit("llama_state_seq_get_data failed")
            self._states[depth] = state
            return
        if api.llama_state_seq_set_data(context, state, len(state), 0) == 0:
            raise SystemExit("llama_state_seq_set_data failed")

    def run(self, tests: list[Test]) -> dict[Test, float]:
        figures = {}
        for test in tests:
            self._go_to(test.depth)
            at_once = CHUNK if test.kind == "pp" else 1
            figures[test] = test.tokens / self._eval(test.tokens, at_once)
        return figures

    def first_token_ms(self, count: int) -> float:
        """Reading a prompt up to the logits behind it."""
        self._clear()
        return self._eval(count, CHUNK) * 1000

    def close(self) -> None:
        self._api.llama_free(self._context)
        self._api.llama_model_free(self._model)


class MlxLm:
    """mlx_lm's llama on MLX's CPU device, from the same GGUF file.

    Scales are f32: with f16 ones MLX is thirty times slower. Rows of q and k
    stay in GGUF's order, which is wrong for answers and the same for speed.
    """

    name = "mlx_lm"

    def __init__(self, model: str):
        import mlx.core as mx
        import mlx.nn as nn
        from gguf import GGUFReader
        from mlx_lm.models import llama
        from mlx_lm.models.cache import make_prompt_cache

        sys.path.append(str(Path(__file__).resolve().parent.parent / "tests/parity"))
        from oracle_smollm2 import hf_name

        self._mx, self._make_cache = mx, make_prompt_cache
        self._draw = random.Random(1)
        mx.set_default_device(mx.cpu)
        fields = GGUFReader(model).fields

        def field(key):
            return fields["llama." + key].contents()

        weights = {}
        for name, value in mx.load(model).items():
            value = value if value.dtype == mx.uint32 else value.astype(mx.float32)
            weights[hf_name(name)] = value
        self._vocab_size = weights["model.embed_tokens.weight"].shape[0]
        self._model = llama.Model(llama.ModelArgs(
            model_type="llama",
            hidden_size=field("embedding_length"),
            num_hidden_layers=field("block_count"),
            intermediate_size=field("feed_forward_length"),
            num_attention_heads=field("attention.head_count"),
            num_key_value_heads=field("attention.head_count_kv"),
            rms_norm_eps=field("attention.layer_norm_rms_epsilon"),
            vocab_size=self._vocab_size,
            rope_theta=field("rope.freq_base"),
            tie_word_embeddings="lm_head.weight" not in weights,
        ))  # fmt: skip

        def quantization(path, module):
            codes = weights.get(f"{path}.weight")
            scales = weights.get(f"{path}.scales")
            if scales is None:
                return False
            bits = codes.shape[1] // scales.shape[1]  # 32 bits hold 32 / bits
            return {"group_size": 32, "bits": bits}

        nn.quantize(self._model, class_predicate=quantization)
        self._model.load_weights(list(weights.items()), strict=True)
        mx.eval(self._model.parameters())

    def run(self, tests: list[Test]) -> dict[Test, float]:
        figures = {}
        for test in tests:
            cache = self._make_cache(self._model)
            if test.depth:
                self._eval(test.depth, test.depth, cache)
            at_once = test.tokens if test.kind == "pp" else 1
            figures[test] = test.tokens / self._eval(test.tokens, at_once, cache)
        return figures

    def _eval(self, count: int, at_once: int, cache) -> float:
        tokens = [self._draw.randrange(100, self._vocab_size) for _ in range(count)]
        start = time.perf_counter()
        for begin in range(0, count, at_once):
            part = self._mx.array([tokens[begin : begin + at_once]])
            self._mx.eval(self._model(part, cache=cache)[0, -1])
        return time.perf_counter() - start

    def close(self) -> None:
        pass
