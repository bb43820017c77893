"""A server that is told to end lets answers end, or tells them why not."""

import json
import re
import signal
import socket
import threading
import time

import pytest
from cache_tool import tool
from serving import Server, ServerError, endless_model, wait_for
from texts import handbook

ENDLESS = {
    "messages": [{"role": "user", "content": "Tell a very long story."}],
    "max_tokens": 8000,
    "temperature": 0,
    "logit_bias": {"2": -100},  # the token that ends an answer
}
LONG_PROMPT = {
    "messages": [
        {"role": "system", "content": handbook()},
        {"role": "user", "content": "What is forbidden?"},
    ],
    "max_tokens": 4,
    "temperature": 0,
}
CHAT = "/v1/chat/completions"


class Asking(threading.Thread):
    """A request on a thread of its own; `result` is status and body."""

    def __init__(self, server: Server, body: dict):
        super().__init__()
        self.server, self.body, self.result = server, body, None
        self.start()

    def run(self):
        try:
            self.result = self.server.request("POST", CHAT, self.body)
        except OSError as error:
            self.result = (0, {"error": {"message": repr(error)}})


def open_stream(server: Server, body: dict) -> socket.socket:
    """A streamed request of which nothing has been read yet."""
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    data = json.dumps({**body, "stream": True}).encode()
    sock.sendall(
        f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Length: {len(data)}\r\n\r\n".encode()
        + data
    )
    return sock


def read_until(sock: socket.socket, what: bytes) -> bytes:
    seen = b""
    while what not in seen:
        piece = sock.recv(65536)
        assert piece, seen[-500:]
        seen += piece
    return seen


def read_rest(sock: socket.socket) -> bytes:
    seen = b""
    while piece := sock.recv(65536):
        seen += piece
    sock.close()
    return seen


def assert_told_why(rest: bytes) -> None:
    """The end of a stream that was cut."""
    lines = [line for line in rest.split(b"\n") if line.startswith(b"data: ")]
    assert lines[-1] == b"data: [DONE]"
    error = json.loads(lines[-2].removeprefix(b"data: "))["error"]
    assert "shutting down" in error["message"]
    assert error["type"] == "service_unavailable_error"


def assert_ended_well(server: Server, seconds: float = 60) -> None:
    assert server.process.wait(seconds) == 0, server.output()
    assert "stopped" in server.output()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_model_is_loaded_ends_at_once(number, tmp_path):
    with Server(model=endless_model(tmp_path), loaded=False) as server:
        health = server.request("GET", "/health")
        assert health == (503, {"status": "loading"})
        server.process.send_signal(number)
        assert server.process.wait(30) == 0
        lines = re.findall(r"Z info (stop.*)", server.output())
        assert lines == ["stopping state=loading", "stopped"]
        assert "Ready:" not in server.output()


def test_a_prompt_that_is_being_read_gets_its_answer():
    with Server("--drain-seconds", "100") as server:
        sock = open_stream(server, LONG_PROMPT)
        read_until(sock, b": keepalive")
        server.process.send_signal(signal.SIGTERM)
        rest = read_rest(sock)
        assert b'"finish_reason":"length"' in rest
        assert rest.rstrip().endswith(b"0") and b"data: [DONE]" in rest
        assert_ended_well(server)


def test_the_deadline_cuts_and_tells_why():
    with Server("--drain-seconds", "1") as server:
        sock = open_stream(server, ENDLESS)
        read_until(sock, b"data: ")
        asking = Asking(server, {**ENDLESS, "temperature": 0.5})
        wait_for(lambda: server.running() == 2, "two requests")
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert_told_why(read_rest(sock))
        asking.join()
        assert_ended_well(server)
        assert 1 <= time.monotonic() - start < 20
    status, answer = asking.result
    assert status == 503
    assert "shutting down" in answer["error"]["message"]
    assert answer["error"]["type"] == "service_unavailable_error"


@pytest.mark.parametrize("phase", ["prompt", "answer"])
def test_a_second_signal_cuts_at_once(phase, cache_dir):
    with Server("--drain-seconds", "100", cache=cache_dir) as server:
        body = LONG_PROMPT if phase == "prompt" else ENDLESS
        sock = open_stream(server, body)
        read_until(sock, b": keepalive" if phase == "prompt" else b"data: ")
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "stopping state=draining" in server.output(), "stop")
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert_told_why(read_rest(sock))
        assert_ended_well(server)
        assert time.monotonic() - start < 20
    assert tool("verify", cache=cache_dir).status == 0


