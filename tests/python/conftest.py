import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import afterglow

ROOT = Path(__file__).resolve().parent.parent.parent
MODEL = Path(
    os.environ.get("AFTERGLOW_MODEL")
    or ROOT / "build/models/SmolLM2-135M-Instruct.Q4_1.gguf"
)
PROGRAM = Path(os.environ.get("AFTERGLOW_PROGRAM", ROOT / "build/afterglow"))


@pytest.fixture(scope="session", autouse=True)
def interrupts_act():
    """Programs would keep on ignoring what nohup or a shell's & ignores."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def path() -> Path:
    if not MODEL.exists():
        pytest.fail(f"{MODEL} is missing; type: make build")
    return MODEL


@pytest.fixture(scope="session")
def loaded(path):
    return afterglow.load(path)


@pytest.fixture(scope="session")
def model(loaded):
    return loaded[0]


@pytest.fixture(scope="session")
def tokenizer(loaded):
    return loaded[1]


class Script:
    """A Python process of its own. MODEL is the model's path in it."""

    def __init__(self, text: str, folder: Path):
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", f"MODEL = {str(MODEL)!r}\n{text}"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for_line(self, line: str, seconds: float = 120) -> None:
        deadline = threading.Timer(seconds, self.process.kill)
        deadline.start()
        try:
            for got in self.process.stdout:
                if got.rstrip("\n") == line:
                    return
        finally:
            deadline.cancel()
        _, errors = self.process.communicate(timeout=60)
        pytest.fail(
            f"did not print '{line}', or not in {seconds} s:\n{errors}"
        )

    def interrupt(self) -> float:
        """Sends SIGINT. Returns the time."""
        self.process.send_signal(signal.SIGINT)
        return time.monotonic()

    def finish(self, seconds: float = 60) -> tuple[str, str]:
        """Its output and errors. It must end well and free all it had."""
        try:
            output, errors = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, errors = self.process.communicate()
            pytest.fail(f"did not end within {seconds} s:\n{output}{errors}")
        assert self.process.returncode == 0, output + errors
        assert "nanobind" not in errors, errors
        return output, errors


@pytest.fixture
def script(tmp_path, path):
    started = []

    def start(text: str, folder: Path = tmp_path) -> Script:
        started.append(Script(text, folder))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
