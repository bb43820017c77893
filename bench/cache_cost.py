#!/usr/bin/env python3
"""What the disk cache costs when nothing is shared.

    make cache-cost  [ARGS="--rounds 10 --prompt 512 --tokens 64"]

Two servers of the same model, one with --prompt-cache-dir and one without,
answer prompts that share no prefix, in turns: each round both answer a few,
the one that begins changing from round to round. The time is the client's,
from the first request of a turn to the last answer, so writing that runs
beside the answers counts. What is still to be written when a turn ends is
flushed before the other's turn, and reported.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/e2e"))

from serving import MODEL, Server  # noqa: E402


class Contender:
    def __init__(self, name: str, server: Server, arguments):
        self.name = name
        self.server = server
        self.seconds: list[float] = []
        self.tokens = 0
        self.flush_seconds = 0.0
        self._draw = random.Random(name)
        self._words = arguments.prompt
        self._answer = arguments.tokens

    def turn(self, requests: int, counts: bool = True) -> None:
        start = time.perf_counter()
        tokens = 0
        for _ in range(requests):
            number = f"{self._draw.randrange(10**12):012d}"
            timings = self.server.complete(
                number + " the" * self._words, max_tokens=self._answer
            ).timings
            if timings["cache_n"] >= 32:
                raise SystemExit("a prompt was cached: nothing was measured")
            tokens += timings["prompt_n"] + timings["predicted_n"]
        took = time.perf_counter() - start
        start = time.perf_counter()
        self.server.flush()
        if counts:
            self.seconds.append(took)
            self.tokens = tokens
            self.flush_seconds += time.perf_counter() - start

    @property
    def speed(self) -> float:
        return self.tokens / statistics.median(self.seconds)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default=str(MODEL))
    parser.add_argument("--activations", default="int16")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=3, help="in a turn")
    parser.add_argument("--prompt", type=int, default=512, help="words")
    parser.add_argument("--tokens", type=int, default=64, help="of an answer")
    parser.add_argument("--dir", help="where to put the cache")
    arguments = parser.parse_args()

    flags = ["--activations", arguments.activations]
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        folder = Path(name) / "cache"
        folder.mkdir(mode=0o700)
        with (
            Server(*flags, model=arguments.model) as plain,
            Server(*flags, model=arguments.model, cache=folder) as cached,
        ):
            pair = [
                Contender("without", plain, arguments),
                Contender("with", cached, arguments),
            ]
            for contender in pair:
                contender.turn(1, counts=False)
            for number in range(arguments.rounds):
                for contender in pair if number % 2 == 0 else pair[::-1]:
                    contender.turn(arguments.requests)
            disk = cached.get("/v1/cache")["disk"]

    without, with_disk = pair
    ratios = [b / a for a, b in zip(without.seconds, with_disk.seconds)]
    for contender in pair:
        print(f"{contender.name:<8} {contender.speed:8.1f} tokens/s")
    print(
        f"cost     {100 * (statistics.median(ratios) - 1):8.1f} % of the time"
        f" (median of {len(ratios)} pairs; {100 * (min(ratios) - 1):.1f} to"
        f" {100 * (max(ratios) - 1):.1f})"
    )
    print(
        f"written  {disk['written_bytes'] / 1e6:8.0f} MB in"
        f" {disk['written_blocks']} blocks; left to flush after the turns:"
        f" {with_disk.flush_seconds:.2f} s in all"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
