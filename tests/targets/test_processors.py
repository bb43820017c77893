"""One binary for all x86-64: what runs on a processor without AVX.

qemu-user plays the older processors. Its vmaskmov touches memory that the mask
leaves out, so tests with guard pages run there with the scalar target only.
"""

import json
import platform
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
DISPATCH = "src/kernels/dispatch"

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="about x86-64"
)


def run(*command) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    "processor, target",
    [("Nehalem", "scalar"), ("SandyBridge", "scalar"), ("Haswell", "avx2")],
)
def test_the_program_starts_and_takes_what_the_processor_has(processor, target):
    info = run(
        "qemu-x86_64", "-cpu", processor,
        BUILD / "afterglow", "bench", "--info", "--json",
    )  # fmt: skip
    assert json.loads(info)["target"] == target


def test_kernels_without_avx():
    # Without a second target there is nothing to compare.
    out = run(
        "qemu-x86_64", "-cpu", "Nehalem", BUILD / "src/kernels/kernels_test",
        "--gtest_filter=-Linear.every_target*:Linear.a_token_alone*",
    )  # fmt: skip
    assert re.search(r"PASSED +\] \d\d+ tests", out)


@pytest.mark.parametrize("processor", ["Nehalem", "Haswell"])
def test_logits_have_the_same_bits(processor):
    out = run(
        "qemu-x86_64", "-cpu", processor, BUILD / "src/ops/ops_test",
        "--gtest_filter=Numerics.*",
    )  # fmt: skip
    assert re.search(r"PASSED +\] 1 test", out)


def test_only_targets_are_compiled_for_more_than_x86_64():
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    files = set()
    for entry in commands:
        options = re.findall(
            r" -m(?:avx|fma|f16c|bmi|sse|arch|cpu|tune)[^ ]*", entry["command"]
        )
        if options and "/src/kernels/bench/" not in entry["file"]:
            files.add(str(Path(entry["file"]).relative_to(ROOT)))
    assert files == {
        f"{DISPATCH}/target_{name}.cpp"
        for name in ("avx2", "avx512bw", "avx512")
    }


@pytest.mark.parametrize("target", ["avx2", "avx512bw", "avx512"])
def test_targets_leave_no_shared_code_to_the_linker(target):
    """An inline function that such a file shared with others could be the copy
    that the linker keeps for all."""
    symbols = run(
        "nm", "--demangle", "--defined-only", "--extern-only",
        BUILD / f"src/kernels/CMakeFiles/ag_kernels.dir/dispatch/"
        f"target_{target}.cpp.o",
    )  # fmt: skip
    names = [line.split(maxsplit=2)[2] for line in symbols.splitlines()]
    own = f"afterglow::{target}::"
    assert f"{own}kTable" in names
    # A template's name starts with the type that it returns.
    shared = [
        name for name in names
        if own not in name.split("(")[0]
    ]  # fmt: skip
    assert shared == []
