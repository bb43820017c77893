"""Which entry goes first is what mlx_lm's own LRUPromptCache decides, but for
the differences that we want. Each of those has a test that names it."""

import os
import random
import subprocess
from pathlib import Path

import pytest

cache = pytest.importorskip("mlx_lm.models.cache")

ROOT = Path(__file__).resolve().parent.parent.parent
DRIVER = Path(os.environ.get("AFTERGLOW_PROGRAM", ROOT / "build" / "afterglow"))
DRIVER = DRIVER.parent / "tests" / "parity" / "lru_order"
TYPES = ["assistant", "user", "system"]


def ours(max_entries: int, operations) -> list[set]:
    """The entries after each operation, as (type, tokens)."""
    lines = [" ".join([kind, *map(str, tokens)]) for kind, tokens in operations]
    run = subprocess.run(
        [DRIVER, str(max_entries)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    states = []
    for line in run.stdout.splitlines():
        entries = set()
        for entry in line.split():
            kind, tokens = entry.split(":")
            entries.add((kind, tuple(map(int, tokens.split(",")))))
        states.append(entries)
    assert len(states) == len(operations)
    return states


def theirs(max_entries: int, operations) -> list[set]:
    lru = cache.LRUPromptCache(max_size=max_entries)
    states = []
    for kind, tokens in operations:
        if kind == "hit":
            lru.fetch_nearest_cache("model", list(tokens))
        else:
            # A new, empty KVCache: trimmable and of no bytes.
            lru.insert_cache(
                "model", list(tokens), [cache.KVCache()], cache_type=kind
            )
        states.append(
            {
                (kind, tuple(tokens))
                for kind, entries in lru._lru._lrus.items()
                for _, tokens in entries
            }
        )
    return states


def unrelated(rng, step):
    return [1000 * step + i for i in range(rng.choice([1, 5, 255, 256, 257, 300]))]


def extended(rng, known, step):
    """A longer turn of a chat that is known."""
    base = rng.choice(known)
    return list(base) + unrelated(rng, step)


@pytest.mark.parametrize("seed", range(40))
def test_unrelated_prompts_of_all_types(seed):
    rng = random.Random(seed)
    operations = [
        (rng.choice(TYPES), unrelated(rng, step)) for step in range(1, 120)
    ]
    limit = rng.randint(1, 14)
    assert ours(limit, operations) == theirs(limit, operations)


@pytest.mark.parametrize("seed", range(40))
def test_chats_that_grow_and_come_back(seed):
    """Assistant and user entries; longer turns absorb shorter ones, equal ones
    move to the end, shorter ones than known stand beside them."""
    rng = random.Random(1000 + seed)
    known, operations = [], []
    kinds = {}
    for step in range(1, 100):
        choice = rng.random()
        if known and choice < 0.5:
            tokens = extended(rng, known, step)
        elif known and choice < 0.6:
            tokens = rng.choice(known)
        elif known and choice < 0.7:
            longer = rng.choice(known)
            tokens = longer[: rng.randint(1, len(longer))]
        else:
            tokens = unrelated(rng, step)
        kind = kinds.setdefault(tuple(tokens), rng.choice(TYPES[:2]))
        known.append(tokens)
        operations.append((kind, tokens))
    limit = rng.randint(1, 14)
    assert ours(limit, operations) == theirs(limit, operations)


# The wanted differences.


def test_a_hit_is_a_use():
    """mlx_lm's order is that of insertion: a prompt asked for again and again
    goes as if it had never been. Ours is least recently used."""
    operations = [
        ("assistant", [1, 2]),
        ("assistant", [3, 4]),
        ("hit", [1, 2]),
        ("assistant", [5, 6]),
    ]
    first = ("assistant", (1, 2))
    assert first in ours(2, operations)[-1]
    assert first not in theirs(2, operations)[-1]


def test_a_system_prompt_outlives_the_chat_that_begins_with_it():
    """mlx_lm drops every prefix of a new entry; a system prompt of ours stays
    an entry of its own, so that it is the last to go."""
    operations = [("system", [1, 2]), ("assistant", [1, 2, 3])]
    system = ("system", (1, 2))
    assert system in ours(9, operations)[-1]
    assert system not in theirs(9, operations)[-1]


def test_an_entry_keeps_its_higher_type():
    """Inserted again as another type, mlx_lm's entry changes its type; ours
    stays what is evicted later."""
    operations = [("system", [1, 2]), ("assistant", [1, 2])]
    assert ours(9, operations)[-1] == {("system", (1, 2))}
    assert theirs(9, operations)[-1] == {("assistant", (1, 2))}
