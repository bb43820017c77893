"""`afterglow cache-prompt`, and `generate` that goes on where it ended."""

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest
from safetensors import safe_open
from serving import MODEL, PROGRAM, ROOT, read_soon
from texts import sentences

PROMPT = "The keeper of the lighthouse counted seven ships on Monday."
QUESTION = " How many ships did the keeper count?"


def program(*arguments, text="", env=None, model: bool = True):
    flags = ["--model", MODEL] if model else []
    return subprocess.run(
        [PROGRAM, *arguments, *flags],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **(env or {})},
    )


def cache_prompt(path: Path, *flags, prompt: str = PROMPT, **options):
    run = program(
        *("cache-prompt", "--prompt-cache-file", path),
        *("--prompt", prompt, *flags),
        **options,
    )
    assert run.returncode == 0, run.stderr
    return run


def generate(path: Path, *flags, **options):
    return program(
        *("generate", "--prompt-cache-file", path, "--max-tokens", "24"),
        *("--prompt", QUESTION, *flags),
        **options,
    )


def metadata(path: Path) -> dict[str, str]:
    """The user's part of what mlx_lm's save_prompt_cache writes."""
    with safe_open(path, "numpy") as file:
        names = file.metadata()
    return {
        name.removeprefix("0."): value
        for name, value in names.items()
        if name.startswith("0.")
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("file") / "prompt.safetensors"
    run = cache_prompt(path)
    assert run.stderr == ""
    assert re.fullmatch(
        r"Processed +\d+ tokens \( *[\d.]+ tok/s\)\n"
        r"Peak memory: [\d.]+ GB\n"
        r"Saving...\n",
        run.stdout,
    ), run.stdout
    return path


def test_generate_goes_on_where_the_prompt_ends(file: Path):
    whole = program(
        "generate", "--max-tokens", "24", "--prompt", PROMPT + QUESTION
    )
    run = generate(file)
    assert run.returncode == 0, run.stderr
    assert run.stdout == whole.stdout
    pattern = r"Prompt: (\d+) tokens \((\d+) cached\)"
    tokens, cached = map(int, re.search(pattern, run.stderr).groups())
    assert cached == len(metadata(file)["afterglow.tokens"].split())
    assert tokens == int(re.search(pattern, whole.stderr).group(1))


def test_an_answer_may_be_begun_after_the_file(file: Path):
    begun = generate(file, "--prefill-response", "The keeper saw")
    whole = program(
        *("generate", "--max-tokens", "24", "--prompt", PROMPT + QUESTION),
        *("--prefill-response", "The keeper saw"),
    )
    assert begun.returncode == 0, begun.stderr
    assert begun.stdout == whole.stdout


def test_the_prompt_comes_from_standard_input(file: Path, tmp_path):
    path = tmp_path / "again.safetensors"
    cache_prompt(path, prompt="-", text=PROMPT)
    assert path.read_bytes() == file.read_bytes()
    # As with mlx_lm, nothing is unescaped here.
    cache_prompt(path, prompt=r"a\nb")
    cache_prompt(other := tmp_path / "other.safetensors", prompt="a\nb")
    assert path.read_bytes() != other.read_bytes()


def test_the_file_tells_mlx_lm_its_model(file: Path, tmp_path):
    assert metadata(file)["model"] == str(MODEL)
    assert json.loads(metadata(file)["tokenizer_config"]) == {}
    # Without --model that one is taken, whatever the default is.
    env = {"AFTERGLOW_MODEL": str(tmp_path / "none.gguf")}
    run = generate(file, model=False, env=env)
    assert run.returncode == 0, run.stderr
    assert run.stdout == generate(file).stdout
    # A file without --model names the default.
    path = tmp_path / "default.safetensors"
    cache_prompt(path, model=False, env={"AFTERGLOW_MODEL": str(MODEL)})
    assert metadata(path)["model"] == str(MODEL)


def test_a_further_end_token_goes_with_the_file(file: Path, tmp_path):
    first = generate(file).stdout.split()[1]
    path = tmp_path / "eos.safetensors"
    cache_prompt(path, "--eos-token", " " + first)
    assert json.loads(metadata(path)["tokenizer_config"]) == {
        "eos_token": " " + first
    }
    run = generate(path)
    assert run.returncode == 0, run.stderr
    assert run.stdout == generate(file).stdout.split(" " + first)[0] + "\n"
    bad = program(
        *("cache-prompt", "--prompt-cache-file", tmp_path / "bad.safetensors"),
        *("--prompt", PROMPT, "--eos-token", "two words"),
    )
    assert bad.returncode == 1
    assert "--eos-token 'two words'" in bad.stderr
    assert not (tmp_path / "bad.safetensors").exists()


def test_another_model_or_other_arithmetic_is_refused(file: Path):
    tiny = str(ROOT / "tests/parity/golden/tiny.gguf")
    run = generate(file, "--model", tiny, model=False)
    assert run.returncode == 1
    assert "another model" in run.stderr
    run = generate(file, "--activations", "f32")
    assert run.returncode == 1
    assert "other activations" in run.stderr
    assert run.stdout == ""


def test_a_damaged_file_is_refused(file: Path, tmp_path):
    data = bytearray(file.read_bytes())
    data[-1000] ^= 1
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(data)
    run = generate(path)
    assert run.returncode == 1
    assert "damaged.safetensors" in run.stderr
    run = generate(tmp_path / "none.safetensors")
    assert run.returncode == 1
    assert "none.safetensors" in run.stderr


def test_a_file_excludes_what_would_come_before_it(file: Path):
    run = generate(file, "--system-prompt", "Be brief.")
    assert run.returncode == 2
    assert "--system-prompt" in run.stderr


def test_what_is_missing_is_named(tmp_path):
    for flags in (("--prompt", "x"), ("--prompt-cache-file", "x")):
        run = program("cache-prompt", *flags)
        assert run.returncode == 2
        assert "is required" in run.stderr
    run = program(
        *("cache-prompt", "--prompt", "x", "--prompt-cache-file"),
        tmp_path / "no" / "such.safetensors",
    )
    assert run.returncode == 1
    assert "such.safetensors" in run.stderr


def test_a_cache_directory_saves_the_computing(cache_dir, tmp_path):
    flags = ("--prompt-cache-dir", str(cache_dir))
    text = sentences(60, seed=9)
    first, second = tmp_path / "1.safetensors", tmp_path / "2.safetensors"
    cache_prompt(first, *flags, prompt=text)
    slow = cache_prompt(second, prompt=text).stdout
    quick = cache_prompt(second, *flags, prompt=text).stdout
    assert second.read_bytes() == first.read_bytes()
    speeds = [
        float(re.search(r"\( *([\d.]+) tok/s", out).group(1))
        for out in (slow, quick)
    ]
    assert speeds[1] > 2 * speeds[0]


def test_a_terminal_shows_progress_and_ctrl_c_leaves_no_file(tmp_path):
    path = tmp_path / "long.safetensors"
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, "cache-prompt", "--model", MODEL, "--prompt-cache-file"]
        + [path, "--prompt", sentences(400, seed=2)],
        stdout=inner,
        stderr=subprocess.PIPE,
    )
    os.close(inner)
    shown = b""
    try:
        while shown.count(b"tok/s") < 2:
            shown += read_soon(outer, 1000)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    os.close(outer)
    first, second = re.findall(rb"\rProcessed +(\d+) tokens", shown)[:2]
    assert 0 <= int(first) < int(second)
    assert list(tmp_path.iterdir()) == []
