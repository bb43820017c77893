#!/usr/bin/env python3
"""A server under mixed load for a long time: does anything grow?

    python bench/soak.py [--minutes 10] [--warm-up 60] [--clients 6]

Clients stream, leave half way, ask for several choices, send long prompts,
send what is no request, and look at, pin, flush and remove what is cached.
Resident memory, threads and file descriptors are read each second. After the
warm-up, in which the cache fills its budget, none may grow: the slope of each
(Theil and Sen's: the median over all pairs of moments), times the time
measured, is printed and must stay below what noise can be. Exits with 1 when
something grew, or when a request that should succeed did not.
"""

import argparse
import json
import random
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from machine import ROOT, describe_machine, revision

sys.path.insert(0, str(ROOT / "tests/e2e"))

from serving import MODEL, Server  # noqa: E402
from texts import sentences  # noqa: E402

MIB = 1 << 20
# What may look like growth over the time measured.
TOLERATED = {"threads": 0.5, "descriptors": 2}
MALFORMED = [
    b"",
    b"\x00\xff\xfe\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nContent-Length: 12\r\n\r\n{\"prompt\": [",
    b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\n" + b"X: " + b"y" * 9000 + b"\r\n\r\n",
]
BAD_BODIES = [
    {"prompt": ""},
    {"prompt": "x", "max_tokens": -2},
    {"prompt": "x", "temperature": "hot"},
    {"messages": [{"role": "user"}]},
    [1, 2, 3],
]


class Sampler(threading.Thread):
    """Reads what the server's process holds, each second."""

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self._proc = Path(f"/proc/{pid}")
        self.start_time = time.monotonic()
        self.samples: list[tuple[float, dict]] = []
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.wait(1):
            status = (self._proc / "status").read_text()
            fields = dict(
                line.split(":", 1) for line in status.splitlines() if ":" in line
            )
            self.samples.append(
                (
                    time.monotonic() - self.start_time,
                    {
                        "resident MiB": int(fields["VmRSS"].split()[0]) / 1024,
                        "threads": int(fields["Threads"]),
                        "descriptors": len(list((self._proc / "fd").iterdir())),
                    },
                )
            )


def slope(points: list[tuple[float, float]]) -> float:
    """Theil and Sen's, a second."""
    return statistics.median(
        (y2 - y1) / (x2 - x1)
        for i, (x1, y1) in enumerate(points)
        for x2, y2 in points[i + 1 :]
    )


