#!/usr/bin/env python3
"""Rejects includes of src/ that do not point down, or borrow where they must
not: MLX belongs to ops/mlx, Boost to the server and the command line."""

import re
import sys
from pathlib import Path

ALLOWED = {
    "base": set(),
    "kernels": {"base"},
    "text": {"base"},
    "hub": {"base", "text"},
    "kv": {"base"},
    "store": {"base", "kv"},
    "ops": {"base", "kernels"},
    "model": {"base", "kernels", "ops"},
    "engine": {"base", "kernels", "kv", "model", "ops", "store", "text"},
    "server": {"base", "engine", "kv", "model", "ops", "store", "text"},
    "api": {"base", "engine", "hub", "text"},
    "cli": {
        "api", "base", "engine", "hub", "kv", "model", "ops", "server",
        "store", "text",
    },
}

BORROWED = {"mlx": ("ops/mlx/",), "boost": ("server/", "cli/")}

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


def complaint(path: str, included: str) -> str | None:
    """What is wrong with src/path including this, if anything."""
    here = path.split("/")[0]
    there = included.split("/")[0] if "/" in included else ""
    if there in BORROWED and not path.startswith(BORROWED[there]):
        return f"{there} may be used in {' and '.join(BORROWED[there])} only"
    if there in ALLOWED and there != here and there not in ALLOWED[here]:
        return f"{here} must not see {there}"
    return None


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
            wrong = complaint(str(relative), included)
            if wrong:
                found.append(f"src/{relative}: {included}: {wrong}")
    return found


def main() -> int:
    root = Path(__file__).resolve().parent.parent / "src"
    found = violations(root)
    print("\n".join(found) if found else "All includes point down.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
