"""Made-up but ordinary English of any length, the same for the same seed."""

import random

SUBJECTS = [
    "The harbour master", "A careful gardener", "The night watch",
    "Every apprentice", "The old librarian", "The ferry crew", "Our cook",
    "A visiting surveyor", "The clock maker", "The school board",
]  # fmt: skip
VERBS = [
    "writes down", "checks", "repairs", "counts", "explains", "forgets",
    "carries away", "measures", "paints", "sells",
]  # fmt: skip
OBJECTS = [
    "the brass instruments", "seven wooden crates", "a map of the valley",
    "the weekly ledger", "the broken lantern", "two barrels of salt",
    "the letters from abroad", "a basket of apples", "the spare sails",
    "the bell above the gate",
]  # fmt: skip
TIMES = [
    "before sunrise", "on the first day of each month", "after heavy rain",
    "while the market is open", "when the tide turns", "in early autumn",
    "once a year", "during the long winter", "at noon", "without being asked",
]  # fmt: skip


def sentences(count: int, seed: int) -> str:
    draw = random.Random(seed)
    lines = []
    for number in range(1, count + 1):
        parts = map(draw.choice, (SUBJECTS, VERBS, OBJECTS, TIMES))
        lines.append(f"{number}. {' '.join(parts)}.")
    return "\n".join(lines)


def handbook(seed: int = 1) -> str:
    """About 3000 tokens."""
    return (
        "You answer questions about this handbook.\n\n" + sentences(180, seed)
    )
