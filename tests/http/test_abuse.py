"""Ten thousand requests that are wrong, and clients that waste one's time.

What is asserted of every request that is wrong for sure: its answer's status
is 4xx, its body an error in OpenAI's shape. Of those that are framed well, the
connection goes on; of those that are not, it is closed behind the answer. Of
requests with some bytes flipped, which may be good: 200 or 4xx, or, where the
bytes end too early, a connection that closes without an answer.
"""

import json
import os
import random
import re
import select
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import malformed
import pytest
from serving import Server, wait_for

SEED = 20261130
FRAMED, BAD_HTTP, FLIPPED = 6000, 2500, 1500
BATCH = 50


@pytest.fixture(scope="module")
def server():
    with Server("--log-level", "WARNING") as running:
        yield running
        assert running.process.poll() is None, running.output()
        assert running.terminate() == 0


class Wire:
    """A client that reads answers one after the other."""

    def __init__(self, port: int, seconds: float = 30):
        self.socket = socket.create_connection(
            ("127.0.0.1", port), timeout=seconds
        )
        self.data = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before its end; the answer is there to be read

    def fill(self) -> bool:
        try:
            piece = self.socket.recv(65536)
        except ConnectionResetError:
            piece = b""
        self.data += piece
        return bool(piece)

    def answer(self) -> tuple[int, dict, bytes] | None:
        """The next answer: status, headers, body. None: there is no more."""
        while b"\r\n\r\n" not in self.data:
            if not self.fill():
                assert self.data == b""
                return None
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        headers = dict(field.split(": ", 1) for field in fields)
        size = int(headers.get("Content-Length", 0))
        while len(self.data) < size:
            assert self.fill(), "an answer ended early"
        body, self.data = self.data[:size], self.data[size:]
        status = int(line.split()[1])
        return self.answer() if status < 200 else (status, headers, body)


def assert_refused(request: bytes, answer) -> None:
    told = request[:300]
    assert answer is not None, f"no answer to {told!r}"
    status, headers, body = answer
    assert 400 <= status < 500, f"{status} to {told!r}: {body[:300]!r}"
    assert headers["Content-Type"] == "application/json", told
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}, told
    assert error["message"] and error["type"], told


def assert_well(server) -> None:
    assert server.process.poll() is None, server.output()[-2000:]
    assert server.complete("Once upon a time").completion_tokens > 0


def resident_mib(server) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) // 1024


