"""The server by TLS, with certificates that openssl makes here."""

import contextlib
import http.client
import json
import signal
import socket
import ssl
import subprocess
import time

import httpx2
import pytest
from openai import APIConnectionError, OpenAI
from serving import MODEL, PROGRAM, wait_for
from tls import TlsServer, make_certificate, openssl

TINY = {"prompt": "Once", "max_tokens": 1}
LONG = {"messages": [{"role": "user", "content": "Tell a very long story."}]}


@pytest.fixture(scope="module")
def pems(tmp_path_factory):
    """A folder with a certificate, its key, and a stranger's key."""
    folder = tmp_path_factory.mktemp("tls")
    make_certificate(folder)
    openssl(
        "genpkey", "-algorithm", "EC", "-pkeyopt",
        "ec_paramgen_curve:prime256v1", "-out", folder / "other.pem",
    )  # fmt: skip
    openssl(
        "pkey", "-in", folder / "key.pem", "-aes256", "-passout", "pass:x",
        "-out", folder / "locked.pem",
    )  # fmt: skip
    (folder / "empty.pem").write_text("nothing\n")
    for file in folder.iterdir():
        file.chmod(0o600)
    return folder


@pytest.fixture(scope="module")
def server(pems):
    with TlsServer(pems, "--log-level", "DEBUG") as running:
        yield running
        assert "warn" not in running.output()
        assert running.terminate() == 0


def post(path: str, body: dict) -> bytes:
    data = json.dumps(body).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    ).encode() + data


def read_all(sock) -> bytes:
    """Until the end, which must be said by TLS where it is TLS."""
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


def test_the_address_says_https(server):
    assert f"Listening on https://127.0.0.1:{server.port}" in server.output()
    line = f"curl -s https://127.0.0.1:{server.port}/v1"
    wait_for(lambda: line in server.output(), "readiness printed")


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_answers_and_streams(server, version):
    number = getattr(ssl.TLSVersion, version)
    server.context.minimum_version = server.context.maximum_version = number
    try:
        assert server.get("/health") == {"status": "ok"}
        whole = server.complete("Once upon a time", max_tokens=8)
        assert whole.completion_tokens == 8
        with server.secured() as sock:
            assert sock.version() == version.replace("_", ".")
    finally:
        server.context.minimum_version = ssl.TLSVersion.TLSv1_2
        server.context.maximum_version = ssl.TLSVersion.MAXIMUM_SUPPORTED


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_old_versions_are_refused(server):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        server.secured(context)


def test_httpx_and_the_openai_client(server):
    url = f"https://localhost:{server.port}/v1"
    with httpx2.Client(verify=server.context, timeout=60) as client:
        for _ in range(3):
            assert client.get(url + "/models").status_code == 200
        openai = OpenAI(base_url=url, api_key="none", http_client=client)
        pieces = list(
            openai.chat.completions.create(
                model="any", max_tokens=6, stream=True, **LONG
            )
        )
        assert pieces[-1].choices[0].finish_reason == "length"
    stranger = OpenAI(base_url=url, api_key="none", max_retries=0, timeout=30)
    with pytest.raises(APIConnectionError):
        stranger.models.list()  # who does not know the certificate


def test_a_large_body_and_a_pipeline_pass(server):
    with server.secured() as sock:
        # More than many TLS records; refused by its meaning, not its way.
        body = {"prompt": "x", "max_tokens": 0, "user": "y" * 3_000_000}
        sock.sendall(post("/v1/completions", body))
        response = http.client.HTTPResponse(sock)
        response.begin()
        assert response.status == 400
        assert json.loads(response.read())["error"]["param"] == "max_tokens"
        get = b"GET /js/main.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
        sock.sendall(get * 40)
        for _ in range(40):
            response = http.client.HTTPResponse(sock)
            response.begin()
            assert response.status == 200 and len(response.read()) > 100


def test_plain_http_is_told_so(server):
    with server.plain() as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        start = time.monotonic()
        answer = read_all(sock)
        assert time.monotonic() - start < 5
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"https://" in answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"]


@pytest.mark.parametrize(
    "noise",
    [b"\x00" * 100, b"SSH-2.0-x\r\n", b"\x17\x03\x03\x00\x05hello"],
)
def test_noise_is_hung_up_on(server, noise):
    with server.plain() as sock:
        sock.sendall(noise)
        start = time.monotonic()
        with contextlib.suppress(ConnectionResetError):
            assert b"HTTP" not in read_all(sock)
        assert time.monotonic() - start < 5
    assert server.get("/health") == {"status": "ok"}


