"""A running `afterglow serve`, for tests and benchmarks."""

import http.client
import json
import os
import re
import select
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = Path(os.environ.get("AFTERGLOW_PROGRAM", ROOT / "build/afterglow"))
MODEL = Path(
    os.environ.get("AFTERGLOW_MODEL")
    or ROOT / "build/models/SmolLM2-135M-Instruct.Q4_1.gguf"
)


class ServerError(Exception):
    """The server did not start, or answered with an error."""

    def __init__(self, message: str, status: int = 0):
        super().__init__(message)
        self.status = status


def wait_for(condition, what: str, seconds: float = 30):
    """Polls until condition() is true and returns what it returned."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what} within {seconds:g} s")
        time.sleep(0.01)


def read_soon(descriptor: int, most: int, seconds: float = 60) -> bytes:
    """os.read, which fails when nothing comes in time."""
    if not select.select([descriptor], [], [], seconds)[0]:
        raise TimeoutError(f"nothing to read within {seconds:g} s")
    return os.read(descriptor, most)


def run(*arguments, **variables) -> subprocess.CompletedProcess:
    """Runs the program with no AFTERGLOW_ variables but those given."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AFTERGLOW_")
    }
    return subprocess.run(
        [PROGRAM, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=kept | variables,
    )


def endless_model(folder: Path) -> Path:
    """A file that is never read to its end: a pipe into which nobody writes."""
    path = folder / "endless.gguf"
    os.mkfifo(path)
    return path


@dataclass
class Answer:
    """What a request brought."""

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    timings: dict
    first_ms: float  # from sending to the first piece of text


class Server:
    """A server process. Ends with the `with` block, by SIGKILL if need be.

    flags: further flags of `afterglow serve`. cache: --prompt-cache-dir.
    loaded: wait until the model is; else only until the server listens.
    """

    def __init__(
        self,
        *flags,
        cache: Path | None = None,
        model: Path = MODEL,
        loaded: bool = True,
    ):
        command = [PROGRAM, "serve", "--port", "0", "--model", model, *flags]
        if cache is not None:
            command += ["--prompt-cache-dir", cache]
        self._output = tempfile.NamedTemporaryFile("w+", suffix=".log")
        start = time.monotonic()
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            self.port = int(wait_for(self._address, "address printed", 60))
            if loaded:
                wait_for(self._ready, "readiness", 60)
        except BaseException:
            self.kill()
            raise
        self.start_seconds = time.monotonic() - start

    def _address(self) -> str | None:
        found = re.search(r"https?://[^\s/]+:(\d+)", self.output())
        if not found and self.process.poll() is not None:
            raise ServerError(
                f"ended with {self.process.returncode}:\n{self.output()}"
            )
        return found and found[1]

    def _ready(self) -> bool:
        if self.process.poll() is not None:
            raise ServerError(
                f"ended with {self.process.returncode}:\n{self.output()}"
            )
        try:
            return self.request("GET", "/health")[0] == 200
        except OSError:
            return False

    def output(self) -> str:
        """All that the server has printed."""
        return Path(self._output.name).read_text(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self) -> None:
        """SIGKILL, as the machine's out-of-memory killer would."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def terminate(self, seconds: float = 30) -> int:
        """SIGTERM; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def request(self, method: str, path: str, body=None) -> tuple[int, dict]:
        """One exchange: status and JSON body."""
        connection = self.connect()
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Content-Type": "application/json"},
            )
            response = connection.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text else {}
        finally:
            connection.close()

    def get(self, path: str) -> dict:
        status, body = self.request("GET", path)
        if status != 200:
            raise ServerError(f"GET {path}: {status} {body}", status)
        return body

    def running(self) -> int:
        """Requests being worked on."""
        return self.get("/v1/cache")["requests"]["running"]

    def flush(self) -> dict:
        """Returns when all sealed blocks are durable."""
        status, body = self.request("POST", "/v1/cache/flush", {})
        if status != 200:
            raise ServerError(f"flush: {status} {body}", status)
        return body

    def stream(self, path: str, body: dict):
        """Yields the parsed events of a streamed answer."""
        connection = self.connect()
        try:
            connection.request(
                "POST",
                path,
                json.dumps({**body, "stream": True}),
                {"Content-Type": "application/json"},
            )
            response = connection.getresponse()
            if response.status != 200:
                raise ServerError(
                    f"{path}: {response.status} {response.read()!r}",
                    response.status,
                )
            for line in response:
                if line.startswith(b"data: "):
                    data = line[len(b"data: ") :].strip()
                    if data == b"[DONE]":
                        return
                    yield json.loads(data)
            raise ServerError(f"{path}: the stream ended without [DONE]")
        finally:
            connection.close()

    def ask(self, path: str, body: dict) -> Answer:
        """Streams an answer to its end."""
        body = {"temperature": 0, "max_tokens": 24, **body}
        body["stream_options"] = {"include_usage": True}
        start = time.perf_counter()
        first_ms = None
        text, reason, usage, timings = "", None, None, None
        for event in self.stream(path, body):
            for choice in event.get("choices", []):
                piece = choice.get("text") or choice.get("delta", {}).get(
                    "content"
                )
                if piece and first_ms is None:
                    first_ms = (time.perf_counter() - start) * 1000
                text += piece or ""
                reason = choice.get("finish_reason") or reason
            usage = event.get("usage") or usage
            timings = event.get("timings") or timings
        return Answer(
            text,
            reason,
            usage["prompt_tokens"],
            usage["completion_tokens"],
            usage["prompt_tokens_details"]["cached_tokens"],
            timings,
            first_ms if first_ms is not None else float("nan"),
        )

    def chat(self, *contents: str, system: str = "", **options) -> Answer:
        """contents: what user and assistant said in turn, the user first."""
        messages = [{"role": "system", "content": system}] if system else []
        for index, content in enumerate(contents):
            role = "assistant" if index % 2 else "user"
            messages.append({"role": role, "content": content})
        return self.ask(
            "/v1/chat/completions", {"messages": messages, **options}
        )

    def complete(self, prompt: str, **options) -> Answer:
        return self.ask("/v1/completions", {"prompt": prompt, **options})
