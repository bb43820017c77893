"""The installed package: what it brings, what it needs."""

import subprocess
import sys
from importlib.metadata import files, requires
from pathlib import Path

import pytest

import afterglow

MLX = "import mlx.core as mx\nassert mx.sum(mx.arange(5)).item() == 10\n"
OURS = (
    "import afterglow\nmodel, tokenizer = afterglow.load(MODEL)\n"
    "print(afterglow.generate(model, tokenizer, 'One, two,', max_tokens=4))\n"
)


@pytest.mark.parametrize(
    "text",
    [OURS, MLX + OURS, OURS + MLX, MLX + OURS + MLX],
    ids=["alone", "mlx before", "mlx after", "mlx before and after"],
)
def test_lives_with_mlx(script, model, tokenizer, text):
    output, _ = script(text).finish()
    expected = afterglow.generate(model, tokenizer, "One, two,", max_tokens=4)
    assert output == expected + "\n"


def test_brings_nothing_of_mlx():
    names = [str(one) for one in files("afterglow")]
    assert any(name.startswith("afterglow/_native.") for name in names)
    assert "afterglow/py.typed" in names
    assert "afterglow/_native.pyi" in names
    assert not [name for name in names if "mlx" in name.lower()]
    assert not [name for name in names
                if not name.startswith(("afterglow/", "afterglow-"))]  # fmt: skip
    assert any(one.startswith("mlx") and "==" in one
               for one in requires("afterglow"))  # fmt: skip


@pytest.mark.parametrize(
    "before, words",
    [
        ("metadata.version = lambda name: '0.1.0'", "mlx 0.1.0 is installed"),
        (
            "def version(name):\n"
            "    raise metadata.PackageNotFoundError(name)\n"
            "metadata.version = version",
            "not installed",
        ),
    ],
)
def test_another_mlx_is_refused(script, before, words):
    output, _ = script(
        f"""
from importlib import metadata
{before}
try:
    import afterglow
except ImportError as error:
    print(error)
"""
    ).finish()
    assert words in output
    assert "needs exactly that" in output


def check_types(text: str, folder: Path) -> subprocess.CompletedProcess:
    file = folder / "typed.py"
    file.write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir",
         folder / "cache", file],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )  # fmt: skip


def test_the_example_is_typed(tmp_path):
    example = Path(__file__).with_name("seed_example.py").read_text()
    run = check_types("new = ''\n" + example, tmp_path)
    assert run.returncode == 0, run.stdout


def test_types_tell_pairs_from_outputs_and_names(tmp_path):
    run = check_types(
        """from afterglow import generate, load, stream_generate

model, tokenizer = load("x")
one: str = generate(model, tokenizer, "a")
text, cache = generate(model, tokenizer, "a", return_cache=True)
count: int = len(cache)
for output in stream_generate(model, tokenizer, "a", logprobs=True):
    value: float = output.logprobs[output.token]
for piece, history in stream_generate(
    model, tokenizer, "a", return_cache=True
):
    tokens: list[int] = history.tokens
wrong: int = generate(model, tokenizer, "a")
generate(model, tokenizer, "a", kv_bits=4)
model.none
""",
        tmp_path,
    )
    lines = {int(line.split(":")[1]) for line in run.stdout.splitlines()
             if ": error: " in line}  # fmt: skip
    assert lines == {13, 14, 15}, run.stdout


def test_the_package_itself_is_typed(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir",
         tmp_path / "cache", "-p", "afterglow"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