class Client(threading.Thread):
    """One of the clients, until told to stop."""

    def __init__(self, server: Server, seed: int, done: Counter):
        super().__init__(daemon=True)
        self._server = server
        self._draw = random.Random(seed)
        self._done = done
        self.stop = threading.Event()
        self.unexpected: list[str] = []

    def run(self) -> None:
        kinds = [
            (self.stream, 8), (self.leave, 5), (self.choices, 3),
            (self.read_long, 2), (self.malformed, 4), (self.refused, 4),
            (self.use_cache, 4),
        ]  # fmt: skip
        work, weights = zip(*kinds)
        while not self.stop.is_set():
            kind = self._draw.choices(work, weights)[0]
            try:
                kind()
            except Exception as error:
                self.unexpected.append(f"{kind.__name__}: {error!r}")
            self._done[kind.__name__] += 1

    def _prompt(self, size: int) -> str:
        # Some are known, some new.
        return sentences(size, seed=self._draw.randrange(200))

    def _expect(self, wanted: int, method: str, path: str, body=None) -> dict:
        status, answer = self._server.request(method, path, body)
        if status != wanted:
            self.unexpected.append(f"{method} {path}: {status} {answer}")
        return answer

    def stream(self) -> None:
        self._server.complete(
            self._prompt(self._draw.randrange(1, 12)),
            max_tokens=self._draw.randrange(1, 32),
        )

    def leave(self) -> None:
        body = {"prompt": self._prompt(8), "max_tokens": 64}
        events = self._server.stream("/v1/completions", body)
        for _ in range(self._draw.randrange(6)):
            next(events, None)
        events.close()

    def choices(self) -> None:
        body = {"prompt": self._prompt(6), "max_tokens": 8, "n": 3}
        answer = self._expect(200, "POST", "/v1/completions", body)
        if len(answer.get("choices", [])) != 3:
            self.unexpected.append(f"not three choices: {answer}")

    def read_long(self) -> None:
        self._server.complete(self._prompt(90), max_tokens=2)

    def malformed(self) -> None:
        with socket.create_connection(("127.0.0.1", self._server.port)) as peer:
            peer.sendall(self._draw.choice(MALFORMED))
            peer.shutdown(socket.SHUT_WR)
            peer.settimeout(30)
            try:
                while peer.recv(4096):
                    pass
            except ConnectionResetError:
                pass  # that is an answer, too

    def refused(self) -> None:
        body = self._draw.choice(BAD_BODIES)
        self._expect(400, "POST", "/v1/completions", body)

    def use_cache(self) -> None:
        entries = self._expect(200, "GET", "/v1/cache").get("entries", [])
        if self._draw.random() < 0.3:
            self._expect(200, "POST", "/v1/cache/flush", {})
        if entries and self._draw.random() < 0.3:
            name = self._draw.choice(entries)["id"]
            pin = self._draw.choice(["pin", "unpin", None])
            # It may be gone, or be in the making, by then.
            status, answer = (
                self._server.request("POST", f"/v1/cache/{pin}", {"id": name})
                if pin
                else self._server.request("DELETE", "/v1/cache", {"id": name})
            )
            if status not in (200, 404, 503):
                self.unexpected.append(f"{pin} {name}: {status} {answer}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--warm-up", type=float, default=60, help="seconds")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument(
        "--resident-mib", type=float, default=12, help="what may be noise"
    )
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    done: Counter = Counter()
    with tempfile.TemporaryDirectory() as directory, Server(
        "--activations", "int8",
        "--prompt-cache-bytes", 20 * 6 * MIB,
        "--prompt-cache-disk-bytes", 40 * 6 * MIB,
        cache=Path(directory), model=options.model,
    ) as server:  # fmt: skip
        sampler = Sampler(server.process.pid)
        sampler.start()
        clients = [
            Client(server, seed, done) for seed in range(options.clients)
        ]
        for client in clients:
            client.start()
        time.sleep(options.warm_up + options.minutes * 60)
        sampler.stop.set()
        for client in clients:
            client.stop.set()
        for client in clients:
            client.join(120)
        alive = server.request("GET", "/health")[0] == 200
    unexpected = [text for client in clients for text in client.unexpected]

    points = [one for one in sampler.samples if one[0] >= options.warm_up]
    seconds = points[-1][0] - points[0][0]
    report = {"seconds": seconds, "requests": dict(done), "growth": {}}
    grown = []
    tolerances = {"resident MiB": options.resident_mib, **TOLERATED}
    for name, tolerated in tolerances.items():
        values = [(at, sample[name]) for at, sample in points]
        growth = slope(values) * seconds
        report["growth"][name] = {
            "slope over the time": round(growth, 3),
            "first": values[0][1],
            "last": values[-1][1],
            "most": max(value for _, value in values),
        }
        if growth > tolerated:
            grown.append(name)
    if options.json:
        print(json.dumps(report))
    else:
        print(f"{describe_machine()}; {revision()}")
        print(f"{sum(done.values())} requests in {seconds:.0f} s: {dict(done)}")
        for name, row in report["growth"].items():
            print(f"{name}: {row}")
    for text in unexpected[:20]:
        print(f"unexpected: {text}", file=sys.stderr)
    for name in grown:
        print(f"grown: {name}", file=sys.stderr)
    return 1 if grown or unexpected or not alive else 0


if __name__ == "__main__":
    sys.exit(main())
