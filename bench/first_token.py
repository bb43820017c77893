"""Time to the first token by length of prompt, as a client sees it: nothing
cached, the prompt in RAM, the prompt on disk after a restart, llama.cpp."""

import random
import sys
import tempfile
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

        def ask(server: Server, length: int, ending: str) -> float:
            """The same prompt each time, up to the word at its end."""
            prompt = prompt_of(length - 8, length) + f" {ending} is what?"
            return server.complete(prompt, max_tokens=1).timings["prompt_ms"]

        with Server(*flags, model=model, cache=folder) as server:
            server.complete("Warm up.", max_tokens=4)
            for length in lengths:
                series["cold"].append(ask(server, length, "first"))
                series["RAM"].append(ask(server, length, "second"))
                series["llama.cpp"].append(peer.first_token_ms(length))
            server.flush()
        with Server(*flags, model=model, cache=folder) as server:
            server.complete("Warm up.", max_tokens=4)
            for length in lengths:
                series["disk"].append(ask(server, length, "third"))
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
