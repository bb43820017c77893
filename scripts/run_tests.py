#!/usr/bin/env python3
"""Builds everything and runs all tests, one line a step; the last line sums.

    scripts/run_tests.py [--jobs N] [--only STEP,...] [--list]

A step that cannot run, ends badly or runs no test counts as a failed test.
What a step printed lies in build/test-logs/.
"""

import argparse
import os
import platform
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test-logs"
MODEL = ROOT / "build" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
TSAN = ["kv", "store", "engine", "api", "server"]


class Counts(NamedTuple):
    passed: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass
class Step:
    """One command. kind: how its tests are counted (see count)."""

    name: str
    kind: str
    command: list[str]
    needs: str = ""  # the step without which this one cannot run
    minutes: float = 20
    env: dict[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name}.log"

    @property
    def junit(self) -> Path:
        return LOGS / f"{self.name}.xml"


def steps(jobs: int) -> list[Step]:
    def build(name: str, preset: str, *targets: str) -> Step:
        return Step(
            name, "build", ["scripts/build.sh", preset, *targets],
            minutes=30, env={"JOBS": str(jobs)},
        )  # fmt: skip

    def ctest(name: str, folder: str, needs: str, *more: str) -> Step:
        step = Step(name, "junit", [], needs)
        step.command = [
            "ctest", "--test-dir", folder, "-j", str(jobs),
            "--output-on-failure", "--no-tests=error",
            "--output-junit", str(step.junit), *more,
        ]  # fmt: skip
        return step

    def pytest(folder: str) -> Step:
        step = Step(folder, "junit", [], "build", 30)
        step.command = [
            sys.executable, "-m", "pytest", "-q", "-rs", "--durations=5",
            f"--junitxml={step.junit}", f"tests/{folder}",
        ]  # fmt: skip
        return step

    package = Step(
        "package", "build", ["scripts/python_package.sh"], "build", 30,
        env={"JOBS": str(jobs)},
    )  # fmt: skip
    python = pytest("python")
    python.command[0] = "build/python/bin/python"
    python.needs = package.name

    sanitized = {
        "ASAN_OPTIONS": "detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1",
    }
    cargo = ["cargo", "test", "--release", "--locked"]
    cargo += ["--manifest-path", "rust/textkit/Cargo.toml"]
    asan = ctest("asan", "build-asan", "build-asan", "-LE", "real_model")
    tsan = ctest("tsan", "build-tsan", "build-tsan", "-LE", "real_model")
    tsan.command += ["-L", f"^({'|'.join(TSAN)})$"]
    # Thousands of short runs on few threads: the other builds do them.
    tsan.command += ["-E", "StoreFaults|StoreCrash|BlockFormat|MlxCacheFile"]
    asan.env = tsan.env = sanitized
    # Emulated, so slow: of the targets only the best takes all of invariance.
    arm64 = ctest("arm64", "build-arm64", "build-arm64")
    arm64.command += ["-E", "Invariance.*/(int8|f32|int16_(neon|dotprod))"]
    crossed = [build("build-arm64", "arm64", "unit_tests"), arm64]

    return [
        Step("format", "check", ["scripts/format.sh", "--check"]),
        Step("includes", "check", [sys.executable, "scripts/check_includes.py"]),
        Step("docs", "check", ["doxygen", "docs/Doxyfile"]),
        Step("page", "check", ["web/check.sh"]),
        build("build", "release", "all"),
        ctest("unit", "build", "build"),
        Step("textkit", "cargo", cargo, env={"CARGO_TARGET_DIR": "build/cargo"}),
        build("build-asan", "asan", "unit_tests"),
        asan,
        build("build-tsan", "tsan", *(f"{name}_test" for name in TSAN)),
        tsan,
        build("build-fuzz", "fuzz", "fuzz_targets"),
        ctest("fuzz", "build-fuzz", "build-fuzz"),
        *(crossed if platform.machine() == "x86_64" else []),
        *(pytest(path.name) for path in sorted(ROOT.glob("tests/*"))
          if any(path.glob("test_*.py")) and path.name != "python"),
        package,
        python,
        Step("install", "check", ["scripts/check_install.sh"], "build"),
    ]  # fmt: skip


