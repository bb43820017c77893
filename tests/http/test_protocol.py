"""What happens on the wire: odd clients, stops, and the other endpoints."""

import json
import signal
import socket
import threading
import time

import pytest
from serving import Server, endless_model, wait_for

LONG = {"messages": [{"role": "user", "content": "Tell a very long story."}]}


def raw_post(port: int, path: str, body: bytes) -> tuple[int, dict]:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        sock.sendall(head.encode() + body)
        data = b""
        while piece := sock.recv(65536):
            data += piece
    head, _, text = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(text)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"messages": [], "messages": []}',
        b'{"prompt": "\xff"}',
        b'{"prompt": "\\ud800"}',
        b'{"prompt": 1e999}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\x00\x01\x02",
    ],
)
def test_malformed_bodies_are_refused(server, body):
    for path in ("/v1/chat/completions", "/v1/completions"):
        status, answer = raw_post(server.port, path, body)
        assert status == 400
        assert answer["error"]["type"] == "invalid_request_error"
    assert server.get("/health") == {"status": "ok"}


def test_unknown_paths_and_methods(server):
    assert server.request("GET", "/nowhere")[0] == 404
    status, body = server.request("GET", "/v1/chat/completions")
    assert status == 405
    assert "POST" in body["error"]["message"]


def test_the_cache_is_told_and_flushed(server):
    server.chat("What is two and two?")
    cache = server.get("/v1/cache")
    assert cache["entry_count"] == len(cache["entries"]) > 0
    assert cache["ram"]["blocks"] > 0
    assert cache["disk"] is None
    assert {e["type"] for e in cache["entries"]} <= {
        "assistant",
        "user",
        "system",
    }
    assert server.flush()["complete"] is True


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_the_engine(server, stream):
    body = json.dumps({**LONG, "max_tokens": 4000, "stream": stream}).encode()
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    sock.sendall(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
        + f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    wait_for(lambda: server.running() == 1, "running request")
    sock.close()
    wait_for(lambda: server.running() == 0, "cancelled request", 10)


def test_a_half_closed_client_gets_its_answer(server):
    body = json.dumps({**LONG, "max_tokens": 8}).encode()
    with socket.create_connection(
        ("127.0.0.1", server.port), timeout=60
    ) as sock:
        sock.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
            + f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        sock.shutdown(socket.SHUT_WR)
        data = b""
        while piece := sock.recv(65536):
            data += piece
    answer = json.loads(data[data.index(b"\r\n\r\n{") + 4 :])
    assert answer["usage"]["completion_tokens"] == 8


def test_it_listens_before_the_model_is_loaded(tmp_path):
    with Server(model=endless_model(tmp_path), loaded=False) as server:
        health = server.request("GET", "/health")
        assert health == (503, {"status": "loading"})
        status, body = server.request("POST", "/v1/chat/completions", LONG)
        assert status == 503
        assert body["error"]["code"] == "model_loading"
        assert "Ready:" not in server.output()


def test_readiness_is_printed_after_the_address(server):
    wait_for(lambda: "Ready: " in server.output(), "readiness printed")
    text = server.output()
    assert text.index("Listening on http://") < text.index("Ready: ")


def test_sigterm_lets_a_stream_end():
    with Server() as server:
        events = server.stream(
            "/v1/chat/completions", {**LONG, "max_tokens": 60}
        )
        next(events)
        server.process.send_signal(signal.SIGTERM)
        reasons = [
            choice["finish_reason"]
            for event in events
            for choice in event["choices"]
        ]
        assert reasons[-1] in ("stop", "length")
        assert server.process.wait(30) == 0


def test_a_second_sigterm_cuts_the_stream():
    with Server() as server:
        events = server.stream(
            "/v1/chat/completions",
            {**LONG, "max_tokens": 8000, "logit_bias": {"2": -100}},
        )
        next(events)
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "stopping" in server.output(), "stop")
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        last = {}
        for event in events:
            last = event
        assert "shutting down" in last["error"]["message"]
        assert server.process.wait(30) == 0
        assert time.monotonic() - start < 8


def test_a_stopping_server_takes_no_more():
    with Server() as server:
        events = server.stream(
            "/v1/chat/completions", {**LONG, "max_tokens": 100}
        )
        next(events)
        server.process.send_signal(signal.SIGTERM)

        def refused():
            try:
                server.request("GET", "/health")
            except OSError:
                return True
            return False

        wait_for(refused, "refusal", 10)
        reader = threading.Thread(target=lambda: list(events))
        reader.start()
        assert server.process.wait(30) == 0
        reader.join()
