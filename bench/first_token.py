"""Time to the first token by length of prompt, as a client sees it: nothing
cached, the prompt in RAM, the prompt on disk after a restart, llama.cpp."""

import random
import sys
import tempfile
import time
from pathlib import Path

from contenders import LlamaCpp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/e2e"))

from serving import Server  # noqa: E402

# A token each, behind a space.
WORDS = "the of and to in is that for it as was with be by on not he his".split()


def prompt_of(tokens: int, seed: int) -> str:
    draw = random.Random(seed)
    return " ".join(draw.choice(WORDS) for _ in range(tokens))


def measure_first_tokens(
    model: str, threads: int, activations: str, lengths: list[int], peer: LlamaCpp
) -> dict[str, list[float]]:
    """Milliseconds by series, one for each length."""
    flags = ["--threads", threads, "--activations", activations]
    series: dict[str, list[float]] = {
        "cold": [], "RAM": [], "disk": [], "llama.cpp": [],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "cache"
        folder.mkdir(mode=0o700)

        def ask(server: Server, length: int, ending: str, tier: str) -> float:
            """The same prompt each time, up to the word at its end."""
            prompt = prompt_of(length - 8, length) + f" {ending} is what?"
            start = time.perf_counter()
            timings = server.complete(prompt, max_tokens=1).timings
            took = (time.perf_counter() - start) * 1000
            cached = timings[tier]
            # Shorter matches than 32 are not used; the rest must be there.
            if not (cached < 32 if tier == "cache_n" else cached > length / 2):
                raise SystemExit(f"{tier} is {cached}: nothing was measured")
            return took

        with Server(*flags, model=model, cache=folder) as server:
            server.complete("Warm up.", max_tokens=4)
            for length in lengths:
                series["cold"].append(ask(server, length, "first", "cache_n"))
                took = ask(server, length, "second", "cache_ram_n")
                series["RAM"].append(took)
                series["llama.cpp"].append(peer.first_token_ms(length))
            server.flush()
        with Server(*flags, model=model, cache=folder) as server:
            server.complete("Warm up.", max_tokens=4)
            for length in lengths:
                took = ask(server, length, "third", "cache_disk_n")
                series["disk"].append(took)
    return series


def plot(path: Path, lengths: list[int], series: dict, title: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for name, values in series.items():
        label = name if name == "llama.cpp" else f"afterglow, {name}"
        axes.plot(lengths, values, marker="o", label=label)
    axes.set_xlabel("tokens of the prompt")
    axes.set_ylabel("ms to the first token")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths, [str(length) for length in lengths])
    axes.grid(alpha=0.3)
    axes.legend()
    axes.set_title(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