def count_junit(path: Path) -> Counts:
    if not path.exists():
        return Counts()
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).iter("testcase"):
        skip = case.find("skipped")
        # ctest lists a test that it could not start as skipped, too.
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.get("status") == "disabled":
            skipped += 1
        elif skip is None:
            passed += 1
        elif case.get("status") == "notrun" and not skip.get(
            "message", ""
        ).startswith("SKIP_"):
            failed += 1
        else:
            skipped += 1
    return Counts(passed, failed, skipped)


def count_cargo(log: str) -> Counts:
    found = re.findall(
        r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored",
        log,
        re.MULTILINE,
    )
    return Counts(*(sum(int(row[i]) for row in found) for i in range(3)))


def count(step: Step, code: int) -> Counts:
    if step.kind == "build":
        return Counts(failed=int(code != 0))
    if step.kind == "check":
        return Counts(passed=int(code == 0), failed=int(code != 0))
    if step.kind == "junit":
        counts = count_junit(step.junit)
    else:
        counts = count_cargo(step.log.read_text(errors="replace"))
    nothing_ran = counts.passed + counts.failed == 0
    if (code != 0 and counts.failed == 0) or nothing_ran:
        counts = counts._replace(failed=counts.failed + 1)
    return counts


def execute(step: Step) -> int:
    """Runs the step's command into its log and returns its exit status."""
    step.junit.unlink(missing_ok=True)
    with step.log.open("w") as log:
        process = subprocess.Popen(
            step.command,
            cwd=ROOT,
            env={"AFTERGLOW_MODEL": str(MODEL), **os.environ, **step.env},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(timeout=step.minutes * 60)
        except subprocess.TimeoutExpired:
            log.write(f"\nStopped after {step.minutes:g} minutes.\n")
            return -1
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def report(step: Step, counts: Counts, seconds: float) -> None:
    parts = [f"{counts.passed} passed"] if step.kind != "build" else []
    parts += [f"{counts.failed} failed"] if counts.failed else []
    parts += [f"{counts.skipped} skipped"] if counts.skipped else []
    state = "FAILED" if counts.failed else "ok"
    print(f"{step.name:<11} {state:<6} {seconds:7.1f} s  {', '.join(parts)}")
    if counts.failed:
        lines = step.log.read_text(errors="replace").splitlines()
        print("\n".join(f"    {line}" for line in lines[-60:]))
        print(f"    (all of it: {step.log.relative_to(ROOT)})")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", help="names of steps, with commas")
    parser.add_argument("--list", action="store_true", help="name the steps")
    arguments = parser.parse_args()

    chosen = steps(arguments.jobs)
    names = [step.name for step in chosen]
    if arguments.list:
        print("\n".join(names))
        return 0
    if arguments.only:
        only = arguments.only.split(",")
        unknown = set(only) - set(names)
        if unknown:
            parser.error(f"no such step: {', '.join(sorted(unknown))}")
        chosen = [step for step in chosen if step.name in only]

    LOGS.mkdir(parents=True, exist_ok=True)
    total = Counts()
    broken = set()
    for step in chosen:
        start = time.monotonic()
        if step.needs in broken:
            step.log.write_text(f"Could not run: {step.needs} failed.\n")
            counts = Counts(failed=1)
        else:
            counts = count(step, execute(step))
        if counts.failed and step.kind == "build":
            broken.add(step.name)
        report(step, counts, time.monotonic() - start)
        total = Counts(*map(sum, zip(total, counts)))

    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"\n{total.passed} passed, {total.failed} failed{skipped}")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
