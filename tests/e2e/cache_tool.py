"""`afterglow cache ...`, run as a person or a script would."""

import fcntl
import json
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from serving import PROGRAM


@dataclass
class Outcome:
    status: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        return json.loads(self.out)


def tool(*arguments, cache: Path | None = None, status: int | None = 0):
    """Runs `afterglow cache` and checks the exit status, unless that is None.

    cache: --prompt-cache-dir.
    """
    command = [PROGRAM, "cache", *arguments]
    if cache is not None:
        command += ["--prompt-cache-dir", cache]
    environment = {**os.environ}
    environment.pop("AFTERGLOW_PROMPT_CACHE_DIR", None)
    done = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    if status is not None:
        assert done.returncode == status, done.stdout + done.stderr
    return Outcome(done.returncode, done.stdout, done.stderr)


def entries(cache: Path) -> list[dict]:
    return tool("list", "--json", cache=cache).json["entries"]


def block_files(cache: Path) -> dict[str, int]:
    """Bytes of each block file, by its id."""
    return {
        path.stem: path.stat().st_size
        for path in cache.glob("v1/*/blocks/*.safetensors")
    }


@contextmanager
def locked(cache: Path):
    """Holds the directory's lock: nobody publishes or evicts meanwhile."""
    with (cache / "v1/lock").open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def stored_bytes(cache: Path) -> int:
    """What all block files take at one moment."""
    with locked(cache):
        return sum(block_files(cache).values())
