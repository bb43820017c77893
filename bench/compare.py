#!/usr/bin/env python3
"""Afterglow beside llama.cpp: one file, as many threads, interleaved rounds.

    make bench     [ARGS="--rounds 3 --tests pp512,tg64"]
    make bench-1b

Afterglow is measured by `afterglow bench`, a new process in each round;
llama.cpp through llama_decode of the package llama-cpp-python, with its KV in
f16 and micro-batches of 512. Both run the same tests on random tokens: ppN
reads a prompt of N tokens, tgN generates N, behind @D tokens that are not
counted. Each round measures all contenders one after the other, so that drift
of the machine hits all alike; figures are medians, ratios are to the better of
llama.cpp with flash attention on and off. A setting of llama.cpp that the
first round shows to be over 10 % slower in a test is left out of its later
rounds.

With --write, the report replaces the model's section in docs/benchmarks.md.
With --plot, time to the first token by length of prompt is measured, too.
"""

import argparse
import json
import re
import statistics
import sys
from importlib.metadata import version
from pathlib import Path

from contenders import Afterglow, LlamaCpp, MlxLm
from machine import ROOT, describe_machine, revision
from speed_tests import by_depth, parse_tests

sys.path.insert(0, str(ROOT / "tests/e2e"))

from serving import MODEL  # noqa: E402

DOCUMENT = ROOT / "docs/benchmarks.md"
SHORT_TESTS = "pp64,tg16"  # what mlx_lm does in bearable time
CLEARLY_SLOWER = 0.9


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(ours: list, theirs: list, tests: list, rounds: int) -> dict:
    """Tokens per second of each round, by test and contender's name."""
    # Ours and theirs by turns.
    pairs = zip(ours, theirs) if len(ours) == len(theirs) else [(*ours, *theirs)]
    contenders = [contender for pair in pairs for contender in pair]
    figures = {test: {c.name: [] for c in contenders} for test in tests}
    left_out = set()
    for number in range(1, rounds + 1):
        for group in by_depth(tests):
            for contender in contenders:
                wanted = [t for t in group if (t, contender.name) not in left_out]
                if not wanted:
                    continue
                for test, speed in contender.run(wanted).items():
                    figures[test][contender.name].append(speed)
                    say(f"round {number}, {contender.name}: {test} {speed:.1f}")
        if number == 1:
            left_out = slower_ones(figures, theirs)
    return figures


def slower_ones(figures: dict, theirs: list) -> set:
    found = set()
    for test, by_name in figures.items():
        best = max(by_name[c.name][0] for c in theirs)
        for contender in theirs:
            if by_name[contender.name][0] < CLEARLY_SLOWER * best:
                found.add((test, contender.name))
    return found


