"""The soak of bench/soak.py, for half a minute: enough to see what leaks with
each request, not what grows slowly."""

import json
import subprocess
import sys

from serving import ROOT


def test_half_a_minute_of_mixed_load_leaves_nothing_behind():
    run = subprocess.run(
        [
            sys.executable, ROOT / "bench/soak.py", "--json",
            "--minutes", "0.5", "--warm-up", "10", "--resident-mib", "100",
        ],  # fmt: skip
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    done = json.loads(run.stdout)["requests"]
    assert sum(done.values()) > 10, done
