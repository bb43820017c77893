"""A stand-in for the Hugging Face hub: what a client sees when it downloads a
model, and ways to go wrong.

Files that end in .gguf or .safetensors are kept in LFS: the hub redirects to
another host for them and names them by their SHA-256, others by Git's SHA-1.
"""

import hashlib
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

CHUNK = 1 << 16


@dataclass
class Seen:
    """A request that came."""

    method: str
    path: str
    range: str | None
    token: str | None


@dataclass
class StoredFile:
    data: bytes
    lfs: bool

    @property
    def git(self) -> str:
        head = b"blob %d\0" % len(self.data)
        return hashlib.sha1(head + self.data).hexdigest()

    @property
    def etag(self) -> str:
        return hashlib.sha256(self.data).hexdigest() if self.lfs else self.git


@dataclass
class Repository:
    """Its newest commit changes with its files."""

    files: dict[str, StoredFile] = field(default_factory=dict)
    token: str | None = None  # the one that may see it
    gated: bool = False

    @property
    def commit(self) -> str:
        names = sorted((path, file.git) for path, file in self.files.items())
        return hashlib.sha1(repr(names).encode()).hexdigest()


class Hub:
    """The server; runs with the `with` block.

    ranges: whether it knows Range. sums: whether its listing tells sizes and
    sums. cut_after: bodies of LFS files end after so many bytes, for the next
    `cuts` of them. speed: bytes a second of LFS files. wrong: paths whose
    bytes come altered.
    """

    def __init__(self):
        self.repositories: dict[str, Repository] = {}
        self.seen: list[Seen] = []
        self.ranges = True
        self.sums = True
        self.cut_after = 0
        self.cuts = 0
        self.speed = 0
        self.wrong: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def elsewhere(self) -> str:
        """The host of LFS files."""
        return f"http://localhost:{self._server.server_port}"

    def add(self, name: str, files: dict[str, bytes], **options) -> Repository:
        repository = Repository(**options)
        for path, data in files.items():
            lfs = path.endswith((".gguf", ".safetensors"))
            repository.files[path] = StoredFile(data, lfs)
        self.repositories[name] = repository
        return repository

    def asked(self, part: str, method: str = "GET") -> list[Seen]:
        return [
            seen
            for seen in self.seen
            if part in seen.path and seen.method == method
        ]

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever).start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()


def _handler(hub: Hub):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.answer()

        def do_HEAD(self):
            self.answer()

        def answer(self):
            path = unquote(urlsplit(self.path).path)
            token = self.headers.get("Authorization")
            token = token.removeprefix("Bearer ") if token else None
            hub.seen.append(
                Seen(self.command, path, self.headers.get("Range"), token)
            )
            parts = path.strip("/").split("/")
            if parts[0] == "lfs":
                return self.send_lfs(parts[1])
            if parts[:2] == ["api", "models"]:
                name, rest = "/".join(parts[2:4]), parts[4:]
            else:
                name, rest = "/".join(parts[:2]), parts[2:]
            repository = hub.repositories.get(name)
            if not self.allowed(repository, token):
                return None
            if len(rest) < 2 or rest[1] not in ("main", repository.commit):
                return self.refuse(404, "RevisionNotFound", "no such revision")
            if rest[0] == "revision":
                return self.send_info(repository)
            if rest[0] == "tree":
                return self.send_tree(repository)
            if rest[0] == "resolve":
                return self.send_file(repository, token, "/".join(rest[2:]))
            return self.refuse(404, "", "no such page")

        def allowed(self, repository, token) -> bool:
            tokens = {"hf_other"} | {
                known.token for known in hub.repositories.values()
            }
            if token and token not in tokens:
                why = "Invalid credentials in Authorization header"
                return self.refuse(401, "", why)
            if repository is None:
                return self.refuse(
                    404 if token else 401, "RepoNotFound", "not found"
                )
            if repository.gated or repository.token in (None, token):
                return True
            return self.refuse(
                404 if token else 401, "RepoNotFound", "not found"
            )

        def refuse(self, status: int, code: str, message: str) -> bool:
            headers = {"X-Error-Message": message}
            if code:
                headers["X-Error-Code"] = code
            self.send(status, json.dumps({"error": message}).encode(), headers)
            return False

        def send_info(self, repository):
            siblings = []
            for path, file in repository.files.items():
                sibling = {"rfilename": path}
                if hub.sums and "blobs=true" in self.path:
                    sibling |= {"size": len(file.data), "blobId": file.git}
                    if file.lfs:
                        sibling["lfs"] = {
                            "sha256": file.etag,
                            "size": len(file.data),
                            "pointerSize": 130,
                        }
                siblings.append(sibling)
            info = {
                "id": "x",
                "sha": repository.commit,
                "private": False,
                "siblings": siblings,
            }
            self.send(200, json.dumps(info).encode())

        def send_tree(self, repository):
            entries = []
            for path, file in repository.files.items():
                size = len(file.data)
                entry = {"type": "file", "path": path, "size": size}
                entry["oid"] = file.git
                if file.lfs:
                    entry["lfs"] = {
                        "oid": file.etag,
                        "size": size,
                        "pointerSize": 130,
                    }
                entries.append(entry)
            self.send(200, json.dumps(entries).encode())

        def send_file(self, repository, token, path):
            if repository.gated and repository.token != token:
                status = 403 if token else 401
                return self.refuse(status, "GatedRepo", "restricted access")
            file = repository.files.get(path)
            if file is None:
                return self.refuse(404, "EntryNotFound", "no such file")
            headers = {"X-Repo-Commit": repository.commit}
            if not file.lfs:
                headers["ETag"] = f'"{file.etag}"'
                data = b"?" * len(file.data) if path in hub.wrong else file.data
                return self.send(200, data, headers)
            headers |= {
                "X-Linked-Etag": f'"{file.etag}"',
                "X-Linked-Size": str(len(file.data)),
                "Location": f"{hub.elsewhere}/lfs/{file.etag}",
            }
            return self.send(302, b"elsewhere", headers)

        def send_lfs(self, etag):
            path, data = next(
                (path, file.data)
                for repository in hub.repositories.values()
                for path, file in repository.files.items()
                if file.etag == etag
            )
            if path in hub.wrong:
                data = data[:-1] + bytes([data[-1] ^ 1])
            wanted = self.headers.get("Range")
            if not wanted or not hub.ranges:
                return self.send(200, data, slowly=True)
            start = int(wanted.removeprefix("bytes=").split("-")[0])
            if start >= len(data):
                return self.refuse(416, "", "no such range")
            span = f"bytes {start}-{len(data) - 1}/{len(data)}"
            return self.send(
                206, data[start:], {"Content-Range": span}, slowly=True
            )

        def send(self, status, body, headers=None, slowly=False):
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "HEAD":
                return
            if slowly and hub.cuts > 0:
                hub.cuts -= 1
                body = body[: hub.cut_after]
                self.close_connection = True
            try:
                self.write(body, hub.speed if slowly else 0)
            except OSError:
                self.close_connection = True  # the client has left

        def write(self, body, speed):
            for start in range(0, len(body), CHUNK):
                self.wfile.write(body[start : start + CHUNK])
                if speed:
                    time.sleep(CHUNK / speed)

    return Handler
