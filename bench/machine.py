"""What figures depend on: the machine and the versions."""

import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTENSIONS = [
    "avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8",
    "asimddp", "i8mm",
]  # fmt: skip


def describe_machine() -> str:
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:
        return f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    fields = dict(
        (part.strip() for part in line.split(":", 1))
        for line in info.splitlines()
        if ":" in line
    )
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    found = [name for name in EXTENSIONS if name in flags]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{platform.system()} {platform.machine()}, "
        f"{fields.get('model name', 'unknown CPU')}, {os.cpu_count()} CPUs, "
        f"{memory / 1e9:.0f} GB, with {', '.join(found) or 'no known extension'}"
    )


def revision() -> str:
    run = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
    )
    return run.stdout.strip() or "unknown"
