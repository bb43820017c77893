"""Ordinary text of any length, the same each time."""

WHO = ["The harbour master", "A careful gardener", "Every apprentice"]
WHAT = ["writes down", "repairs", "counts", "explains", "carries away"]
WHICH = ["seven wooden crates", "the broken lantern", "the weekly ledger",
         "two barrels of salt"]  # fmt: skip
WHEN = ["before sunrise", "after heavy rain", "once a year", "at noon",
        "in early autumn", "when the tide turns", "all day"]  # fmt: skip


def sentences(count: int) -> str:
    return "\n".join(
        f"{number}. " + " ".join(part[number % len(part)]
                                 for part in (WHO, WHAT, WHICH, WHEN)) + "."
        for number in range(1, count + 1)
    )  # fmt: skip
