"""Budgets hold, and what they cost is speed only."""

from serving import Server
from texts import sentences

BLOCK = 30 * 3 * 64 * 2 * 2 * 256  # bytes of KV in a page of the model


def prompts(count: int) -> list[str]:
    return [sentences(30, seed=100 + index) for index in range(count)]


def stored_bytes(cache_dir) -> int:
    files = cache_dir.glob("v1/*/blocks/*")
    return sum(path.stat().st_size for path in files)


def test_disk_budget_holds_across_restarts(cache_dir):
    budget = 4 * BLOCK
    flags = ("--prompt-cache-disk-bytes", budget)
    for prompt in prompts(4):
        with Server(*flags, cache=cache_dir) as server:
            server.complete(prompt)
            server.flush()
            assert 0 < stored_bytes(cache_dir) <= budget
            assert server.terminate() == 0
        assert 0 < stored_bytes(cache_dir) <= budget
    # The newest is still there.
    with Server(*flags, cache=cache_dir) as server:
        assert server.complete(prompts(4)[-1]).timings["cache_disk_n"] >= 256


def test_ram_budget_holds_and_the_newest_stays():
    budget = 4 * BLOCK
    with Server("--prompt-cache-bytes", budget) as server:
        for prompt in prompts(5):
            server.complete(prompt)
            ram = server.get("/v1/cache")["ram"]
            assert ram["budget_bytes"] == budget
            assert 0 < ram["bytes"] <= budget
        newest = server.complete(prompts(5)[-1])
        oldest = server.complete(prompts(5)[0])
    assert newest.cached_tokens == newest.prompt_tokens - 1
    assert oldest.cached_tokens == 0


def test_what_left_ram_is_still_on_disk(cache_dir):
    with Server(
        "--prompt-cache-bytes", 4 * BLOCK, cache=cache_dir
    ) as server:
        first = server.complete(prompts(1)[0])
        for prompt in prompts(5)[1:]:
            server.complete(prompt)
        server.flush()
        again = server.complete(prompts(1)[0])
    assert again.text == first.text
    assert again.timings["cache_disk_n"] >= 256


def test_entry_budget_holds():
    with Server("--prompt-cache-size", "2") as server:
        for prompt in prompts(4):
            server.complete(prompt)
            assert 1 <= server.get("/v1/cache")["entry_count"] <= 2
