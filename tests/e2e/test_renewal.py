"""SIGHUP: certificates and keys of running servers are read anew."""

import os
import pty
import re
import shutil
import signal
import socket
import ssl
from pathlib import Path

import pytest
from serving import MODEL, PROGRAM, Server, read_soon, wait_for
from tls import TlsServer, make_certificate, openssl


@pytest.fixture
def pems(tmp_path: Path) -> Path:
    folder = tmp_path / "pems"
    folder.mkdir()
    make_certificate(folder)
    return folder


def renew(server: Server, says: str) -> str:
    """Sends SIGHUP and returns the line of the log that answers it."""
    before = len(server.output())
    server.process.send_signal(signal.SIGHUP)
    found = wait_for(
        lambda: re.search(
            rf"^.* renewal: {says}.*$", server.output()[before:], re.MULTILINE
        ),
        f"line that says: {says}",
    )
    return found[0]


def shown(server: TlsServer) -> str:
    """The certificate that a new connection gets."""
    return ssl.get_server_certificate(("127.0.0.1", server.port))


def ask_on(sock: ssl.SSLSocket) -> bytes:
    sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    seen = b""
    while b'"status"' not in seen:
        piece = sock.recv(65536)
        assert piece, seen
        seen += piece
    return seen


def test_a_new_certificate_is_shown_to_new_connections(pems, tmp_path):
    old = (pems / "cert.pem").read_text()
    with TlsServer(pems) as server, server.secured() as open_before:
        assert b"200 OK" in ask_on(open_before)
        assert shown(server) == old
        make_certificate(pems)
        new = (pems / "cert.pem").read_text()
        assert new != old
        assert shown(server) == old
        line = renew(server, "the certificate of ")
        assert f"{pems}/cert.pem is in force" in line
        assert shown(server) == new
        # One that has seen the old one is not let in by a ticket of then.
        with pytest.raises(ssl.SSLCertVerificationError):
            server.secured()
        server.trust(pems / "cert.pem")
        assert server.get("/health")["status"] == "ok"
        assert b"200 OK" in ask_on(open_before)
        assert server.terminate() == 0


def faults(pems: Path):
    """What can be wrong with new files: what to do, what the log then says."""
    key, cert = pems / "key.pem", pems / "cert.pem"
    openssl("genpkey", "-algorithm", "ed25519", "-out", pems / "other.pem")
    shutil.copy(cert, pems / "good.pem")
    yield lambda: cert.unlink(), f"cannot read {cert}: No such file"
    yield (
        lambda: cert.write_text(cert_cut(pems / "good.pem")),
        f"{cert} holds no PEM certificate",
    )
    yield (
        lambda: (shutil.copy(pems / "good.pem", cert),
                 shutil.copy(pems / "other.pem", key)),
        f"{key} is not the key of the certificate in {cert}",
    )  # fmt: skip


def cert_cut(path: Path) -> str:
    """As a copy that is under way."""
    return path.read_text()[:200]


def test_a_broken_certificate_leaves_the_old_one_in_force(pems):
    old = (pems / "cert.pem").read_text()
    with TlsServer(pems) as server:
        for spoil, why in faults(pems):
            spoil()
            line = renew(server, "the certificate stays as it was: ")
            assert " error " in line
            assert why in line
            assert shown(server) == old
            assert server.get("/health")["status"] == "ok"
        make_certificate(pems)
        renew(server, "the certificate of ")
        assert shown(server) == (pems / "cert.pem").read_text()


def status(server: Server, key: str) -> int:
    connection = server.connect()
    try:
        connection.request("GET", "/v1/models", headers={"X-Api-Key": key})
        return connection.getresponse().status
    finally:
        connection.close()


def test_new_keys_open_and_old_ones_do_no_more(tmp_path):
    file = tmp_path / "keys"
    file.write_text("sk-old\nsk-both\n")
    file.chmod(0o600)
    with Server("--api-key-file", file, "--api-key", "sk-line") as server:
        connection = server.connect()

        def here(key):
            """On one connection all the time."""
            connection.request("GET", "/v1/models", headers={"X-Api-Key": key})
            response = connection.getresponse()
            response.read()
            return response.status

        assert here("sk-old") == 200
        local = connection.sock.getsockname()
        file.write_text("# renewed\nsk-new\nsk-both\n")
        assert here("sk-new") == 401
        line = renew(server, "the API keys of ")
        assert f"{file} are in force" in line
        expected = {"sk-old": 401, "sk-new": 200, "sk-both": 200}
        expected |= {"sk-line": 200, "": 401}
        assert {key: status(server, key) for key in expected} == expected
        assert here("sk-new") == 200 and here("sk-old") == 401
        assert connection.sock.getsockname() == local
        connection.close()
        for text, why in (
            ("# none\n", f"there is no key in {file}"),
            ("two words\n", "must be one word"),
            (None, f"cannot read the keys in {file}: No such file"),
        ):
            file.unlink()
            if text is not None:
                file.write_text(text)
            line = renew(server, "the API keys stay as they were: ")
            assert " error " in line
            assert why in line
            assert {key: status(server, key) for key in expected} == expected
            file.touch(mode=0o600)
        assert "sk-" not in server.output()


def test_one_broken_file_does_not_keep_the_other_from_being_read(pems):
    keys = pems / "keys"
    keys.write_text("sk-old\n")
    keys.chmod(0o644)
    with TlsServer(pems, "--api-key-file", keys) as server:
        assert server.output().count("others than its owner") == 1
        (pems / "key.pem").write_text("nothing\n")
        keys.write_text("sk-new\n")
        renew(server, "the certificate stays as it was: ")
        assert server.output().count("others than its owner") == 2
        assert status(server, "sk-new") == 200
        assert status(server, "sk-old") == 401


def test_without_such_files_it_goes_on():
    with Server() as server:
        renew(server, "there are no files of keys or certificates")
        assert server.get("/health")["status"] == "ok"
        assert server.terminate() == 0


def test_answers_that_run_go_on(pems):
    with TlsServer(pems) as server:
        stream = server.stream(
            "/v1/completions",
            {"prompt": "Once", "max_tokens": 60, "temperature": 0,
             "logit_bias": {"2": -100}},
        )  # fmt: skip
        events = [next(stream)]
        make_certificate(pems)
        renew(server, "the certificate of ")
        events += stream
        text = "".join(event["choices"][0]["text"] for event in events)
        server.trust(pems / "cert.pem")
        body = {"prompt": "Once", "max_tokens": 60, "temperature": 0,
                "logit_bias": {"2": -100}}  # fmt: skip
        again = server.request("POST", "/v1/completions", body)[1]
        assert text == again["choices"][0]["text"]


def test_a_server_whose_terminal_is_gone_ends_as_by_sigterm(tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        words = [PROGRAM, "serve", "--port", "0", "--model", MODEL]
        os.execve(PROGRAM, list(map(str, words)), {"PATH": "/usr/bin:/bin"})
    try:
        said = b""
        while b"Ready: " not in said:
            said += read_soon(terminal, 65536)
        port = int(re.search(rb"http://127.0.0.1:(\d+)", said)[1])
        os.close(terminal)
        ended = wait_for(
            lambda: os.waitpid(pid, os.WNOHANG)[0] and True, "end"
        )
        assert ended
        pid = 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
