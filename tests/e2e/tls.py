"""Certificates that openssl makes, and a server that shows one."""

import http.client
import socket
import ssl
import subprocess
from pathlib import Path

from serving import Server


def openssl(*words) -> None:
    subprocess.run(
        ["openssl", *map(str, words)], check=True, capture_output=True
    )


def make_certificate(folder: Path) -> None:
    """A self-signed one of localhost in cert.pem, its key in key.pem."""
    openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt",
        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", "/CN=localhost",
        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-keyout", folder / "key.pem", "-out", folder / "cert.pem",
    )  # fmt: skip
    (folder / "key.pem").chmod(0o600)


class TlsServer(Server):
    """A server whose own tests, too, talk to it by TLS."""

    def __init__(self, pems: Path, *flags):
        self.trust(pems / "cert.pem")
        super().__init__(
            "--ssl-cert-file", pems / "cert.pem",
            "--ssl-key-file", pems / "key.pem", *flags,
        )  # fmt: skip

    def trust(self, certificate: Path) -> None:
        """From now on this one alone."""
        self.context = ssl.create_default_context(cafile=certificate)

    def connect(self):
        return http.client.HTTPSConnection(
            "localhost", self.port, timeout=60, context=self.context
        )

    def plain(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def secured(self, context=None) -> ssl.SSLSocket:
        return (context or self.context).wrap_socket(
            self.plain(), server_hostname="localhost"
        )
