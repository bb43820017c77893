"""The goldens of src/text's tool calls are what mlx_lm gives today."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def test_goldens_are_what_mlx_lm_gives():
    pytest.importorskip("mlx_lm")
    run = subprocess.run(
        [sys.executable, str(HERE / "tool_call_goldens.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
