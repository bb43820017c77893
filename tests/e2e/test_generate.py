"""`afterglow generate` as a person or a script uses it."""

import re
import signal
import subprocess

import pytest
from serving import MODEL, PROGRAM, ROOT, Server, read_soon
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
    run = generate("--no-such-flag", "4", "--prompt", PROMPT)
    assert run.returncode == 2
    assert "--no-such-flag" in run.stderr
    assert run.stdout == ""


def test_xtc_leaves_out_likely_tokens():
    flags = ("--prompt", PROMPT, "--temp", "1", "--seed", "3")
    plain = generate(*flags)
    xtc = (*flags, "--xtc-probability", "1")
    assert generate(*xtc).stdout == generate(*xtc).stdout != plain.stdout
    # Two tokens cannot both be more likely than one half.
    harmless = generate(*xtc, "--xtc-threshold", "0.5")
    assert harmless.stdout == plain.stdout


def test_min_p_keeps_as_many_tokens_as_told():
    flags = ("--prompt", PROMPT, "--temp", "3", "--seed", "3", "--min-p", "1")
    assert generate(*flags).stdout == generate("--prompt", PROMPT).stdout
    kept = generate(*flags, "--min-tokens-to-keep", "50")
    assert kept.stdout != generate(*flags).stdout


@pytest.mark.parametrize("token", [",", "28"])
def test_an_extra_token_ends_the_answer(token: str):
    """28 is the comma's number."""
    plain = generate("--prompt", PROMPT, "--max-tokens", "40")
    run = generate(
        "--prompt", PROMPT, "--max-tokens", "40", "--extra-eos-token",
        "<|endoftext|>", token,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout == plain.stdout.split(",")[0] + "\n"
    assert "," in plain.stdout


def test_an_extra_token_is_one_token():
    for text in ("two words", "-5", "9999999"):
        run = generate("--prompt", PROMPT, f"--extra-eos-token={text}")
        assert run.returncode == 1
        assert f"--extra-eos-token {text}" in run.stderr.replace("'", "")


def test_an_answer_goes_on_from_its_beginning():
    flags = ("--prompt", PROMPT, "--system-prompt", "Be brief.")
    begun = generate(*flags, "--prefill-response", "The colours are")
    text = (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        f"<|im_start|>user\n{PROMPT}<|im_end|>\n"
        "<|im_start|>assistant\nThe colours are"
    )
    plain = generate("--ignore-chat-template", "--prompt", text)
    assert begun.returncode == 0, begun.stderr
    assert begun.stdout == plain.stdout
    assert begun.stdout != generate(*flags).stdout


def test_template_variables_reach_the_template():
    flags = ("--chat-template", "{{ before }}{{ messages[0].content }}")
    run = generate(
        *flags, "--prompt", " was", "--chat-template-config",
        '{"before": "Once there"}',
    )  # fmt: skip
    plain = generate("--ignore-chat-template", "--prompt", "Once there was")
    assert run.stdout == plain.stdout
    assert run.stdout != generate(*flags, "--prompt", " was").stdout
    for wrong in ("[1]", "{"):
        run = generate("--chat-template-config", wrong)
        assert run.returncode == 2
        assert "--chat-template-config" in run.stderr


def test_flags_of_the_template_need_one(tmp_path):
    for flag, value in (
        ("--system-prompt", "Be brief."),
        ("--prefill-response", "The"),
        ("--chat-template-config", "{}"),
    ):
        run = generate("--ignore-chat-template", flag, value)
        assert run.returncode == 2
        assert flag in run.stderr and "--ignore-chat-template" in run.stderr
    # Without a template the prompt is plain text, as with mlx_lm.
    data = (ROOT / "tests/parity/golden/tiny.gguf").read_bytes()
    key = b"tokenizer.chat_template"
    assert data.count(key) == 1
    path = tmp_path / "plain.gguf"
    path.write_bytes(data.replace(key, key[::-1]))
    tiny = ("--model", str(path), "--prompt", "abc")
    plain = generate(*tiny, "--ignore-chat-template")
    assert plain.returncode == 0, plain.stderr
    assert generate(*tiny).stdout == plain.stdout
    run = generate(*tiny, "--system-prompt", "Be brief.")
    assert run.returncode == 1
    assert "--system-prompt: the model has no chat template" in run.stderr


def test_nothing_but_the_text_without_verbose():
    run = generate("--prompt", PROMPT, "--verbose", "False")
    assert run.stderr == ""
    assert run.stdout == generate("--prompt", PROMPT).stdout


def start(*flags) -> subprocess.Popen:
    """A run that has printed its first bytes and has much left to say."""
    process = subprocess.Popen(
        [PROGRAM, "generate", "--model", MODEL, "--temp", "1", "--seed", "1"]
        + ["--prompt", "Tell a long story.", "--max-tokens", "-1", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert read_soon(process.stdout.fileno(), 1)
    except BaseException:
        process.kill()
        raise
    return process


def test_ctrl_c_cuts_the_text_and_keeps_the_prompt(cache_dir):
    flags = ("--prompt-cache-dir", str(cache_dir))
    process = start(*flags)
    process.send_signal(signal.SIGINT)
    text, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert text.endswith(b"\n")
    assert b"Generation: " in errors
    again = generate(*flags, "--prompt", "Tell a long story.")
    tokens, cached = map(
        int, re.search(r"(\d+) tokens \((\d+) cached", again.stderr).groups()
    )
    assert cached == tokens - 1


def test_a_reader_that_goes_ends_the_text():
    process = start()
    process.stdout.close()
    assert process.wait(timeout=60) == 130
    assert b"Peak memory" in process.stderr.read()
    process.stderr.close()


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
