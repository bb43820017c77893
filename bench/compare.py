#!/usr/bin/env python3
"""Afterglow beside llama.cpp: one file, as many threads, interleaved rounds.

    make bench  [ARGS="--rounds 5 --threads 2 --long --output docs/x.md"]

Afterglow is measured as a client sees it, through its server's `timings`, on
prompts that share no prefix; llama.cpp through llama_decode of the package
llama-cpp-python on random tokens, its KV cleared each time, best of flash
attention on and off. Each round measures all contenders one after the other,
so that drift of the machine hits all alike; the table shows medians.
"""

import argparse
import ctypes
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/e2e"))

from serving import MODEL, Server  # noqa: E402

DECODE_TOKENS = 64
DEPTH = 3000


class Afterglow:
    """A server; every prompt begins with a number never used before."""

    def __init__(self, model: str, threads: int, activations: str):
        self.name = f"afterglow {activations}"
        self._draw = random.Random(hash(activations) & 0xFFFF)
        self._server = Server(
            "--activations", activations, "--threads", threads, model=model
        )
        # The count of tokens in a prompt of no words but the first.
        self._overhead = self._ask(0, 1)["prompt_n"]

    def _ask(self, words: int, tokens: int) -> dict:
        """A prompt of 12 digits (a token each) and so many one-token words."""
        number = f"{self._draw.randrange(10**12):012d}"
        timings = self._server.complete(
            number + " the" * words, max_tokens=tokens
        ).timings
        if timings["predicted_n"] != tokens:
            raise SystemExit("an answer ended early: nothing was measured")
        if timings["cache_n"] >= 32:
            raise SystemExit("a prompt was cached: nothing was measured")
        return timings

    def prefill(self, count: int) -> float:
        timings = self._ask(count - self._overhead, 1)
        return timings["prompt_n"] / timings["prompt_ms"] * 1000

    def decode(self, depth: int) -> float:
        timings = self._ask(max(depth - self._overhead, 0), DECODE_TOKENS)
        # The first token is the prompt's.
        return (timings["predicted_n"] - 1) / timings["predicted_ms"] * 1000

    def close(self) -> None:
        self._server.kill()


class LlamaCpp:
    """A context of llama.cpp, driven by its C API."""

    def __init__(self, model: str, threads: int, flash: bool):
        import llama_cpp

        self._api = llama_cpp
        self.name = f"llama.cpp, flash attention {'on' if flash else 'off'}"
        self._draw = random.Random(1)
        self._log = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self._log, ctypes.c_void_p(0))
        options = llama_cpp.llama_model_default_params()
        self._model = llama_cpp.llama_model_load_from_file(
            model.encode(), options
        )
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = 8192
        settings.n_batch = settings.n_ubatch = 512
        settings.n_threads = settings.n_threads_batch = threads
        settings.flash_attn_type = 1 if flash else 0
        self._context = llama_cpp.llama_init_from_model(self._model, settings)
        if not self._model or not self._context:
            raise SystemExit(f"llama.cpp could not load {model}")
        vocab = llama_cpp.llama_model_get_vocab(self._model)
        self._vocab_size = llama_cpp.llama_vocab_n_tokens(vocab)

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

    def prefill(self, count: int) -> float:
        self._clear()
        return count / self._eval(count, 512)

    def decode(self, depth: int) -> float:
        self._clear()
        self._eval(max(depth, 1), 512)
        return DECODE_TOKENS / self._eval(DECODE_TOKENS, 1)

    def close(self) -> None:
        self._api.llama_free(self._context)
        self._api.llama_model_free(self._model)


def machine() -> list[str]:
    """What the figures depend on, one line each."""
    lines = [f"{platform.system()} {platform.machine()}"]
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:
        return lines
    fields = dict(
        (part.strip() for part in line.split(":", 1))
        for line in info.splitlines()
        if ":" in line
    )
    wanted = ["avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8"]
    flags = set(fields.get("flags", "").split())
    lines.append(f"{fields.get('model name', 'unknown CPU')}, {os.cpu_count()} CPUs")
    lines.append("with " + ", ".join(f for f in wanted if f in flags))
    return lines


def revision() -> str:
    root = Path(__file__).resolve().parent.parent
    run = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
    )
    return run.stdout.strip() or "unknown"


def measure(contenders, tests, rounds) -> dict:
    """All figures in tokens per second, by test and contender."""
    figures = {name: {c.name: [] for c in contenders} for name, _ in tests}
    for contender in contenders:
        contender.prefill(128)  # warm up
    for round_number in range(1, rounds + 1):
        print(f"Round {round_number} of {rounds}", file=sys.stderr)
        for name, run in tests:
            for contender in contenders:
                figures[name][contender.name].append(run(contender))
    return figures


def table(figures: dict, ours: list[str], theirs: list[str]) -> list[str]:
    """A Markdown table of medians, with ratios to the better of theirs."""
    heads = ["tokens/s", *(f"{name} (ratio)" for name in ours), *theirs]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for test, by_name in figures.items():
        medians = {name: statistics.median(v) for name, v in by_name.items()}
        best = max(medians[name] for name in theirs)
        cells = [test]
        cells += [f"{medians[n]:.1f} ({medians[n] / best:.2f}x)" for n in ours]
        cells += [f"{medians[n]:.1f}" for n in theirs]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default=str(MODEL), help="a GGUF file")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--long", action="store_true", help="prefill 4096 too")
    parser.add_argument("--output", help="write the report here, too")
    arguments = parser.parse_args()

    common = (arguments.model, arguments.threads)
    ours = [Afterglow(*common, mode) for mode in ("int8", "int16")]
    theirs = [LlamaCpp(*common, flash) for flash in (True, False)]
    tests = [("prefill 512", lambda c: c.prefill(512))]
    if arguments.long:
        tests.append(("prefill 4096", lambda c: c.prefill(4096)))
    tests.append((f"decode {DECODE_TOKENS}", lambda c: c.decode(0)))
    tests.append(
        (f"decode {DECODE_TOKENS} at {DEPTH}", lambda c: c.decode(DEPTH))
    )
    # Ours and theirs by turns.
    contenders = [c for pair in zip(ours, theirs) for c in pair]
    try:
        figures = measure(contenders, tests, arguments.rounds)
    finally:
        for contender in contenders:
            contender.close()

    size = Path(arguments.model).stat().st_size / 2**20
    report = [
        f"Model: {Path(arguments.model).name} ({size:.0f} MiB); "
        f"{arguments.threads} threads; median of {arguments.rounds} "
        "interleaved rounds.",
        f"Machine: {'; '.join(machine())}.",
        f"Versions: afterglow {revision()}, "
        f"llama-cpp-python {version('llama-cpp-python')}.",
        "",
        *table(figures, [c.name for c in ours], [c.name for c in theirs]),
    ]
    print("\n".join(report))
    if arguments.output:
        Path(arguments.output).write_text("\n".join(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
