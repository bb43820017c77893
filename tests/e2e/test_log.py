"""What an operator reads, and what must not be in it."""

import json
import re
import socket

from serving import Server, wait_for

SECRET = "Xylophon"  # in all that clients send and nobody should read
LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
    r"(debug|info|warning|error|critical) (.*)"
)
PAIR = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|[^\s"=\\]+)')


def log_of(server: Server) -> list[tuple[str, str]]:
    """Level and message of each line; all lines but stdout's must be such."""
    lines = []
    in_example = False
    for line in server.output().splitlines():
        if line.startswith(("Listening on ", "Ready: ")) or in_example:
            # The example of a request, up to its end.
            in_example = line.startswith("Ready: ") or (
                in_example and not line.startswith("    -d ")
            )
            continue
        if not line:
            continue
        found = LINE.fullmatch(line)
        assert found, line
        lines.append((found[1], found[2]))
    return lines


def events(server: Server, event: str) -> list[dict[str, str]]:
    """The pairs of each line of that event, all of which must be pairs."""
    result = []
    for _, message in log_of(server):
        if message.split(" ")[0] != event:
            continue
        rest = message.removeprefix(event)
        assert PAIR.sub("", rest) == "", message
        result.append(dict(PAIR.findall(rest)))
    return result


def ask(server: Server, body: dict, path="/v1/chat/completions"):
    """Status, the id that the head names, and the body."""
    connection = server.connect()
    try:
        connection.request(
            "POST",
            path,
            json.dumps(body),
            {"Authorization": f"Bearer {SECRET}-key"},
        )
        response = connection.getresponse()
        return response.status, response.headers["X-Request-Id"], (
            response.read()
        )
    finally:
        connection.close()


def send(server: Server, text: bytes) -> bytes:
    with socket.create_connection(
        ("127.0.0.1", server.port), timeout=60
    ) as sock:
        sock.sendall(text)
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
        return answer


def chat(text: str, **options) -> dict:
    messages = [{"role": "user", "content": text}]
    return {"messages": messages, "max_tokens": 3, **options}


def test_a_request_has_two_lines_with_its_id():
    with Server() as server:
        for options in ({}, {"stream": True}):
            status, name, _ = ask(server, chat("Hello", **options))
            assert status == 200 and name
            wait_for(
                lambda name=name: any(
                    line.get("id") == name for line in events(server, "http")
                ),
                "the line of the exchange",
            )
            (line,) = [
                line
                for line in events(server, "request")
                if line["id"] == name
            ]
            assert line["finish"] in ("stop", "length")
            assert int(line["prompt_n"]) > 0
            assert 0 < int(line["predicted_n"]) <= 3
            for took in ("queue_ms", "prompt_ms", "predicted_ms"):
                assert float(line[took]) >= 0
            (line,) = [
                line for line in events(server, "http") if line["id"] == name
            ]
            assert line["method"] == "POST"
            assert line["path"] == "/v1/chat/completions"
            assert line["status"] == "200"
            assert float(line["ms"]) > 0 and int(line["bytes"]) > 100


def test_a_request_that_fails_is_named_too():
    with Server() as server:
        for body in (
            {"prompt": "word " * 9000},
            {"prompt": [999_999]},
            {"prompt": "x", "top_k": 2_000_000},
        ):
            status, name, _ = ask(server, body, "/v1/completions")
            assert status == 400 and name, body
            (line,) = [
                line
                for line in events(server, "request")
                if line["id"] == name
            ]
            assert line["finish"] == "error" and line["status"] == "400"
            assert line["code"]


def test_a_client_that_leaves_is_told():
    with Server() as server:
        body = chat("Hello", max_tokens=4000, stream=True)
        body["logit_bias"] = {"2": -100}
        events_of = server.stream("/v1/chat/completions", body)
        name = next(events_of)["id"]
        events_of.close()

        def ended():
            return [
                line["finish"]
                for line in events(server, "request")
                if line["id"] == name
            ]

        wait_for(ended, "the line of the request")
        assert ended() == ["cancelled"]


def test_nothing_that_clients_say_is_in_the_log():
    with Server("--log-level", "INFO") as server:
        good = [
            chat(f"{SECRET} one"),
            chat(f"{SECRET} two", stream=True, stop=[SECRET]),
            chat("x", prompt_cache_key=SECRET, user=SECRET, model=SECRET),
            chat("x", chat_template_kwargs={SECRET: SECRET}),
        ]
        for body in good:
            assert ask(server, body)[0] == 200, body
        assert ask(server, {"prompt": SECRET}, "/v1/completions")[0] == 200
        bad = [
            chat(f"{SECRET} " * 20_000),
            chat("x", temperature=SECRET),
            chat("x", **{SECRET: 1}),
            {"messages": [{"role": SECRET, "content": 1}]},
            {"messages": [{"role": "user", "content": [{"type": SECRET}]}]},
            chat("x", logit_bias={SECRET: 1}),
            chat("x", chat_template_kwargs={"messages": SECRET}),
        ]
        for body in bad:
            assert ask(server, body)[0] == 400, body
        host = b"HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        secret = SECRET.encode()
        for text in (
            b"POST /v1/completions " + host + b"Content-Length: 12\r\n\r\n"
            b"{" + secret + b"\n\r\t",
            b"POST /v1/completions?x=" + secret + b" " + host + b"\r\n",
            b"GET /v1/cache?id=" + secret + b" " + host + b"\r\n",
            b"GET /health " + host + b"X-Request-Id: " + secret + b"\r\n\r\n",
            b"GET /health " + host + b"Cookie: " + secret + b"\r\n\r\n",
        ):
            assert send(server, text).startswith(b"HTTP/1.1 ")
        assert server.terminate() == 0
        log_of(server)
        assert SECRET not in server.output()


def test_paths_do_not_break_out_of_their_line():
    paths = [
        b"/a%0Acritical%20request%20id=x",
        b'/"%20status=200%20"',
        b"/%22%5C",
        b"/\xff%FF%1B[2J",
        b"/a=b",
    ]
    with Server() as server:
        for path in paths:
            answer = send(
                server,
                b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\n"
                b"Connection: close\r\nContent-Length: 0\r\n\r\n",
            )
            assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400"))
        assert server.terminate() == 0
        lines = [
            line
            for line in events(server, "http")
            if line["path"] != "/health"  # asked until it was ready
        ]
        assert len(lines) == len(paths)
        assert {line["status"] for line in lines} <= {"404", "400"}
        assert "\x1b" not in server.output()


def test_what_stopping_does_is_told():
    with Server() as server:
        assert server.terminate() == 0
        messages = [message for _, message in log_of(server)]
    # But for the questions whether it is ready.
    messages = [text for text in messages if not text.startswith("http ")]
    ready, draining, stopped = messages
    assert ready.startswith("ready version=")
    assert re.fullmatch(
        r"stopping state=draining drain_s=10 connections=\d+", draining
    )
    assert stopped == "stopped"
