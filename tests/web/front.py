#!/usr/bin/env python3
"""Serves web/page from disk and passes everything else to a server.

For working on the page without building the program:

    tests/web/front.py --port 8090 --server http://127.0.0.1:8080
"""

import argparse
import contextlib
import http.client
import mimetypes
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

PAGE = Path(__file__).resolve().parent.parent.parent / "web" / "page"
POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HOP = {"connection", "keep-alive", "transfer-encoding", "host"}
mimetypes.add_type("text/javascript", ".js")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target: tuple[str, int]

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = urlsplit(self.path).path
        name = "index.html" if path == "/" else path.lstrip("/")
        file = (PAGE / name).resolve()
        if file.is_file() and file.is_relative_to(PAGE):
            self.send_file(file)
        else:
            self.pass_on()

    def send_file(self, file: Path):
        body = file.read_bytes()
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        self.send_response(200)
        text = kind.startswith("text/")
        self.send_header("Content-Type", kind + "; charset=utf-8" * text)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        self.wfile.write(body)

    def pass_on(self):
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size) if size else None
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP}
        upstream = http.client.HTTPConnection(*self.target, timeout=300)
        self.close_connection = True
        try:
            upstream.request(self.command, self.path, body, headers)
            response = upstream.getresponse()
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in HOP:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while piece := response.read1(65536):
                self.wfile.write(piece)
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the browser left; closing upstream ends its request
        except ConnectionRefusedError:
            self.send_error(502)
        finally:
            upstream.close()

    do_POST = do_DELETE = pass_on


class Front:
    """Listens on a port of its own while its `with` block runs."""

    def __init__(self, host: str, port: int, listen: int = 0):
        handler = type("Front", (Handler,), {"target": (host, port)})
        self.server = ThreadingHTTPServer(("127.0.0.1", listen), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def front_of(server):
    """The page's address: at the server, or before one that has no page."""
    connection = server.connect()
    connection.request("GET", "/")
    status = connection.getresponse().status
    connection.close()
    if status == 200:
        yield f"http://127.0.0.1:{server.port}/"
    else:
        with Front("127.0.0.1", server.port) as front:
            yield front.url


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--server", default="http://127.0.0.1:8080")
    options = parser.parse_args()
    server = urlsplit(options.server)
    front = Front(server.hostname, server.port or 80, options.port)
    print(front.url, flush=True)
    front.server.serve_forever()


if __name__ == "__main__":
    main()
