"""A server killed at random moments, again and again, under real load.

AFTERGLOW_KILLS says how often; the more the better."""

import http.client
import os
import random
import subprocess
import threading
import time
from pathlib import Path

from serving import PROGRAM, Server, ServerError, wait_for
from texts import sentences

KILLS = int(os.environ.get("AFTERGLOW_KILLS", 8))
CLIENTS = 3
# Small, so that blocks are evicted while the server is killed: 10 blocks.
DISK_BYTES = 60_000_000

# Chats that share prefixes and continue each other: 200 to 1,200 tokens.
REQUESTS = [
    {
        "prompt": f"Notes of day {day}.\n" + sentences(12 * part, day),
        "max_tokens": 4,
    }
    for day in range(3)
    for part in (1, 3, 6)
]


class Client(threading.Thread):
    """Asks one request after the other until the server is gone."""

    def __init__(self, server: Server, seed: int, right: list[str]):
        super().__init__()
        self._server = server
        self._draw = random.Random(seed)
        self._right = right
        self.answered = 0
        self.cached = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        while True:
            index = self._draw.randrange(len(REQUESTS))
            try:
                answer = self._server.ask("/v1/completions", REQUESTS[index])
            except (OSError, http.client.HTTPException, ServerError):
                return  # killed in the middle
            self.answered += 1
            self.cached += answer.cached_tokens
            if answer.text != self._right[index]:
                self.wrong.append(
                    f"{index}: {answer.text!r}, not {self._right[index]!r}"
                )


def block_bytes(cache_dir: Path) -> int:
    return sum(
        path.stat().st_size for path in cache_dir.glob("v1/*/blocks/*")
    )


def test_killed_again_and_again_no_answer_is_wrong(cache_dir):
    with Server() as server:
        right = [
            server.ask("/v1/completions", {**body, "cache_prompt": False}).text
            for body in REQUESTS
        ]
    draw = random.Random(20)
    answered = cached = 0
    flags = ["--prompt-cache-disk-bytes", DISK_BYTES]
    for kill in range(KILLS):
        with Server(*flags, cache=cache_dir) as server:
            clients = [
                Client(server, CLIENTS * kill + i, right)
                for i in range(CLIENTS)
            ]
            for client in clients:
                client.start()
            some = draw.randrange(8)
            wait_for(
                lambda: sum(client.answered for client in clients) >= some,
                f"{some} answers",
                120,
            )
            time.sleep(draw.uniform(0, 0.5))  # the moment of the kill
            server.kill()
            for client in clients:
                client.join()
        for client in clients:
            assert client.wrong == [], f"after kill {kill}"
            answered += client.answered
            cached += client.cached

    assert answered > KILLS, "there was no load to speak of"
    assert cached > 0, "nothing was ever reused"
    with Server(*flags, cache=cache_dir) as server:
        # Recovery is over once a flush has gone through the writer.
        server.flush()
        assert list(cache_dir.glob("v1/tmp/*")) == []
        assert block_bytes(cache_dir) <= DISK_BYTES
        for body, text in zip(REQUESTS, right):
            assert server.ask("/v1/completions", body).text == text
        assert server.get("/v1/cache")["disk"]["corrupt_blocks"] == 0
        server.flush()
    verify = subprocess.run(
        [PROGRAM, "cache", "verify", "--prompt-cache-dir", cache_dir],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert verify.returncode == 0, verify.stdout + verify.stderr
