"""The soak of bench/soak.py, for a quarter of a minute: enough to see what leaks with
each request, not what grows slowly. Within that time the cache may still be
filling its 120 MiB."""

import json
import subprocess
import sys

from serving import ROOT


def test_a_quarter_of_a_minute_of_mixed_load_leaves_nothing_behind():
    run = subprocess.run(
        [
            sys.executable, ROOT / "bench/soak.py", "--json",
            "--minutes", "0.25", "--warm-up", "5", "--resident-mib", "130",
        ],  # fmt: skip
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    done = json.loads(run.stdout)["requests"]
    assert sum(done.values()) > 10, done
