"""Several servers on one directory, with load, eviction and clearing."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from cache_tool import block_files, stored_bytes, tool
from serving import Server
from texts import sentences

FILE = 30 * 3 * 64 * 2 * 2 * 256 + 16384  # most bytes of a block's file
SHARED = sentences(16, seed=40)  # about 260 tokens
PROMPTS = [
    SHARED + "\n" + sentences(4 + 4 * number, seed=400 + number)
    for number in range(7)
]
TOKENS = 6


@pytest.fixture(scope="module")
def right():
    """What a server that is alone answers, by prompt."""
    with Server("--threads", "2") as server:
        return {
            text: server.complete(text, max_tokens=TOKENS).text
            for text in PROMPTS
        }


class Load:
    """Clients that ask in random order, and check each answer and, after
    each flush, the budget."""

    def __init__(self, cache, budget: int, right: dict):
        self.cache = cache
        self.budget = budget
        self.right = right
        self.cached_tokens = 0
        self.flushes = 0
        self.most_bytes = 0
        self._mutex = threading.Lock()

    def client(self, server: Server, seed: int, requests: int) -> None:
        draw = random.Random(seed)
        for number in range(requests):
            text = draw.choice(PROMPTS)
            answer = server.complete(text, max_tokens=TOKENS)
            assert answer.text == self.right[text], (seed, number)
            with self._mutex:
                self.cached_tokens += answer.cached_tokens
            if number % 3 == 2:
                server.flush()
                self.check_budget()

    def check_budget(self) -> None:
        used = stored_bytes(self.cache)
        with self._mutex:
            self.flushes += 1
            self.most_bytes = max(self.most_bytes, used)
        assert used <= self.budget


def metric(server: Server, *path):
    value = server.get("/v1/cache")
    for key in path:
        value = value[key]
    return value


def others_hit(servers: list[Server], tag: str) -> bool:
    """One reads a prompt that nobody has seen; whether all the others then
    reuse its whole blocks. Answers are right in any case."""
    text = f"Report {tag}.\n" + sentences(34, seed=500)
    first = servers[0].complete(text, max_tokens=TOKENS)
    assert first.cached_tokens < 32  # no more than the first words
    servers[0].flush()
    whole_blocks = first.prompt_tokens // 256 * 256
    assert whole_blocks >= 512
    answers = [
        server.complete(text, max_tokens=TOKENS) for server in servers[1:]
    ]
    assert {answer.text for answer in answers} == {first.text}
    return all(
        answer.cached_tokens >= whole_blocks
        and answer.timings["cache_disk_n"] >= whole_blocks
        for answer in answers
    )


def check_others_hit(servers: list[Server], tag: str) -> None:
    # Under this load even the newest may be evicted before all had their turn.
    assert any(others_hit(servers, f"{tag} {number}") for number in range(3))


@pytest.mark.parametrize("count, clients, requests", [(2, 3, 12), (4, 2, 6)])
def test_servers_share_a_directory_under_load(
    count, clients, requests, cache_dir, right, capsys
):
    budget = 11 * FILE
    flags = ("--threads", "1", "--prompt-cache-disk-bytes", budget)
    # Little memory, so that the disk is what serves.
    flags += ("--prompt-cache-bytes", 4 * FILE)
    load = Load(cache_dir, budget, right)
    with ExitStack() as stack:
        servers = [
            stack.enter_context(Server(*flags, cache=cache_dir))
            for _ in range(count)
        ]
        pool = stack.enter_context(ThreadPoolExecutor(count * clients))
        running = [
            pool.submit(load.client, server, 10 * index + client, requests)
            for index, server in enumerate(servers)
            for client in range(clients)
        ]
        check_others_hit(servers, "before")
        cleared = tool("clear", "--yes", "--json", cache=cache_dir).json
        check_others_hit(servers[::-1], "after")
        for client in running:
            client.result(timeout=300)
        # More than fits, whenever the clearing came.
        for number in range(4):
            text = sentences(60, seed=600 + number)
            servers[number % count].complete(text, max_tokens=TOKENS)
            servers[number % count].flush()
        evicted = [
            metric(server, "disk", "evicted_blocks") for server in servers
        ]
        corrupt = [
            metric(server, "disk", "corrupt_blocks") for server in servers
        ]
        for server in servers:
            server.flush()
            load.check_budget()
        report = tool("verify", "--json", cache=cache_dir).json
        for server in servers:
            assert server.terminate() == 0
    with capsys.disabled():
        print(
            f"\n{count} servers: {count * clients * requests} requests, "
            f"{load.cached_tokens} cached tokens, {sum(evicted)} blocks "
            f"evicted, {cleared['blocks']} cleared, at most "
            f"{load.most_bytes} of {budget} bytes in {load.flushes} looks"
        )
    assert cleared["blocks"] > 0
    assert sum(evicted) > 0
    assert sum(corrupt) == 0
    assert load.cached_tokens > 0
    assert not report["damaged"]
    assert report["lock_bytes"] == report["counted_bytes"]
    assert sum(block_files(cache_dir).values()) <= budget
    assert list((cache_dir / "v1/tmp").iterdir()) == []
    # What is left serves right answers to a newcomer.
    with Server(*flags, cache=cache_dir) as server:
        for text in PROMPTS:
            answer = server.complete(text, max_tokens=TOKENS)
            assert answer.text == right[text]