def table(figures: dict, ours: list, theirs: list) -> list[str]:
    """A Markdown table of medians, with ratios to the better of theirs."""
    names = [c.name for c in theirs]
    heads = ["tokens/s", *(f"{c.name} (ratio)" for c in ours), *names]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for test, by_name in figures.items():
        medians = {name: statistics.median(v) for name, v in by_name.items()}
        best = max(medians[name] for name in names)
        cells = [str(test)]
        for contender in ours:
            speed = medians[contender.name]
            cells.append(f"{speed:.1f} ({speed / best:.2f}x)")
        cells += [f"{medians[name]:.1f}" for name in names]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def compare_llama(arguments, tests) -> tuple[list[str], dict, "LlamaCpp"]:
    common = (arguments.model, arguments.threads)
    ours = [
        Afterglow(*common, mode, arguments.target)
        for mode in arguments.activations.split(",")
    ]
    context = max(t.depth + t.tokens for t in tests)
    context = -(-max(context, 4096) // 256) * 256
    theirs = [LlamaCpp(*common, flash, context) for flash in (True, False)]
    figures = measure(ours, theirs, tests, arguments.rounds)
    first = next(iter(figures.values()))
    best = max(theirs, key=lambda c: statistics.median(first[c.name]))
    for contender in theirs:
        if contender is not best:
            contender.close()
    about = ours[0].last
    size = Path(arguments.model).stat().st_size / 2**20
    lines = [
        f"Model: {about['model']} ({size:.0f} MiB, {about['params'] / 1e6:.0f} M "
        f"weights); {arguments.threads} threads; medians of {arguments.rounds} "
        f"interleaved rounds; kernels for {about['target']}.",
        "",
        *table(figures, ours, theirs),
    ]
    return lines, figures, best


def compare_mlx(arguments) -> list[str]:
    tests = parse_tests(SHORT_TESTS)
    ours = [Afterglow(arguments.model, arguments.threads, "int16", arguments.target)]
    theirs = [MlxLm(arguments.model)]
    figures = measure(ours, theirs, tests, min(arguments.rounds, 3))
    return [
        "",
        "Short tests beside mlx_lm on MLX's CPU device (scales in f32; with f16 "
        "ones it is slower by far):",
        "",
        *table(figures, ours, theirs),
    ]


def first_tokens(arguments, peer: LlamaCpp) -> list[str]:
    from first_token import measure_first_tokens, plot

    mode = arguments.activations.split(",")[-1]
    lengths = [int(n) for n in arguments.lengths.split(",")]
    series = measure_first_tokens(
        arguments.model, arguments.threads, mode, lengths, peer
    )
    target = Path(arguments.plot)
    plot(target, lengths, series, f"{Path(arguments.model).stem}, {mode}")
    heads = ["ms to the first token", *map(str, lengths)]
    lines = ["", f"![Time to the first token]({target.name})", ""]
    lines += ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, values in series.items():
        label = peer.name if name == "llama.cpp" else f"afterglow {mode}, {name}"
        cells = [label, *(f"{value:.0f}" for value in values)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def write_section(name: str, lines: list[str]) -> None:
    """Replaces the section between its marks, or adds one at the end."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    section = "\n".join([begin, *lines, end])
    text = DOCUMENT.read_text()
    marked = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if marked.search(text):
        text = marked.sub(lambda _: section, text)
    else:
        text = text.rstrip() + "\n\n" + section + "\n"
    DOCUMENT.write_text(text)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default=str(MODEL), help="a GGUF file")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--activations", default="int8,int16")
    parser.add_argument("--target", default="", help="kernels to force, as avx2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tests", default="pp512,pp4096,tg64,tg64@3000")
    parser.add_argument("--mlx-lm", action="store_true", help="short tests beside it")
    parser.add_argument("--plot", metavar="FILE.png", help="time to first token")
    parser.add_argument("--lengths", default="128,512,1024,2048,4000")
    parser.add_argument("--write", metavar="NAME", help="section of the document")
    parser.add_argument("--json", metavar="FILE", help="all figures, too")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    try:
        tests = parse_tests(arguments.tests)
    except ValueError as error:
        raise SystemExit(f"compare.py: {error}") from None
    lines, figures, peer = compare_llama(arguments, tests)
    versions = f"afterglow {revision()}, llama-cpp-python {version('llama-cpp-python')}"
    if arguments.plot:
        lines += first_tokens(arguments, peer)
    peer.close()
    if arguments.mlx_lm:
        lines += compare_mlx(arguments)
        versions += f", mlx_lm {version('mlx-lm')}, mlx {version('mlx')}"
    command = " ".join(sys.argv[1:])
    lines = [
        f"Machine: {describe_machine()}.",
        f"Versions: {versions}.",
        f"Command: `bench/compare.py {command}`.".replace(f"{ROOT}/", ""),
        "",
        *lines,
    ]
    print("\n".join(lines))
    if arguments.write:
        write_section(arguments.write, lines)
    if arguments.json:
        all_figures = {str(test): by_name for test, by_name in figures.items()}
        Path(arguments.json).write_text(json.dumps(all_figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
