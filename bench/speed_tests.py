"""Names of speed tests, as llama-bench and `afterglow bench` write them."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Test:
    """So many tokens behind `depth` others: read as a prompt, or generated."""

    kind: str  # "pp" or "tg"
    tokens: int
    depth: int = 0

    def __str__(self) -> str:
        return f"{self.kind}{self.tokens}" + (f"@{self.depth}" if self.depth else "")


def parse_tests(text: str) -> list[Test]:
    tests = []
    for name in text.split(","):
        found = re.fullmatch(r"(pp|tg)(\d+)(?:@(\d+))?", name)
        if not found:
            raise ValueError(f"no test: {name!r}; they look like pp512, tg64@3000")
        tests.append(Test(found[1], int(found[2]), int(found[3] or 0)))
    return tests


def by_depth(tests: list[Test]) -> list[list[Test]]:
    """Tests that can share what lies before them."""
    depths = sorted({test.depth for test in tests})
    return [[t for t in tests if t.depth == depth] for depth in depths]
