"""Flags from a file and from the environment, and which of them win."""

import random
import re
import tomllib
from pathlib import Path

import pytest
from serving import MODEL, Server, run

SEED = 20261130


def printed(*arguments, **variables) -> str:
    answer = run("serve", "--print-config", *arguments, **variables)
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    return answer.stdout


def config(*arguments, **variables) -> dict:
    return tomllib.loads(printed(*arguments, **variables))


def refused(*arguments, **variables) -> str:
    answer = run("serve", "--print-config", *arguments, **variables)
    assert answer.returncode == 2, answer.stdout
    assert answer.stdout == ""
    return answer.stderr.splitlines()[0]


@pytest.fixture
def settings(tmp_path: Path):
    """Writes a file and gives its path."""

    def write(text: str) -> Path:
        path = tmp_path / "serve.toml"
        path.write_text(text)
        return path

    return write


def test_the_line_wins_over_the_environment_over_the_file(settings):
    file = settings("port = 1\nmax-tokens = 2\ntop-k = 3\n")
    found = config(
        "--config",
        file,
        "--port",
        10,
        AFTERGLOW_PORT="20",
        AFTERGLOW_MAX_TOKENS="21",
    )
    assert found["port"] == 10
    assert found["max-tokens"] == 21
    assert found["top-k"] == 3
    assert found["top-p"] == 1
    text = printed("--config", file, "--port", 10, AFTERGLOW_MAX_TOKENS="21")
    assert "port = 10  # command line\n" in text
    assert "max-tokens = 21  # AFTERGLOW_MAX_TOKENS\n" in text
    assert f"top-k = 3  # {file}:3\n" in text
    assert "top-p = 1  # default\n" in text


def test_the_file_may_be_named_in_the_environment(settings):
    file = settings("port = 1\n")
    assert config(AFTERGLOW_CONFIG=str(file))["port"] == 1
    other = file.with_name("other.toml")
    other.write_text("port = 2\n")
    named = config("--config", other, AFTERGLOW_CONFIG=str(file))
    assert named["port"] == 2


def every_flag() -> dict[str, object]:
    """A value other than the default for each flag of serve."""
    return {
        "model": "some/model",
        "backend": "mlx",
        "activations": "int8",
        "threads": 2,
        "chat-template": '{# "x" #}\n{{ messages[0]["content"] }}\t\\',
        "host": "::1",
        "port": 9,
        "api-key-file": "/keys",
        "allowed-origins": ["https://a.example", "http://b.example:81"],
        "ssl-cert-file": "/cert.pem",
        "ssl-key-file": "/key.pem",
        "max-connections": 12,
        "temp": 0.5,
        "top-p": 0.25,
        "top-k": 4,
        "min-p": 0.125,
        "max-tokens": 7,
        "chat-template-args": '{"enable_thinking": false}',
        "prompt-cache-dir": "/a folder/é",
        "prompt-cache-size": 8,
        "prompt-cache-bytes": "1GiB",
        "prompt-cache-disk-bytes": "2G",
        "prompt-cache-daily-writes": 3000000,
        "prompt-cache-ttl": 60,
        "memory-limit": "4GiB",
        "prompt-cache-file": ["one.safetensors", "two, three.safetensors"],
        "cache-namespaces": True,
        "decode-concurrency": 5,
        "prompt-concurrency": 6,
        "prefill-step-size": 64,
        "queue-limit": 11,
        "drain-seconds": 13,
        "log-level": "ERROR",
    }


