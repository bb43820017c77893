"""What a server takes at its start, what it refuses, and what it says then."""

import re
import shlex
import subprocess

import pytest
from serving import MODEL, Server, ServerError, run, wait_for

MIB = 1 << 20
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"
# Shows tools, and tells nobody how calls are to look.
SHOWS_TOOLS = TEMPLATE + "{{ tools }}"


def serve(*flags, **variables) -> subprocess.CompletedProcess:
    return run("serve", "--port", 0, "--model", MODEL, *flags, **variables)


def started(server: Server) -> str:
    """What it has printed, with all that it says when it is ready."""
    wait_for(lambda: "Ready: " in server.output(), "readiness")
    return server.output()


def warnings(server: Server) -> list[str]:
    return re.findall(r"^\S+Z warning (.*)", started(server), re.MULTILINE)


def ready_line(server: Server) -> dict[str, str]:
    (line,) = re.findall(
        r"^\S+Z info ready (.*)", started(server), re.MULTILINE
    )
    return dict(pair.split("=", 1) for pair in shlex.split(line))


@pytest.mark.parametrize(
    "flags, message",
    [
        ("--ssl-cert-file x", "--ssl-cert-file: needs --ssl-key-file"),
        ("--ssl-key-file x", "--ssl-key-file: needs --ssl-cert-file"),
        ("--api-key ''", "--api-key: must be one word of printable ASCII"),
        (
            "--allowed-origins localhost:3000",
            "--allowed-origins: 'localhost:3000' is no origin",
        ),
        (
            "--allowed-origins http://a.example,b",
            "--allowed-origins: 'b' is no origin",
        ),
        (
            "--prompt-cache-disk-bytes 0 --prompt-cache-dir x",
            "--prompt-cache-disk-bytes: must be at least 1",
        ),
        (
            "--prompt-cache-disk-bytes 10G",
            "--prompt-cache-disk-bytes: needs --prompt-cache-dir",
        ),
        (
            "--prompt-cache-daily-writes 1G",
            "--prompt-cache-daily-writes: needs --prompt-cache-dir",
        ),
        ("--prompt-cache-dir ''", "--prompt-cache-dir: must not be empty"),
        ("--prompt-cache-ttl 1y", "--prompt-cache-ttl: '1y' is no span"),
        ("--prompt-cache-ttl nan", "--prompt-cache-ttl: must be between"),
        ("--backend mlx --activations f32", "--activations: is for"),
        ("--chat-template chatml", "--chat-template: 'chatml' is no chat"),
        ("--chat-template '{{ x }}'", "it never uses 'messages'"),
        (
            "--chat-template /nowhere/x.jinja",
            "--chat-template: cannot read /nowhere/x.jinja",
        ),
    ],
)
def test_a_wrong_command_line_ends_before_anything_is_opened(flags, message):
    answer = serve(*shlex.split(flags))
    assert answer.returncode == 2
    assert message in answer.stderr.splitlines()[0]
    assert answer.stdout == ""


@pytest.mark.parametrize(
    "command", ["generate", "chat", "cache-prompt --prompt x"]
)
def test_other_commands_refuse_the_same(command, tmp_path):
    command = command.split()
    if command[0] == "cache-prompt":
        command += ["--prompt-cache-file", tmp_path / "file"]
    for flags, message in (
        ("--prompt-cache-dir ''", "--prompt-cache-dir: must not be empty"),
        (
            "--prompt-cache-disk-bytes 10G",
            "--prompt-cache-disk-bytes: needs --prompt-cache-dir",
        ),
        ("--backend mlx --activations f32", "--activations: is for"),
        ("--chat-template chatml", "--chat-template: 'chatml' is no chat"),
    ):
        answer = run(*command, "--model", MODEL, *shlex.split(flags))
        assert answer.returncode == 2, answer.stderr
        assert message in answer.stderr.splitlines()[0]


def test_the_cache_commands_need_a_directory_with_a_name():
    answer = run("cache", "list", "--prompt-cache-dir", "")
    assert answer.returncode == 2
    assert "--prompt-cache-dir: must not be empty" in answer.stderr