def test_signals_during_the_flush_leave_a_whole_cache(cache_dir, cold_chat):
    question = "What is forbidden?"
    fast = ("--activations", "int8")
    with Server(*fast, cache=cache_dir) as server:
        server.chat(question, system=handbook())
        for _ in range(4):
            server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
    assert tool("verify", cache=cache_dir).status == 0
    with Server(*fast, cache=cache_dir) as server:
        warm = server.chat(question, system=handbook())
    cold = cold_chat(question, system=handbook(), flags=fast)
    assert warm.text == cold.text


def test_requests_that_wait_are_answered_too():
    one_by_one = (
        "--decode-concurrency", "1", "--prompt-concurrency", "1",
        "--drain-seconds", "100",
    )  # fmt: skip
    with Server(*one_by_one) as server:
        body = {**ENDLESS, "max_tokens": 40}
        asking = [Asking(server, {**body, "seed": i}) for i in range(4)]

        def queued():
            requests = server.get("/v1/cache")["requests"]
            return requests["running"] == 1 and requests["queued"] == 3

        wait_for(queued, "queue")
        server.process.send_signal(signal.SIGTERM)
        for one in asking:
            one.join()
        assert_ended_well(server)
    for one in asking:
        status, answer = one.result
        assert status == 200, answer
        assert answer["usage"]["completion_tokens"] == 40


def test_requests_that_wait_are_told_why_when_cut():
    one_by_one = (
        "--decode-concurrency", "1", "--prompt-concurrency", "1",
        "--drain-seconds", "0",
    )  # fmt: skip
    with Server(*one_by_one) as server:
        asking = [Asking(server, ENDLESS) for _ in range(4)]
        wait_for(
            lambda: server.get("/v1/cache")["requests"]["queued"] == 3, "queue"
        )
        server.process.send_signal(signal.SIGTERM)
        for one in asking:
            one.join()
        assert_ended_well(server)
    for one in asking:
        status, answer = one.result
        assert status == 503, answer
        assert "shutting down" in answer["error"]["message"]


def test_a_request_that_is_still_arriving_is_told():
    """Its connection was there before; new ones are refused."""
    with Server("--drain-seconds", "100") as server:
        running = open_stream(server, ENDLESS)
        read_until(running, b"data: ")

        def begin(head: str) -> socket.socket:
            sock = socket.create_connection(
                ("127.0.0.1", server.port), timeout=60
            )
            sock.sendall(head.encode())
            return sock

        health = begin("GET /health HTTP/1.1\r\nHost: localhost\r\n")
        body = json.dumps(ENDLESS)
        chat = begin(
            f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body[:10]}"
        )
        # Both have been taken in: what they sent is no longer waiting.
        assert server.get("/health") == {"status": "ok"}
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "stopping state=draining" in server.output(), "stop")
        with pytest.raises(OSError):
            server.get("/health")
        health.sendall(b"\r\n")
        answer = read_rest(health)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert json.loads(answer.split(b"\r\n\r\n")[1]) == {
            "status": "stopping"
        }
        chat.sendall(body[10:].encode())
        answer = read_rest(chat)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"Retry-After: " in answer
        assert json.loads(answer.split(b"\r\n\r\n")[1])["error"]["code"] == (
            "stopping"
        )
        server.process.send_signal(signal.SIGTERM)
        assert_told_why(read_rest(running))
        assert_ended_well(server)


def test_clients_under_load_get_an_answer_or_a_reason():
    """No request that was taken in ends without one."""
    with Server("--drain-seconds", "1") as server:
        results, ready = [], threading.Barrier(7)

        def client(index: int):
            body = {
                "messages": [{"role": "user", "content": f"Number {index}?"}],
                "max_tokens": 30,
                "temperature": 0,
            }
            ready.wait()
            while True:
                try:
                    results.append(server.request("POST", CHAT, body))
                except (OSError, ServerError):
                    return
                if results[-1][0] != 200:
                    return

        clients = [
            threading.Thread(target=client, args=(i,)) for i in range(6)
        ]
        for one in clients:
            one.start()
        ready.wait()
        wait_for(lambda: len(results) > 6, "answers", 60)
        server.process.send_signal(signal.SIGTERM)
        for one in clients:
            one.join()
        assert_ended_well(server)
    for status, answer in results:
        assert status in (200, 503), answer
        if status == 503:
            assert "shutting down" in answer["error"]["message"]
