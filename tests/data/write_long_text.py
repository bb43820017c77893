#!/usr/bin/env python3
"""Writes tests/data/long_english.txt: about 9,000 tokens of prose.

    python tests/data/write_long_text.py

The default model tells it at temperature 0.9 with fixed seeds, in int16 mode,
so the same arithmetic writes the same text again. It is committed: what is
measured on it stays comparable when the arithmetic changes.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from serving import Server  # noqa: E402

TOKENS = 600
SUBJECTS = [
    "Tell the story of a village that moves its bell tower.",
    "Describe a day in the life of a lighthouse keeper.",
    "Explain how bread is made, from the field to the table.",
    "Write a letter from a sailor to his sister.",
    "Explain why rivers bend.",
    "Tell a story about two friends who restore a wooden boat.",
    "Describe a market square in autumn.",
    "Explain how a mechanical clock keeps time.",
    "Write about the history of glass.",
    "Tell the story of a lost map and who found it.",
    "Explain what a computer's memory does, in plain words.",
    "Describe a walk through a forest after rain.",
    "Write a dialogue between a teacher and a curious pupil about stars.",
    "Explain how vaccines work.",
    "Tell a story about a train that is always late.",
    "Describe how a small town prepares for winter.",
]


def main() -> int:
    flags = ["--activations", "int16", "--decode-concurrency", len(SUBJECTS)]
    with Server(*flags) as server:

        def tell(number: int) -> str:
            return server.chat(
                SUBJECTS[number] + " Write at length.",
                temperature=0.9,
                seed=number,
                max_tokens=TOKENS,
            ).text

        with ThreadPoolExecutor(len(SUBJECTS)) as pool:
            texts = list(pool.map(tell, range(len(SUBJECTS))))
    text = "\n\n".join(each.strip() for each in texts) + "\n"
    (Path(__file__).parent / "long_english.txt").write_text(text)
    print(len(text), "characters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