def test_flags_that_need_each_other_may_come_from_elsewhere(tmp_path):
    """One of the two on the line, the other one in the environment."""
    cache = tmp_path / "cache"
    answer = run(
        "generate", "--model", MODEL, "--max-tokens", 1,
        "--prompt-cache-disk-bytes", "1G",
        AFTERGLOW_PROMPT_CACHE_DIR=str(cache),
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert (cache / "v1").is_dir()


@pytest.mark.parametrize("command", ["serve --port 0", "generate", "chat"])
def test_a_default_that_the_model_cannot_do_is_refused(command):
    answer = run(
        *command.split(), "--model", MODEL, "--top-k", 100000,
        "--activations", "int8",
    )  # fmt: skip
    assert answer.returncode == 1
    assert "--top-k must be below the vocabulary's size, 49152" in answer.stderr
    assert "Ready:" not in answer.stdout


def test_a_memory_limit_for_no_request_is_refused():
    """One page besides weights and steps is the least."""
    fast = ("--activations", "int8")
    answer = serve(*fast, "--memory-limit", 1)
    assert answer.returncode == 1
    found = re.search(
        r"weights, (\d+) bytes, what computing needs besides, (\d+) bytes, "
        r"and what any request needs, (\d+) bytes",
        answer.stderr,
    )
    assert found, answer.stderr
    least = sum(map(int, found.groups()))
    assert serve(*fast, "--memory-limit", least).returncode == 1
    with Server(*fast, "--memory-limit", least + 4096) as server:
        assert server.complete("a", max_tokens=1).completion_tokens == 1


def test_a_limit_beyond_the_memory_is_warned_of():
    with Server("--memory-limit", "900T") as server:
        (warning,) = warnings(server)
        assert warning.startswith("--memory-limit, 900.0 TB, is more than the ")
        assert ready_line(server)["memory_limit"] == str(900 * 10**12)


def test_the_ready_line_says_what_is_served_and_where(cache_dir):
    with Server(
        "--memory-limit", "700MiB", "--prompt-cache-bytes", "100MiB",
        "--prompt-cache-disk-bytes", "1GiB", cache=cache_dir,
    ) as server:  # fmt: skip
        ready = ready_line(server)
        assert warnings(server) == []
    version = run("--version").stdout.strip()
    assert {**ready, "load_ms": ""} == {
        "version": version,
        "model": "SmolLM2-135M-Instruct.Q4_1",
        "architecture": "llama",
        "quantization": "Q4_1",
        "backend": "cpu int16",
        "context": "8192",
        "address": f"http://127.0.0.1:{server.port}",
        "memory_limit": str(700 * MIB),
        "ram_budget": str(100 * MIB),
        "disk_budget": str(1024 * MIB),
        "tool_format": "none",
        "reasoning_format": "none",
        "load_ms": "",
    }
    assert re.fullmatch(r"\d+", ready["load_ms"])


def test_by_default_the_budgets_are_shares_of_the_memory():
    with Server() as server:
        ready = ready_line(server)
    limit, ram = int(ready["memory_limit"]), int(ready["ram_budget"])
    assert limit > 0 and ready["disk_budget"] == "0"
    assert limit / 0.8 == pytest.approx(ram / 0.25, rel=1e-6)


def test_a_template_may_be_a_file(tmp_path):
    path = tmp_path / "mine.jinja"
    path.write_text("<" + TEMPLATE + ">")
    with Server("--chat-template", path) as server:
        status, answer = server.request(
            "POST",
            "/apply-template",
            {"messages": [{"role": "user", "content": "a bird"}]},
        )
        assert (status, answer) == (200, {"prompt": "<a bird>"})
        assert warnings(server) == []


def test_a_file_of_another_name_is_told_how_it_is_passed(tmp_path):
    path = tmp_path / "template"
    path.write_text(TEMPLATE)
    answer = serve("--chat-template", path)
    assert answer.returncode == 2
    assert 'write --chat-template "$(cat FILE)"' in answer.stderr


def test_a_template_that_refuses_every_chat_is_warned_of():
    template = "{{ messages }}{{ raise_exception('no chats today') }}"
    with Server("--chat-template", template) as server:
        (warning,) = warnings(server)
    assert "no chats today" in warning


def test_tools_that_no_answer_can_use_are_warned_of_once():
    tool = {"type": "function", "function": {"name": "look"}}
    body = {
        "messages": [{"role": "user", "content": "Look."}],
        "max_tokens": 1,
        "tools": [tool],
    }

    def ask(server: Server, **more):
        status, answer = server.request(
            "POST", "/v1/chat/completions", body | more
        )
        assert status == 200, answer

    with Server("--chat-template", SHOWS_TOOLS) as server:
        assert ready_line(server)["tool_format"] == "none"
        ask(server, tools=[])
        ask(server, tool_choice="none")
        assert warnings(server) == []
        ask(server)
        ask(server)
        (warning,) = warnings(server)
        assert "no format of tool calls was recognised" in warning
    known = SHOWS_TOOLS + "<tool_call>{json}</tool_call>"
    with Server("--chat-template", known) as server:
        assert ready_line(server)["tool_format"] == "json_tools"
        ask(server)
        assert warnings(server) == []


def test_a_span_may_have_a_unit():
    for span in ("12h", "90", "0.5", "1e3", "2w"):
        answer = serve("--prompt-cache-ttl", span, "--print-config")
        assert answer.returncode == 0, answer.stderr
        assert re.search(
            rf'^prompt-cache-ttl = "?{span}"?  #', answer.stdout, re.MULTILINE
        )
    with pytest.raises(ServerError):
        Server("--prompt-cache-ttl", "1y")
