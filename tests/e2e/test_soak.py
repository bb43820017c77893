"""The soak of bench/soak.py, for some seconds: enough to see what leaks with
each request, not what grows slowly. Within that time the cache may still be
filling its 120 MiB."""

import json
import subprocess
import sys

from serving import ROOT


def test_seconds_of_mixed_load_leave_nothing_behind():
    run = subprocess.run(
        [
            sys.executable, ROOT / "bench/soak.py", "--json",
            "--minutes", "0.2", "--warm-up", "4", "--resident-mib", "130",
        ],  # fmt: skip
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    done = json.loads(run.stdout)["requests"]
    assert sum(done.values()) > 10, done
