"""Who may use the server: keys, web pages of other origins, other names."""

import contextlib
import http.client
import json
import subprocess
import time

import pytest
from calls import call
from openai import AuthenticationError, OpenAI
from serving import MODEL, PROGRAM, Server, endless_model, wait_for

KEY, OTHER = "secret-of-the-test-1", "secret-of-the-test-2"
PAGE = "http://localhost:3000"
EVIL = "https://evil.example"


def ask(server, method, path, headers=None, body=None, host=None):
    """Status, headers and body of one exchange with exactly these headers."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", server.port, timeout=60
    )
    with contextlib.closing(connection):
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{server.port}")
        data = None if body is None else json.dumps(body).encode()
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def error_of(answer):
    status, _, body = answer
    return status, json.loads(body)["error"]["code"]


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """A server with a key on the line, another in a file, one origin."""
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(f"# clients\n\n{OTHER}\n")
    file.chmod(0o600)
    flags = ["--api-key", KEY, "--api-key-file", file]
    with Server(
        *flags, "--allowed-origins", PAGE, "--log-level", "DEBUG"
    ) as running:
        yield running
        # Neither the keys nor wrong ones are told anywhere.
        assert "secret-of-the-test" not in running.output()
        assert running.terminate() == 0


TINY = {"prompt": "Once", "max_tokens": 1}


@pytest.mark.parametrize("key", [KEY, OTHER])
def test_each_key_opens(locked, key):
    for headers in (
        {"Authorization": f"Bearer {key}"},
        {"x-api-key": key},
    ):
        answer = ask(locked, "POST", "/v1/completions", headers, TINY)
        assert answer[0] == 200
    assert call(locked, "GET", "/metrics", key=key)[0] == 200


def test_openai_clients_show_their_key(locked):
    url = f"http://127.0.0.1:{locked.port}/v1"
    good = OpenAI(base_url=url, api_key=KEY, max_retries=0, timeout=60)
    assert len(good.models.list().data) == 1
    bad = OpenAI(
        base_url=url,
        api_key="secret-of-the-test-3",
        max_retries=0,
        timeout=60,
    )
    with pytest.raises(AuthenticationError) as raised:
        bad.completions.create(model="any", **TINY)
    assert raised.value.code == "invalid_api_key"
    assert raised.value.type == "invalid_request_error"
    assert "secret-of-the-test" not in str(raised.value)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {KEY}x"},
        {"Authorization": f"Bearer {KEY[:-1]}"},
        {"Authorization": f"Basic {KEY}"},
        {"x-api-key": KEY.upper()},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/chat/completions"),
        ("GET", "/v1/models"),
        ("GET", "/v1/cache"),
        ("DELETE", "/v1/cache"),
        ("GET", "/metrics"),
        ("GET", "/nowhere"),
    ],
)
def test_without_a_valid_key_all_is_closed(locked, headers, method, path):
    body = {"messages": []} if method == "POST" else None
    answer = ask(locked, method, path, headers, body)
    assert error_of(answer) == (401, "invalid_api_key")
    assert answer[1]["WWW-Authenticate"] == "Bearer"
    assert KEY.encode() not in answer[2]


def test_health_and_the_page_are_open(locked):
    for path in ("/health", "/", "/icon.svg", "/js/main.js", "/css/base.css"):
        assert ask(locked, "GET", path)[0] == 200, path


def test_a_refused_body_is_not_read(locked):
    connection = locked.connect()
    with contextlib.closing(connection):
        connection.putrequest("POST", "/v1/completions")
        connection.putheader("Content-Length", str(32 << 20))
        connection.endheaders(b"{")
        start = time.monotonic()
        assert connection.getresponse().status == 401
        assert time.monotonic() - start < 5


def test_answers_tell_which_page_may_read_them(locked):
    own = {"Origin": PAGE, "Authorization": f"Bearer {KEY}"}
    streamed = {**TINY, "stream": True}
    for status, headers, body in (
        (200, own, TINY),
        (200, own, streamed),
        (400, own, {"prompt": 1}),
        (401, {"Origin": PAGE}, TINY),
    ):
        answer = ask(locked, "POST", "/v1/completions", headers, body)
        assert answer[0] == status
        assert answer[1]["Access-Control-Allow-Origin"] == PAGE
        assert answer[1]["Vary"] == "Origin"
        assert "X-Request-Id" in answer[1]["Access-Control-Expose-Headers"]
    other = {**own, "Origin": EVIL}
    answer = ask(locked, "POST", "/v1/completions", other, TINY)
    assert answer[0] == 200  # a key cannot be forged by a page
    assert answer[1]["Access-Control-Allow-Origin"] is None
    assert answer[1]["Vary"] == "Origin"


def test_preflights_need_no_key(locked):
    headers = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    status, answered, body = ask(
        locked, "OPTIONS", "/v1/chat/completions", headers
    )
    assert (status, body) == (204, b"")
    assert answered["Content-Length"] is None
    assert answered["Access-Control-Allow-Origin"] == PAGE
    assert "POST" in answered["Access-Control-Allow-Methods"]
    assert "Authorization" in answered["Access-Control-Allow-Headers"]
    assert int(answered["Access-Control-Max-Age"]) > 0
    headers["Origin"] = EVIL
    answer = ask(locked, "OPTIONS", "/v1/chat/completions", headers)
    assert error_of(answer) == (403, "origin_not_allowed")


def test_by_default_pages_of_others_are_kept_out(server):
    own = f"http://127.0.0.1:{server.port}"
    for origin in (EVIL, "null", PAGE):
        for method, path in (
            ("POST", "/v1/completions"),
            ("POST", "/v1/cache/flush"),
            ("DELETE", "/v1/cache"),
        ):
            answer = ask(server, method, path, {"Origin": origin}, TINY)
            assert error_of(answer) == (403, "origin_not_allowed")
        status, headers, _ = ask(
            server, "GET", "/v1/models", {"Origin": origin}
        )
        assert status == 200
        assert headers["Access-Control-Allow-Origin"] is None
    answer = ask(server, "POST", "/v1/completions", {"Origin": own}, TINY)
    assert answer[0] == 200


def test_a_loopback_server_is_known_by_its_own_names_only(server):
    for host in ("localhost", "127.0.0.1:1", "[::1]", "x.localhost"):
        assert ask(server, "GET", "/v1/models", host=host)[0] == 200, host
    for host in ("evil.example", "localhost.evil.example", "a b", "@"):
        for path in ("/v1/models", "/health", "/"):
            answer = ask(server, "GET", path, host=host)
            assert error_of(answer) == (403, "host_not_allowed")
            assert b"--allowed-origins" in answer[2]


def test_all_origins_can_be_allowed():
    with Server("--allowed-origins", "*") as server:
        wait_for(lambda: "every web page" in server.output(), "a warning")
        answer = ask(
            server,
            "POST",
            "/v1/completions",
            {"Origin": EVIL},
            TINY,
            host="any.example",
        )
        assert answer[0] == 200
        assert answer[1]["Access-Control-Allow-Origin"] == "*"
        assert answer[1]["Vary"] is None


def test_an_open_door_is_warned_of():
    with Server("--host", "0.0.0.0") as server:
        wait_for(lambda: "--api-key ends that" in server.output(), "a warning")
        assert ask(server, "GET", "/health")[0] == 200
    with Server("--host", "0.0.0.0", "--api-key", KEY) as server:
        wait_for(lambda: "Ready: " in server.output(), "readiness printed")
        assert "ends that" not in server.output()
        assert "Authorization: Bearer KEY" in server.output()


def test_a_file_that_others_read_is_warned_of(tmp_path):
    file = tmp_path / "keys"
    file.write_text(KEY)
    file.chmod(0o644)
    with Server("--api-key-file", file) as server:
        assert call(server, "GET", "/v1/models", key=KEY)[0] == 200
        wait_for(lambda: "chmod 600" in server.output(), "a warning")
        assert KEY not in server.output()


def test_the_key_that_opens_is_the_one_that_names_a_namespace():
    keys = ["--api-key", KEY, "--api-key", OTHER]
    with Server(*keys, "--cache-namespaces") as server:
        prompt = "One two three four five six seven eight nine ten. " * 40
        body = {"prompt": prompt, "max_tokens": 1}

        def cached(headers) -> int:
            status, _, text = ask(
                server, "POST", "/v1/completions", headers, body
            )
            assert status == 200, text
            usage = json.loads(text)["usage"]
            return usage["prompt_tokens_details"]["cached_tokens"]

        assert cached({"Authorization": f"Bearer {KEY}"}) == 0
        assert cached({"Authorization": f"Bearer {OTHER}"}) == 0
        assert cached({"x-api-key": KEY}) > 100
        # A second key in the other header opens no other namespace.
        both = {"Authorization": f"Bearer {OTHER}", "x-api-key": KEY}
        assert ask(server, "DELETE", "/v1/cache", both)[0] == 200
        assert cached({"x-api-key": KEY}) > 100
        assert cached({"x-api-key": OTHER}) == 0


def test_keys_come_from_the_environment_and_are_not_printed(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("AFTERGLOW_API_KEY", KEY)
    with Server() as server:
        assert call(server, "GET", "/v1/models")[0] == 401
        assert call(server, "GET", "/v1/models", key=KEY)[0] == 200
    file = tmp_path / "config"
    file.write_text(f'api-key = ["{OTHER}"]\n')
    for flags in (["--api-key", OTHER], [], ["--config", file]):
        printed = subprocess.run(
            [PROGRAM, "serve", *flags, "--print-config"],
            check=True,
            capture_output=True,
            text=True,
        )
        assert "port" in printed.stdout
        assert "secret-of-the-test" not in printed.stdout + printed.stderr


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (["--api-key", ""], 2, "one word of printable ASCII"),
        (["--api-key", "two words"], 2, "one word of printable ASCII"),
        (["--api-key-file", "{tmp}/missing"], 1, "No such file"),
        (["--api-key-file", "{tmp}"], 1, "Is a directory"),
        (["--api-key-file", "{tmp}/empty"], 1, "there is no key"),
        (["--api-key-file", "{tmp}/odd"], 1, "odd:3: an API key must be"),
        (["--api-key-file", ""], 2, "--api-key-file: must not be empty"),
        (
            ["--ssl-cert-file", "", "--ssl-key-file", ""],
            2,
            "--ssl-cert-file: must not be empty",
        ),
        (
            ["--ssl-cert-file", "cert.pem", "--ssl-key-file", ""],
            2,
            "--ssl-key-file: must not be empty",
        ),
        (["--host", ""], 2, "--host: must not be empty"),
        (["--allowed-origins", ""], 2, "'' is no origin"),
        (["--allowed-origins", "localhost:3000"], 2, "'localhost:3000'"),
        (["--allowed-origins", f"{PAGE},null"], 2, "'null' is no origin"),
    ],
)
def test_what_cannot_be_meant_is_an_error_at_start(
    tmp_path, flags, status, message
):
    (tmp_path / "empty").write_text("# nothing\n\n")
    (tmp_path / "odd").write_text("# mine\nsk-one\nsk-two # of B\n")
    flags = [flag.replace("{tmp}", str(tmp_path)) for flag in flags]
    ended = subprocess.run(
        [PROGRAM, "serve", "--port", "0", "--model", MODEL, *flags],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == status, ended
    assert message in ended.stderr
    assert "two words" not in ended.stderr


@pytest.mark.parametrize(
    "name", ["API_KEY", "API_KEY_FILE", "SSL_CERT_FILE", "SSL_KEY_FILE"]
)
def test_an_empty_variable_that_would_protect_is_warned_of(
    monkeypatch, tmp_path, name
):
    warning = f"AFTERGLOW_{name} is set but empty, which counts as not set"
    model = endless_model(tmp_path)
    with Server(model=model, loaded=False) as server:
        assert server.terminate() == 0
        assert "is set but empty" not in server.output()
    monkeypatch.setenv(f"AFTERGLOW_{name}", "")
    with Server(model=model, loaded=False) as server:
        wait_for(lambda: warning in server.output(), "warning")


def test_credentials_of_systemd_are_read_without_a_warning(
    monkeypatch, tmp_path
):
    keys = tmp_path / "keys"
    keys.write_text(f"{KEY}\n")
    keys.chmod(0o440)
    model = endless_model(tmp_path)
    warning = f"others than its owner may read or change {keys}"
    flags = ["--api-key-file", keys]
    with Server(*flags, model=model, loaded=False) as server:
        wait_for(lambda: warning in server.output(), "warning")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    with Server(*flags, model=model, loaded=False) as server:
        assert call(server, "GET", "/v1/models")[0] == 401
        assert server.terminate() == 0
        assert warning not in server.output()
