"""Each flag of mlx_lm's programs is taken, or refused by its name."""

import argparse
import importlib
import re
import subprocess
from unittest import mock

import pytest
from serving import PROGRAM, ROOT

PROGRAMS = {
    "generate": "mlx_lm.generate",
    "cache-prompt": "mlx_lm.cache_prompt",
    "chat": "mlx_lm.chat",
    "serve": "mlx_lm.server",
}


def run(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [PROGRAM, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


class ParserMade(Exception):
    """Carries the parser that a program was about to use."""


def mlx_parser(name: str) -> argparse.ArgumentParser:
    module = importlib.import_module(name)
    if hasattr(module, "setup_arg_parser"):
        return module.setup_arg_parser()

    def parse_args(parser, *_):
        raise ParserMade(parser)

    with (
        mock.patch("argparse.ArgumentParser.parse_args", parse_args),
        pytest.raises(ParserMade) as made,
    ):
        module.main()
    return made.value.args[0]


def mlx_flags(module: str) -> dict[str, object]:
    """The longest spelling of each flag, and the flag."""
    parser = mlx_parser(module)
    return {
        max(action.option_strings, key=len): action
        for action in parser._actions
        if action.option_strings
    }


@pytest.mark.parametrize("command", PROGRAMS)
def test_no_flag_of_mlx_lm_is_unknown(command: str):
    flags = mlx_flags(PROGRAMS[command])
    assert len(flags) > 8
    help_text = run(command, "--help").stdout
    taken, refused = set(), set()
    for name, action in flags.items():
        if re.search(rf"{name}\b(?!-)", help_text):
            taken.add(name)
            for spelling in action.option_strings:
                assert re.search(rf"[\s,]{spelling}\b", help_text), spelling
            continue
        for spelling in (name, name + "=4"):
            answer = run(command, spelling)
            assert answer.returncode == 2, (spelling, answer.stderr)
            assert f"{name} is not supported: " in answer.stderr
            assert answer.stdout == ""
        refused.add(name)
    assert {"--model", "--help"} <= taken
    assert {"--adapter-path", "--trust-remote-code"} <= refused


def same_flags(letter: str) -> set[str]:
    """Those of a program whose default docs/cli.md calls the same."""
    text = (ROOT / "docs/cli.md").read_text().split("## Flags of mlx_lm")[1]
    rows = re.findall(r"^\| (`-.*) \| ([gcps ]+) \| same", text, re.MULTILINE)
    return {
        name
        for names, letters in rows
        if letter in letters
        for name in re.findall(r"--[a-z-]+", names)
    }


@pytest.mark.parametrize("command, letter", list(zip(PROGRAMS, "gpcs")))
def test_defaults_are_the_same_where_the_docs_say_so(command, letter):
    flags = mlx_flags(PROGRAMS[command])
    # The installed model, as that row says.
    names = same_flags(letter) - {"--model"}
    assert names
    help_text = run(command, "--help").stdout
    for name in names & flags.keys():
        pattern = rf"^  (?:-\w,)?{name}(?![\w-]).*?(?=  |$)"
        (line,) = re.findall(pattern, help_text, re.MULTILINE)
        shown = re.search(r"=(\S+)", line)
        default = flags[name].default
        if default is None or default is False or default in ((), "", "{}"):
            assert not shown, (name, line)
        elif isinstance(default, str):
            assert shown and shown[1] == default, (name, line)
        else:
            assert shown and float(shown[1]) == default, (name, line)


@pytest.mark.parametrize("value", [(), ("4",), ("4", "5")])
def test_a_refused_flag_is_named_whatever_follows(value):
    answer = run("generate", "--kv-bits", *value, "--prompt", "x")
    assert answer.returncode == 2
    assert "--kv-bits is not supported: " in answer.stderr
    answer = run("generate", "-qa")
    assert answer.returncode == 2
    assert "--quantize-activations is not supported: " in answer.stderr


def test_the_servers_flags_are_refused_by_name_too():
    for flag in ("--draft-model", "--kv-bits", "--pipeline"):
        answer = run("serve", flag, "x")
        assert answer.returncode == 2
        assert f"{flag} is not supported: " in answer.stderr


@pytest.mark.parametrize(
    "line, message, meant",
    [
        (
            "serve --prompt-cache-bites 4",
            "serve has no flag --prompt-cache-bites",
            "--prompt-cache-bytes",
        ),
        ("serve --prot=1 x", "serve has no flag --prot", "--port"),
        ("serve --no-such-thing 3", "serve has no flag --no-such-thing", ""),
        # Before what it makes look missing.
        (
            "cache-prompt --prompt x --prompt-cache-fiel y",
            "cache-prompt has no flag --prompt-cache-fiel",
            "--prompt-cache-file",
        ),
        ("cache list --jsno", "cache list has no flag --jsno", "--json"),
        ("cache --jsno list", "cache has no flag --jsno", ""),
        # Of flags in a group.
        (
            "cache import f --mesages m",
            "cache import has no flag --mesages",
            "--messages",
        ),
        # Nobody is told to use what is refused.
        ("serve --kv-bitz 4", "serve has no flag --kv-bitz", ""),
    ],
)
def test_a_flag_that_does_not_exist_is_named_with_the_one_meant(
    line, message, meant
):
    answer = run(*line.split())
    assert answer.returncode == 2
    hint = f"; did you mean {meant}?" if meant else ""
    assert answer.stderr.splitlines()[0] == f"afterglow {message}{hint}"
    assert answer.stdout == ""


def test_words_that_are_no_flags_are_no_flags():
    answer = run("models", "pull", "a", "b")
    assert answer.returncode == 2
    assert answer.stderr.startswith("The following argument was not expected")