def as_toml(value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        escaped = escaped.replace("\n", "\\n").replace("\t", "\\t")
        return f'"{escaped}"'
    return str(value)


def test_each_flag_is_taken_from_the_file_and_printed_for_it(settings):
    flags = every_flag()
    file = settings("".join(f"{k} = {as_toml(v)}\n" for k, v in flags.items()))
    first = printed("--config", file)
    assert tomllib.loads(first) == flags
    again = printed("--config", settings(first))
    assert tomllib.loads(again) == flags


def test_each_flag_is_taken_from_the_environment():
    flags = every_flag()
    flags["prompt-cache-file"] = ["one.safetensors"]
    variables = {}
    for name, value in flags.items():
        text = ",".join(value) if isinstance(value, list) else str(value)
        if value is True:
            text = "on"
        variables["AFTERGLOW_" + name.upper().replace("-", "_")] = text
    assert config(**variables) == flags


def test_every_flag_of_the_help_is_among_them():
    help_text = run("serve", "--help").stdout
    names = set()
    for line in help_text.splitlines():
        if line.startswith("  --"):
            names.add(line.split()[0].removeprefix("--").split("=")[0])
    assert len(names) > 20
    only_on_the_line = {"config", "print-config"}
    shown = {
        line.split()[line.startswith("# ")]
        for line in printed().splitlines()[1:]
    }
    assert names - only_on_the_line == shown
    assert every_flag().keys() == shown - {"api-key"}


def test_defaults_print_and_are_taken_again(settings):
    first = config()
    assert first["port"] == 8080 and first["cache-namespaces"] is False
    assert config("--config", settings(printed())) == first


def test_keys_are_never_printed(settings):
    key = "sk-very-secret"
    file = settings(f"api-key = [{as_toml(key)}, 'sk-another']\nport = 1\n")
    by_line = printed("--api-key", key)
    assert "# api-key is not shown; command line\n" in by_line
    by_variable = printed(AFTERGLOW_API_KEY=key)
    assert "# api-key is not shown; AFTERGLOW_API_KEY\n" in by_variable
    by_file = printed("--config", file)
    assert f"# api-key is not shown; {file}:1\n" in by_file
    for text in (by_line, by_variable, by_file):
        assert "secret" not in text and "another" not in text
        assert "api-key" not in tomllib.loads(text)
    # What is left is a file all the same.
    assert config("--config", settings(by_file))["port"] == 1


def test_keys_of_a_file_open_the_server(settings):
    file = settings("api-key = ['sk-one', 'sk-two']\n")
    file.chmod(0o644)
    with Server("--config", file) as server:
        assert f"others than its owner may read or change {file}" in (
            server.output()
        )
        for key, status in (("sk-one", 200), ("sk-two", 200), ("sk-3", 401)):
            connection = server.connect()
            try:
                connection.request(
                    "GET", "/v1/models", headers={"X-Api-Key": key}
                )
                assert connection.getresponse().status == status
            finally:
                connection.close()
    file.chmod(0o600)
    with Server("--config", file) as server:
        assert "others than" not in server.output()


def test_a_switch_can_be_taken_back(settings):
    file = settings("cache-namespaces = true\n")
    assert config("--config", file)["cache-namespaces"] is True
    for variables, arguments in (
        ({"AFTERGLOW_CACHE_NAMESPACES": "no"}, ()),
        ({}, ("--cache-namespaces=false",)),
    ):
        found = config("--config", file, *arguments, **variables)
        assert found["cache-namespaces"] is False


@pytest.mark.parametrize(
    "line, message",
    [
        (
            "prot = 1",
            "'prot' is no flag that serve takes from a file; "
            "did you mean 'port'?",
        ),
        ("max_tokens = 1", "; did you mean 'max-tokens'?"),
        ("kv-bitz = 1", "'kv-bitz' is no flag that serve takes from a file"),
        ("config = 'x'", "'config' is no flag"),
        ("help = true", "'help' is no flag"),
        ("print-config = true", "'print-config' is no flag"),
        ("port = 99999", "--port"),
        ("port = [1]", "'port' takes one value"),
        ("api-key = []", "'api-key' must not be empty"),
        ("api-key-file = ''", "--api-key-file: must not be empty"),
        ("ssl-key-file = ''", "--ssl-key-file: must not be empty"),
        ("prompt-cache-dir = ''", "--prompt-cache-dir: must not be empty"),
        ("prompt-cache-disk-bytes = 0", "--prompt-cache-disk-bytes"),
        ("prompt-cache-ttl = '1y'", "--prompt-cache-ttl: '1y' is no span"),
        ("chat-template = 'chatml'", "--chat-template: 'chatml' is no chat"),
        ("allowed-origins = 'localhost:1'", "'localhost:1' is no origin"),
        ("api-key = ['sk-one', '']", "--api-key: must be one word"),
        ("queue-limit = -1", "--queue-limit: must be a whole number from 0"),
        ("port = 'x'", "--port"),
        ("log-level = 'LOUD'", "--log-level: LOUD not in"),
        ("cache-namespaces = 'maybe'", "'maybe' is neither true nor false"),
        ("memory-limit = '4 bananas'", "--memory-limit"),
        ("kv-bits = 4", "--kv-bits is not supported: "),
        ("chat-template-args = '{\"tools\": []}'", "--chat-template-args"),
        ("[serve]", "there are no tables"),
        ("port 8080", "'port' has no '='"),
        ("top-k = 0", "'top-k' is set in line 2 already"),
    ],
)
def test_faults_of_the_file_name_its_line(settings, line, message):
    file = settings(f"# comment\ntop-k = 1\n{line}\n")
    error = refused("--config", file)
    assert error.startswith(f"{file}:3: "), error
    assert message in error


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path):
        error = refused("--config", path)
        assert f"cannot read {path}: " in error


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("PORT", "x", "--port"),
        ("PORT", "udp://10.0.0.7:8080", "--port"),
        ("MAX_TOKENS", "0", "--max-tokens: must be a whole number from 1"),
        ("TEMP", "-1", "--temp: must be a number from 0"),
        ("TOP_P", "nan", "--top-p: must be a number from 0 to 1"),
        ("API_KEY", "sk one", "--api-key: must be one word"),
        ("CHAT_TEMPLATE", "x.jinja", "--chat-template: cannot read x.jinja"),
        ("PROMPT_CACHE_TTL", "-1", "--prompt-cache-ttl: must be between 0"),
        ("CACHE_NAMESPACES", "x", "'x' is neither true nor false"),
        ("KV_BITS", "4", "--kv-bits is not supported: "),
    ],
)
def test_faults_of_the_environment_name_the_variable(name, value, message):
    error = refused(**{"AFTERGLOW_" + name: value})
    assert error.startswith(f"AFTERGLOW_{name}: ")
    assert message in error


