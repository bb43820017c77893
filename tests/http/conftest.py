import sys
from pathlib import Path

import pytest
from calls import openai_client

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from serving import MODEL, PROGRAM, Server  # noqa: E402


@pytest.fixture(scope="session")
def server():
    """A server that all tests of a run share."""
    for path in (PROGRAM, MODEL):
        if not path.exists():
            pytest.fail(f"{path} is missing; type: make build")
    with Server() as running:
        yield running
        assert running.terminate() == 0


@pytest.fixture(scope="session")
def client(server):
    return openai_client(server)