def test_a_handshake_has_a_deadline(server):
    with server.plain() as sock:
        start = time.monotonic()
        sock.sendall(b"\x16\x03\x01")
        with contextlib.suppress(ConnectionResetError):
            assert read_all(sock) == b""
        assert 5 < time.monotonic() - start < 20


def test_the_end_is_said_by_tls(server):
    """A close without it could be an attacker's; Python raises then."""
    with server.secured() as sock:
        sock.suppress_ragged_eofs = False
        data = post("/v1/completions", TINY)
        sock.sendall(data.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert read_all(sock).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_says_goodbye_gets_its_answer(server):
    """close_notify ends one direction only (RFC 8446, 6.1)."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = server.context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with server.plain() as sock:

        def pump(operation):
            while True:
                try:
                    return operation()
                except ssl.SSLWantReadError:
                    sock.sendall(outgoing.read())
                    piece = sock.recv(65536)
                    incoming.write(piece) if piece else incoming.write_eof()

        pump(tls.do_handshake)
        tls.write(post("/v1/chat/completions", {**LONG, "max_tokens": 24}))
        sock.sendall(outgoing.read())
        wait_for(lambda: server.running() == 1, "running request")
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.unwrap()  # leaves our close_notify in outgoing
        sock.sendall(outgoing.read())
        data = b""
        # OpenSSL reads no more behind its own goodbye: count the records.
        while piece := sock.recv(65536):
            data += piece
        assert len(data) > 500
    wait_for(lambda: server.running() == 0, "end of the request")
    last = server.output().splitlines()
    answered = [x for x in last if "path=/v1/chat/completions" in x]
    assert "status=200" in answered[-1] and "left" not in answered[-1]


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_the_engine(server, stream):
    sock = server.secured()
    body = {**LONG, "max_tokens": 4000, "stream": stream}
    sock.sendall(post("/v1/chat/completions", body))
    wait_for(lambda: server.running() == 1, "running request")
    sock.close()
    wait_for(lambda: server.running() == 0, "cancelled request", 10)


def test_sigterm_lets_a_stream_end(pems):
    with TlsServer(pems) as server:
        events = server.stream(
            "/v1/chat/completions", {**LONG, "max_tokens": 40}
        )
        next(events)
        server.process.send_signal(signal.SIGTERM)
        reasons = [c["finish_reason"] for e in events for c in e["choices"]]
        assert reasons[-1] in ("stop", "length")
        assert server.process.wait(30) == 0


def test_a_key_that_others_read_is_warned_of(pems, tmp_path):
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_bytes((pems / name).read_bytes())
    (tmp_path / "key.pem").chmod(0o644)
    with TlsServer(tmp_path) as server:
        wait_for(lambda: "chmod 600" in server.output(), "a warning")


def serve_until_it_ends(folder, flags):
    return subprocess.run(
        [PROGRAM, "serve", "--port", "0", "--model", MODEL, *flags],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--ssl-cert-file", "gone.pem", "--ssl-key-file", "key.pem"],
         "gone.pem: No such file"),
        (["--ssl-cert-file", "cert.pem", "--ssl-key-file", "gone.pem"],
         "gone.pem: No such file"),
        (["--ssl-cert-file", "empty.pem", "--ssl-key-file", "key.pem"],
         "empty.pem holds no PEM certificate"),
        (["--ssl-cert-file", "cert.pem", "--ssl-key-file", "empty.pem"],
         "empty.pem holds no PEM private key"),
        (["--ssl-cert-file", "key.pem", "--ssl-key-file", "cert.pem"],
         "key.pem holds no PEM certificate"),
        (["--ssl-cert-file", "cert.pem", "--ssl-key-file", "other.pem"],
         "other.pem is not the key of the certificate"),
        (["--ssl-cert-file", "cert.pem", "--ssl-key-file", "locked.pem"],
         "locked.pem is encrypted"),
        (["--ssl-cert-file", ".", "--ssl-key-file", "key.pem"],
         "Is a directory"),
    ],
)  # fmt: skip
def test_wrong_files_are_errors_at_start(pems, flags, message):
    ended = serve_until_it_ends(pems, flags)
    assert ended.returncode == 1, ended
    assert message in ended.stderr, ended.stderr


@pytest.mark.parametrize(
    "flags",
    [["--ssl-cert-file", "cert.pem"], ["--ssl-key-file", "key.pem"]],
)
def test_half_of_the_files_is_a_wrong_command_line(pems, flags):
    ended = serve_until_it_ends(pems, flags)
    assert ended.returncode == 2, ended
    assert "needs --ssl-" in ended.stderr, ended.stderr