def test_an_empty_variable_counts_as_none(settings):
    file = settings("port = 1\n")
    assert config("--config", file, AFTERGLOW_PORT="")["port"] == 1


def test_the_port_that_kubernetes_sets_is_not_ours(settings):
    service = "tcp://10.0.0.7:8080"
    assert config(AFTERGLOW_PORT=service)["port"] == 8080
    file = settings("port = 1\n")
    text = printed("--config", file, AFTERGLOW_PORT=service)
    assert f"port = 1  # {file}:1\n" in text


def test_a_variable_that_nothing_reads_is_warned_of(tmp_path):
    variables = {
        "PROMPT_CACHE_BITES": "sk-secret",
        "NOTHING_LIKE_IT": "",
        "LOG_LEVEL": "INFO",
        "SYSTEM_PROMPT": "another command's",
        "PROGRAM": "of tests",
        "SERVICE_HOST": "10.0.0.7",
        "SERVICE_PORT": "8080",
        "SERVICE_PORT_HTTP": "8080",
        "PORT": "tcp://10.0.0.7:8080",
        "PORT_8080_TCP": "tcp://10.0.0.7:8080",
        "PORT_8080_TCP_PORT": "8080",
    }
    # It ends for want of the keys, after the warnings.
    answer = run(
        "serve",
        "--api-key-file",
        tmp_path / "none",
        **{"AFTERGLOW_" + name: value for name, value in variables.items()},
    )
    assert answer.returncode == 1
    unknown = "is set, but there is no such variable"
    assert re.findall(" warning (.*)", answer.stderr) == [
        f"AFTERGLOW_NOTHING_LIKE_IT {unknown}",
        f"AFTERGLOW_PROMPT_CACHE_BITES {unknown}; "
        "did you mean AFTERGLOW_PROMPT_CACHE_BYTES?",
    ]
    assert "sk-secret" not in answer.stderr


def test_strings_are_read_as_tomllib_reads_them(settings):
    """Random statements: what both take is the same; we take no more."""
    draw = random.Random(SEED)
    pieces = [
        *"ab#,=[]{} \t\n'\"\\",
        '"""', "'''", "\\n", '\\"', "\\\\", "\\u00e9", "\\U0001F600",
        "\\x", "\\ud800", "é", "\r\n", "\r", "\x01",
    ]  # fmt: skip
    taken = 0
    for _ in range(400):
        quote = draw.choice(['"', "'", '"""', "'''"])
        inside = "".join(draw.choices(pieces, k=draw.randrange(8)))
        text = f"model = {quote}{inside}{quote}\n"
        file = settings("")
        file.write_bytes(text.encode())
        answer = run("serve", "--print-config", "--config", file)
        try:
            wanted = tomllib.loads(file.read_bytes().decode())
        except tomllib.TOMLDecodeError:
            assert answer.returncode == 2, (SEED, text)
            continue
        # A key may follow a string that ended early.
        if set(wanted) != {"model"}:
            continue
        if not isinstance(wanted["model"], str):
            continue
        assert answer.returncode == 0, (SEED, text, answer.stderr)
        found = tomllib.loads(answer.stdout).get("model", "")
        assert found == wanted["model"], (SEED, text)
        taken += 1
    assert taken > 100


def test_the_server_uses_them(settings, cache_dir):
    file = settings(
        f"max-tokens = 3\nprompt-cache-dir = {as_toml(str(cache_dir))}\n"
    )
    with Server("--config", file) as server:
        status, answer = server.request(
            "POST", "/v1/completions", {"prompt": "Once upon a time"}
        )
        assert status == 200
        assert answer["usage"]["completion_tokens"] == 3
        assert server.get("/v1/cache")["disk"] is not None


def test_other_commands_take_what_says_how_a_model_runs(tmp_path):
    def generate(**variables):
        answer = run(
            "generate", "--model", MODEL, "--max-tokens", 1, **variables
        )
        return answer.returncode, answer.stderr

    status, error = generate(AFTERGLOW_TOP_P="3")
    assert status == 2 and error.startswith("AFTERGLOW_TOP_P: ")
    folder = tmp_path / "cache"
    assert generate(AFTERGLOW_PROMPT_CACHE_DIR=str(folder))[0] == 0
    assert (folder / "v1").is_dir()
    # The server's own flags are none of generate's.
    assert generate(AFTERGLOW_PORT="x")[0] == 0
