import signal
import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from serving import MODEL, PROGRAM, Answer, Server  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def signals_act():
    """Programs would keep on ignoring what nohup or a shell's & ignores."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def built():
    for path in (PROGRAM, MODEL):
        if not path.exists():
            pytest.fail(f"{path} is missing; type: make build")


@pytest.fixture
def cache_dir(tmp_path: Path) -> Path:
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    return path


@cache
def _cold_chat(contents, system, flags) -> Answer:
    with Server(*flags) as server:
        return server.chat(*contents, system=system)


@pytest.fixture(scope="session")
def cold_chat():
    """What a server that has never been asked before answers."""

    def ask(*contents: str, system: str = "", flags=()) -> Answer:
        return _cold_chat(contents, system, tuple(flags))

    return ask
