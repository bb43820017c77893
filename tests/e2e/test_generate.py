"""`afterglow generate` as a person or a script uses it."""

import re
import subprocess

from serving import MODEL, PROGRAM, Server
from texts import sentences

PROMPT = "Name three colours."
DEFAULTS = {"--model": str(MODEL), "--max-tokens": "16", "--temp": "0"}


def generate(*flags, text: str = ""):
    for name, value in DEFAULTS.items():
        if name not in flags:
            flags += (name, value)
    return subprocess.run(
        [PROGRAM, "generate", *flags],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_prints_the_text_that_the_server_gives():
    run = generate("--prompt", PROMPT)
    with Server() as server:
        answer = server.chat(PROMPT, max_tokens=16)
    assert run.returncode == 0, run.stderr
    assert answer.text
    assert run.stdout == answer.text + "\n"


def test_reads_standard_input_for_a_dash():
    run = generate("--prompt", "-", text=PROMPT)
    assert run.returncode == 0, run.stderr
    assert run.stdout == generate("--prompt", PROMPT).stdout


def test_a_system_prompt_changes_the_answer():
    plain = generate("--prompt", PROMPT)
    run = generate(
        "--prompt", PROMPT, "--system-prompt", "You only speak French."
    )
    with Server() as server:
        answer = server.chat(
            PROMPT, system="You only speak French.", max_tokens=16
        )
    assert run.stdout == answer.text + "\n"
    assert run.stdout != plain.stdout


def test_speeds_and_memory_come_at_the_end():
    run = generate("--prompt", PROMPT)
    assert re.search(
        r"Prompt: \d+ tokens \(0 cached\), [\d.]+ tokens-per-sec\n"
        r"Generation: 16 tokens, [\d.]+ tokens-per-sec\n"
        r"Peak memory: [\d.]+ GB\n$",
        run.stderr,
    ), run.stderr


def test_a_second_run_reads_the_prompt_from_the_cache(cache_dir):
    flags = (
        "--prompt-cache-dir", str(cache_dir), "--prompt", "Who sells?",
        "--system-prompt", sentences(40, seed=4),
    )  # fmt: skip
    first, second = generate(*flags), generate(*flags)
    pattern = r"Prompt: (\d+) tokens \((\d+) cached\)"
    tokens, cached = map(int, re.search(pattern, first.stderr).groups())
    assert (tokens > 600, cached) == (True, 0)
    again, cached = map(int, re.search(pattern, second.stderr).groups())
    assert (again, cached) == (tokens, tokens - 1)
    assert second.stdout == first.stdout


def test_the_same_seed_draws_the_same_text():
    flags = ("--prompt", PROMPT, "--temp", "1.2", "--top-p", "0.95", "--seed")
    one, same, other = (generate(*flags, seed) for seed in ("7", "7", "8"))
    assert one.stdout == same.stdout
    assert one.stdout != other.stdout


def test_an_unknown_flag_is_refused_by_name():
    run = generate("--kv-bits", "4", "--prompt", PROMPT)
    assert run.returncode == 2
    assert "kv-bits" in run.stderr
    assert run.stdout == ""


def test_a_missing_model_is_named(tmp_path):
    run = generate("--model", str(tmp_path / "none.gguf"), "--prompt", PROMPT)
    assert run.returncode != 0
    assert "none.gguf" in run.stderr


def test_a_truncated_model_is_refused(tmp_path):
    path = tmp_path / "half.gguf"
    path.write_bytes(MODEL.read_bytes()[:30_000_000])
    run = generate("--model", str(path), "--prompt", PROMPT)
    assert run.returncode == 1
    assert "half.gguf" in run.stderr
