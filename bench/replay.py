#!/usr/bin/env python3
"""Five questions over one held prompt, with a restart between cold and warm.

    make replay  [ARGS="--sentences 180 --activations int8"]

Cold: a server with an empty cache directory reads the prompt with the first
question, and is ended by SIGTERM. Warm: a new server on the same directory is
asked all five questions; its first answer comes from disk, the others from
RAM. Times are those to the first token, seen by the client; loading the model
is reported apart.
"""

import argparse
import ctypes
import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/e2e"))

from serving import MODEL, Server  # noqa: E402
from texts import sentences  # noqa: E402

QUESTIONS = [
    "Who repairs the broken lantern?",
    "What happens before sunrise?",
    "Name one thing that is sold.",
    "When are the apples counted?",
    "Which line mentions the ferry crew first?",
]


def drop_from_page_cache(folder: Path) -> bool:
    """Asks the kernel to forget the files' pages; says whether it could."""
    libc = ctypes.CDLL(None, use_errno=True)
    advise = getattr(libc, "posix_fadvise", None)
    if advise is None:
        return False
    advise.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_int]
    dont_need = 4
    for path in folder.rglob("*.safetensors"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            if advise(file.fileno(), 0, 0, dont_need) != 0:
                return False
    return True


def replay(arguments) -> int:
    prompt = "Answer from this handbook.\n\n" + sentences(arguments.sentences, 7)
    flags = ["--activations", arguments.activations]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "cache"
        folder.mkdir(mode=0o700)

        def serve():
            return Server(*flags, cache=folder, model=arguments.model)

        with serve() as server:
            cold_load = server.start_seconds
            cold = server.chat(QUESTIONS[0], system=prompt)
            server.terminate()
        size = sum(p.stat().st_size for p in folder.rglob("*.safetensors"))
        dropped = arguments.drop_page_cache and drop_from_page_cache(folder)
        with serve() as server:
            warm_load = server.start_seconds
            warm = [server.chat(text, system=prompt) for text in QUESTIONS]
            server.terminate()

    mean = statistics.mean(answer.first_ms for answer in warm)
    drop = 100 * (1 - mean / cold.first_ms)
    print(f"Model: {Path(arguments.model).name}, {arguments.activations}")
    print(f"Prompt: {cold.prompt_tokens} tokens, {size / 1e6:.0f} MB on disk")
    print(
        f"Start with model load: {cold_load * 1000:.0f} ms cold, "
        f"{warm_load * 1000:.0f} ms warm (not counted below)"
    )
    if arguments.drop_page_cache:
        print(f"Page cache: {'dropped' if dropped else 'could not be dropped'}")
    else:
        print("Page cache: warm (--drop-page-cache reads from the disk)")
    print()
    print("| Request | Prompt | From disk | From RAM | Computed | First token |")
    print("|---|---|---|---|---|---|")
    rows = [("cold 1", cold)]
    rows += [(f"warm {n}", answer) for n, answer in enumerate(warm, 1)]
    for label, answer in rows:
        timings = answer.timings
        print(
            f"| {label} | {answer.prompt_tokens} | {timings['cache_disk_n']} "
            f"| {timings['cache_ram_n']} | {timings['prompt_n']} "
            f"| {answer.first_ms:.1f} ms |"
        )
    print()
    print("| Cold prefill | Warm mean | Drop |")
    print("|---|---|---|")
    print(f"| {cold.first_ms:.1f} ms | {mean:.1f} ms | {drop:.1f} % |")

    if warm[0].text != cold.text:
        print("\nThe warm answer differs from the cold one.", file=sys.stderr)
        return 1
    if drop < 95:
        print("\nThe drop is below 95 %.", file=sys.stderr)
        return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default=str(MODEL))
    parser.add_argument("--sentences", type=int, default=180)
    parser.add_argument("--activations", default="int16")
    parser.add_argument("--drop-page-cache", action="store_true")
    return replay(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
