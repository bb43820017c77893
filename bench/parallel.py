#!/usr/bin/env python3
"""Several answers at once beside one alone, from a running server.

    python bench/parallel.py [--parallel 8] [--rounds 7] [--activations int8]

Each round asks for one answer and then for several at once; prompts are short
and differ, nothing of them is cached, and no answer ends before --tokens. The
speed is the server's own: tokens over the time from the first to the last, of
the slowest where there are several. So sampling and whatever else is done
between two steps counts, the client's work does not. Figures are medians; the
ratio is the median of the rounds' ratios, so that drift of the machine hits
both sides alike.

Exits with 1 when the ratio is less than --at-least.
"""

import argparse
import json
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor

from machine import ROOT, describe_machine, revision

sys.path.insert(0, str(ROOT / "tests/e2e"))

from serving import MODEL, Server  # noqa: E402


def ask(server: Server, number: int, tokens: int, **sampling) -> dict:
    """One answer of just so many tokens; returns its timings."""
    status, body = server.request(
        "POST",
        "/v1/completions",
        {
            "prompt": f"Letter {number}. My dear friend, I hope that",
            "max_tokens": tokens,
            "temperature": 0,
            **sampling,
            "cache_prompt": False,
            "logit_bias": {str(stop): -100 for stop in (0, 2)},
        },
    )
    if status != 200 or body["choices"][0]["finish_reason"] != "length":
        raise SystemExit(f"answer {number}: {status} {body}")
    return body["timings"]


def speed_of(
    server: Server, pool, count: int, first: int, tokens: int, **sampling
) -> float:
    """Tokens per second of so many answers together."""
    answers = list(
        pool.map(
            lambda i: ask(server, i, tokens, **sampling),
            range(first, first + count),
        )
    )
    slowest = max(timings["predicted_ms"] for timings in answers)
    return count * (tokens - 1) / slowest * 1000


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--activations", default="int8")
    parser.add_argument("--temperature", type=float, default=0)
    parser.add_argument("--top-p", type=float, default=1)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--at-least", type=float, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    sampling = {"temperature": options.temperature, "top_p": options.top_p}
    rounds = []
    with Server(
        "--activations", options.activations, model=options.model
    ) as server, ThreadPoolExecutor(options.parallel) as pool:
        ask(server, 0, 8)
        for number in range(options.rounds):
            first = 1 + number * (options.parallel + 1)
            one = speed_of(server, pool, 1, first, options.tokens, **sampling)
            many = speed_of(
                server, pool, options.parallel, first + 1, options.tokens,
                **sampling,
            )  # fmt: skip
            rounds.append((one, many))
    one, many = (statistics.median(side) for side in zip(*rounds))
    ratio = statistics.median(m / o for o, m in rounds)
    if options.json:
        print(json.dumps({"one": one, "parallel": many, "ratio": ratio}))
    else:
        print(f"{describe_machine()}; {revision()}; {options.activations}")
        print(
            f"one answer: {one:.1f} tokens/s; {options.parallel} at once: "
            f"{many:.1f} tokens/s; ratio {ratio:.2f} "
            f"(rounds: {', '.join(f'{m / o:.2f}' for o, m in rounds)})"
        )
    return 0 if ratio >= options.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
