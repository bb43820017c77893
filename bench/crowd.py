"""What idle and slow-reading connections cost others: the latency of short
completions with and without them, measured in turns so that the machine's
moods touch both alike."""

import argparse
import contextlib
import os
import socket
import statistics
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/e2e"))

from serving import MODEL, Server, wait_for  # noqa: E402

GET = b"GET /js/main.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Crowd:
    """Idle connections, every second of which was of use once, and readers
    that have asked for far more than they take: the server always has
    something for them that it cannot get rid of."""

    def __init__(self, server: Server, idle: int, slow: int):
        self._sockets = []
        self._asked = []
        self._stop = threading.Event()
        self.taken = 0
        for number in range(idle):
            self._connect(server, HEALTH if number % 2 else b"")
        readers = [
            self._connect(server, GET * 2000, receive_buffer=4096)
            for _ in range(slow)
        ]
        self._thread = threading.Thread(target=self._read, args=[readers])
        self._thread.start()

    def _connect(self, server, request, receive_buffer=0) -> socket.socket:
        sock = socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.connect(("127.0.0.1", server.port))
        self._sockets.append(sock)
        sock.setblocking(False)
        if request:
            sock.send(request)
            self._asked.append(sock)
        return sock

    def _read(self, readers) -> None:
        """A few hundred bytes each, ten times a second."""
        while not self._stop.wait(0.1):
            for sock in readers:
                with contextlib.suppress(BlockingIOError):
                    self.taken += len(sock.recv(256))

    def answered(self) -> bool:
        """Whether all that have asked have got some of what they asked for."""
        try:
            for sock in self._asked:
                sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        return True

    def alive(self) -> int:
        """Connections that the server has not closed."""
        count = 0
        for sock in self._sockets:
            try:
                count += sock.recv(1, socket.MSG_PEEK) != b""
            except BlockingIOError:
                count += 1
            except OSError:
                pass
        return count

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        for sock in self._sockets:
            sock.close()


@dataclass
class Latencies:
    """Milliseconds of single requests."""

    alone: list[float]
    crowded: list[float]

    @staticmethod
    def p95(times: list[float]) -> float:
        return statistics.quantiles(times, n=20)[-1]

    def growth(self) -> float:
        """Of the median: 0.1 is 10 % slower in the crowd."""
        alone = statistics.median(self.alone)
        return statistics.median(self.crowded) / alone - 1

    def __str__(self):
        rows = [
            f"{name:8}  median {statistics.median(times):7.2f} ms"
            f"  p95 {self.p95(times):7.2f} ms  of {len(times)}"
            for name, times in vars(self).items()
        ]
        return "\n".join([*rows, f"growth of the median {self.growth():+.1%}"])


def open_files(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def measure(
    server: Server, idle: int, slow: int, rounds: int, requests: int
) -> Latencies:
    """In each round so many requests alone, then as many in the crowd."""
    result = Latencies([], [])

    def ask(times: list[float]) -> None:
        for _ in range(requests):
            begin = time.perf_counter()
            answer = server.complete("The cat sat on the", max_tokens=8)
            times.append((time.perf_counter() - begin) * 1000)
            assert answer.completion_tokens > 0

    ask([])  # warm up
    for _ in range(rounds):
        ask(result.alone)
        before = open_files(server)
        with Crowd(server, idle, slow) as crowd:
            wait_for(crowd.answered, "answers to the crowd")
            ask(result.crowded)
            if crowd.alive() < idle + slow or (slow and crowd.taken == 0):
                raise SystemExit("the crowd left: nothing was measured")
        wait_for(lambda: open_files(server) <= before, "end of the crowd")
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--idle", type=int, default=200)
    parser.add_argument("--slow", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument(
        "--most", type=float, help="fail when the median grows by more: 0.1"
    )
    args = parser.parse_args()
    with Server("--log-level", "WARNING", model=args.model) as server:
        result = measure(
            server, args.idle, args.slow, args.rounds, args.requests
        )
    print(result)
    return int(args.most is not None and result.growth() > args.most)


if __name__ == "__main__":
    sys.exit(main())