def open_files(server) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def test_ten_thousand_malformed_requests(server):
    assert_well(server)
    before = wait_for(lambda: open_files(server), "open files")
    dice = random.Random(SEED)
    statuses = Counter()
    begin = time.monotonic()

    for _ in range(FRAMED // BATCH):
        batch = [malformed.well_framed(dice) for _ in range(BATCH)]
        with Wire(server.port) as wire:
            sender = threading.Thread(target=wire.send, args=[b"".join(batch)])
            sender.start()
            for request in batch:
                answer = wire.answer()
                assert_refused(request, answer)
                assert answer[1]["Connection"] == "keep-alive", request[:300]
                statuses[answer[0]] += 1
            sender.join()

    for _ in range(BAD_HTTP):
        request = malformed.bad_http(dice)
        with Wire(server.port) as wire:
            wire.send(request)
            answer = wire.answer()
            assert_refused(request, answer)
            assert answer[1]["Connection"] == "close", request[:300]
            assert wire.answer() is None, "an answer after the last"
            statuses[answer[0]] += 1

    for _ in range(FLIPPED):
        request = malformed.flipped(dice)
        with Wire(server.port) as wire:
            wire.send(request)
            wire.socket.shutdown(socket.SHUT_WR)
            answer = wire.answer()
            if answer is None:
                statuses["none"] += 1
                continue
            statuses[answer[0]] += 1
            if answer[0] != 200:
                assert_refused(request, answer)

    print(f"{time.monotonic() - begin:.1f} s, {dict(statuses)}")
    assert statuses.total() == FRAMED + BAD_HTTP + FLIPPED == 10_000
    assert_well(server)
    wait_for(lambda: open_files(server) <= before + 2, "closed connections")


def test_many_at_once_are_refused_alike(server):
    """Eight clients, since faults of sharing need company."""
    failures = []

    def abuse(seed: int) -> None:
        dice = random.Random(seed)
        try:
            for _ in range(40):
                request = malformed.well_framed(dice)
                with Wire(server.port) as wire:
                    wire.send(request)
                    assert_refused(request, wire.answer())
        except Exception as error:  # reported by the test's own thread
            failures.append(error)

    clients = [
        threading.Thread(target=abuse, args=[SEED + n]) for n in range(8)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert not failures, failures[0]
    assert_well(server)


def test_a_body_of_many_small_chunks_is_read(server):
    body = json.dumps({"prompt": "Once", "max_tokens": 1}).encode()
    chunks = b"".join(b"1;x=y\r\n%c\r\n" % byte for byte in body)
    with Wire(server.port) as wire:
        wire.send(
            b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
        )
        assert wire.answer()[0] == 200


def test_a_chunk_without_end_takes_no_memory(server):
    with Wire(server.port) as wire:
        wire.send(
            b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 1_000_000
        )
        answer = wire.answer()
        assert answer[0] == 431


def test_clients_that_leave_take_what_they_asked_for_with_them():
    """The workers are busy; what waits for them is dropped with its client."""
    letters = bytes(97 + byte % 26 for byte in range(256))

    def post(path: str, **body) -> bytes:
        return malformed.framed("POST", path, json.dumps(body).encode())

    def word() -> str:  # takes seconds, and little memory
        return os.urandom(2 << 20).translate(letters).decode()

    size, count = 16 << 20, 48
    texts = post("/tokenize", content="x" * size)
    prompts = post("/v1/completions", prompt="x" * size, max_tokens=1)
    with Server("--drain-seconds", 0) as server:
        busy = [Wire(server.port) for _ in range(24)]
        for wire in busy:
            wire.send(post("/tokenize", content=word()))
        before = resident_mib(server)
        for n in range(1, count + 1):
            with Wire(server.port) as wire:
                wire.send(texts if n % 8 else prompts)
            wait_for(
                lambda n=n: server.output().count("left=true") == n,
                "client that left",
            )
        grown = resident_mib(server) - before
        last = busy[-1].socket
        assert select.select([last], [], [], 0)[0] == [], "nothing waited"
        assert grown < count * size // (1 << 20) // 2

        start = time.monotonic()
        assert server.terminate() == 0
        took = time.monotonic() - start
        print(f"{grown} MiB more, ended in {took:.1f} s")
        assert took < 15
        for wire in busy:
            wire.socket.close()


def test_connections_are_bounded_and_silent_ones_keep_nobody_out():
    health = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    begun = (
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Length: 9\r\n\r\n{"
    )
    most = 8
    with Server("--max-connections", most) as server:
        # Connections that wait for a request make room, the oldest first.
        silent = [Wire(server.port) for _ in range(200)]
        start = time.monotonic()
        assert_well(server)
        assert time.monotonic() - start < 10
        assert [wire.answer() for wire in silent[:-most]] == (
            [None] * (len(silent) - most)
        )
        silent[-1].send(health)
        assert silent[-1].answer()[0] == 200
        for wire in silent:
            wire.socket.close()

        # Those that are amid one do not.
        busy = []

        def refused() -> bool:
            with Wire(server.port) as more:
                more.send(health)
                status, headers, _ = more.answer()
                assert status == 200 or int(headers["Retry-After"]) > 0
                return status == 503

        def full() -> bool:
            if refused():
                return True
            busy.append(Wire(server.port))
            busy[-1].send(begun)
            return False

        wait_for(full, "refusal")
        assert len(busy) >= most
        for wire in busy:
            wire.socket.close()
        wait_for(lambda: not refused(), "room")
