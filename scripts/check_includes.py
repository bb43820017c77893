#!/usr/bin/env python3
"""Rejects includes between directories of src/ that do not point down."""

import re
import sys
from pathlib import Path

ALLOWED = {
    "base": set(),
    "kernels": {"base"},
    "text": {"base"},
    "kv": {"base"},
    "store": {"base", "kv"},
    "ops": {"base", "kernels"},
    "model": {"base", "kernels", "ops"},
    "engine": {"base", "kv", "model", "ops", "store", "text"},
    "server": {"base", "engine", "kv", "model", "ops", "store", "text"},
    "cli": {"base", "engine", "kv", "model", "ops", "server", "store", "text"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def violations(root: Path) -> list[str]:
    """One line for each include that points up or is not from src/."""
    found = []
    for path in sorted(root.rglob("*")):
        if path.suffix not in {".h", ".cpp"}:
            continue
        relative = path.relative_to(root)
        here = relative.parts[0]
        if here not in ALLOWED:
            found.append(f"src/{relative}: directory {here} has no place")
            continue
        for included in INCLUDE.findall(path.read_text()):
            if included.endswith("textkit.h") and here == "text":
                continue
            there = included.split("/")[0]
            if "/" not in included or there not in ALLOWED:
                found.append(f"src/{relative}: {included} is not below src/")
            elif there != here and there not in ALLOWED[here]:
                found.append(f"src/{relative}: {here} must not see {included}")
    return found


def main() -> int:
    root = Path(__file__).resolve().parent.parent / "src"
    found = violations(root)
    print("\n".join(found) if found else "All includes point down.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
