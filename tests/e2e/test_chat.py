"""`afterglow chat` through a pipe and at a terminal."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import termios
import time

import pytest
from serving import MODEL, PROGRAM, ROOT, Server, read_soon, wait_for
from texts import sentences

TINY = ROOT / "tests/parity/golden/tiny.gguf"
PLAIN = "{% for m in messages %}{{ m.content }}{% endfor %}"
STATISTICS = re.compile(
    r"prompt (\d+) tokens \((\d+) cached\) at [\d.]+, answer (\d+) at [\d.]+"
)
DEFAULTS = {"--model": MODEL, "--max-tokens": 16, "--verbose": True}


def command(flags):
    words = [PROGRAM, "chat", *flags]
    for name, value in DEFAULTS.items():
        if name not in flags:
            words += [name, value]
    return list(map(str, words))


def chat(*lines, flags=(), status=0):
    """Says lines through a pipe, each after the other was answered."""
    run = subprocess.run(
        command(flags),
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == status, run.stderr
    return run


def turns(text):
    """(prompt, cached, answer) tokens of each turn."""
    return [tuple(map(int, found)) for found in STATISTICS.findall(text)]


def computes_new_tokens_only(earlier, later):
    """The last sampled token of an answer has no KV yet."""
    return later[1] >= earlier[0] + earlier[2] - 1


# More than a block: short prompts are computed sooner than looked for on disk.
LONG = "Name three colours. " * 70


def comes_from_disk(turn):
    """The first block, at least."""
    return turn[1] >= 256


class Terminal:
    """A chat at a terminal of its own."""

    def __init__(self, *flags, home, columns=300):
        self.output = ""
        self.seen = 0  # up to where `expect` has looked
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            environment = {
                "TERM": "xterm", "HOME": str(home), "LANG": "C.UTF-8",
                "PATH": os.environ["PATH"],
            }  # fmt: skip
            os.execve(PROGRAM, ["afterglow", "chat", *flags], environment)
        size = struct.pack("HHHH", 50, columns, 0, 0)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, size)
        self.modes = termios.tcgetattr(self.fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self.fd)

    def send(self, text):
        os.write(self.fd, text.encode())

    def expect(self, pattern, seconds=30):
        """Reads until the pattern comes; it is looked for once."""
        deadline = time.monotonic() + seconds
        while not (found := re.compile(pattern).search(self.output, self.seen)):
            assert self._read(deadline), (pattern, self.output)
        self.seen = found.end()
        return found

    def prompt(self):
        self.expect(r"\x1b\[\?2004h")
        self.expect(r">\x1b\[0m ")
        # What comes before the line is edited is the terminal's own to act on.
        wait_for(
            lambda: not termios.tcgetattr(self.fd)[3] & termios.ICANON,
            "edited line",
        )

    def begun(self):
        """Reads until an answer begins: behind the line's editing."""
        self.expect(r"\x1b\[\?2004l\w")

    def turn(self):
        found = self.expect(STATISTICS.pattern)
        return tuple(map(int, found.groups()))

    def end(self):
        """Reads all and returns the exit status."""
        deadline = time.monotonic() + 30
        while self._read(deadline):
            assert time.monotonic() < deadline, self.output
        ended = wait_for(lambda: self._ended(), "end of the chat")
        assert termios.tcgetattr(self.fd) == self.modes
        on, off = "\x1b[?2004h", "\x1b[?2004l"
        assert self.output.count(on) == self.output.count(off)
        return ended[0]

    def _ended(self):
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return pid and (os.waitstatus_to_exitcode(status),)

    def _read(self, deadline):
        left = max(0, deadline - time.monotonic())
        if not select.select([self.fd], [], [], left)[0]:
            return False
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:  # the other side is closed
            return False
        self.output += data.decode(errors="replace")
        return bool(data)


@pytest.fixture
def terminal(tmp_path):
    """Starts chats whose home is a folder of the test."""
    open_ones = []

    def start(*flags):
        one = Terminal("--model", str(MODEL), *flags, home=tmp_path / "home")
        open_ones.append(one)
        return one

    yield start
    for one in open_ones:
        one.__exit__()


def test_answers_as_the_server_does():
    run = chat("Name three colours.", "", "  ", "Which one is warm?")
    with Server() as server:
        first = server.chat("Name three colours.", max_tokens=16)
        second = server.chat(
            "Name three colours.", first.text, "Which one is warm?",
            max_tokens=16,
        )  # fmt: skip
    assert run.stdout == f"{first.text}\n{second.text}\n"
    assert [turn[0] for turn in turns(run.stderr)] == [
        first.prompt_tokens, second.prompt_tokens
    ]  # fmt: skip


def test_the_system_prompt_outlives_a_reset():
    flags = ("--system-prompt", "You only speak French.")
    run = chat("Hello.", "/reset", "Hello.", flags=flags)
    with Server() as server:
        answer = server.chat(
            "Hello.", system="You only speak French.", max_tokens=16
        )
    assert run.stdout == f"{answer.text}\n{answer.text}\n"


def test_a_turn_computes_new_tokens_only():
    run = chat("Name three colours.", "Which one is warm?", "And cold?")
    first, second, third = turns(run.stderr)
    assert first[1] == 0
    assert computes_new_tokens_only(first, second)
    assert computes_new_tokens_only(second, third)


def test_a_saved_chat_goes_on(tmp_path):
    file = tmp_path / "my chat.safetensors"
    whole = chat("Name three colours.", "Which one is warm?", "And cold?")
    saved = chat("Name three colours.", "Which one is warm?", f"/save {file}")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    second = turns(saved.stderr)[1]
    # In a new process: by the command, by the flag, and saved once more.
    for lines, flags in (
        ([f"/load {file}", "And cold?"], []),
        (["And cold?"], ["--load", file]),
        ([f"/save {file}", f"/load {file}", "And cold?"], ["--load", file]),
    ):
        run = chat(*lines, flags=flags)
        assert whole.stdout == saved.stdout + run.stdout
        (third,) = turns(run.stderr)
        assert computes_new_tokens_only(second, third)
        assert "user: Which one is warm?" in run.stderr


def test_the_last_chat_goes_on(cache_dir):
    flags = ["--prompt-cache-dir", cache_dir]
    whole = chat(LONG, "Which one is warm?", "And cold?")
    before = chat(LONG, "Which one is warm?", flags=flags)
    run = chat("And cold?", "/exit", "not said", flags=[*flags, "-c"])
    assert whole.stdout == before.stdout + run.stdout
    (third,) = turns(run.stderr)
    assert comes_from_disk(third)
    assert "4 messages" in run.stderr
    file = cache_dir / "chat/last.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(json.loads(file.read_text())["messages"]) == 6
    # The chat is no stranger to the cache's own commands.
    for words in (["verify"], ["clear", "--yes"]):
        subprocess.run(
            [PROGRAM, "cache", *words, "--prompt-cache-dir", cache_dir],
            check=True,
            capture_output=True,
        )
    assert len(json.loads(file.read_text())["messages"]) == 6


def test_a_continued_chat_can_be_saved_at_once(cache_dir, tmp_path):
    flags = ["--prompt-cache-dir", cache_dir]
    (first,) = turns(chat("Name three colours.", flags=flags).stderr)
    file = tmp_path / "a.safetensors"
    chat(f"/save {file}", flags=[*flags, "--continue"])
    (second,) = turns(chat("And?", flags=["--load", file]).stderr)
    assert computes_new_tokens_only(first, second)


def test_nothing_to_continue_is_no_failure(cache_dir):
    flags = ["--prompt-cache-dir", cache_dir, "--continue"]
    run = chat("Hello.", flags=flags)
    assert "a new one begins" in run.stderr
    assert run.stdout
    (cache_dir / "chat/last.json").write_text('{"version": 1}')
    run = chat("Hello.", flags=flags, status=1)
    assert "last.json: it names no model" in run.stderr


def test_continue_needs_a_directory():
    run = chat(flags=["--continue"], status=2)
    assert "--prompt-cache-dir" in run.stderr


@pytest.mark.parametrize(
    "flag", ["--adapter-path", "--max-kv-size", "--prefill-step-size"]
)
def test_flags_of_mlx_lm_that_do_not_exist_are_named(flag):
    run = chat(flags=[flag, "1"], status=2)
    assert f"{flag} is not supported" in run.stderr


def test_what_is_no_chat_is_refused_and_the_session_goes_on(tmp_path):
    other = tmp_path / "other.safetensors"
    foreign = tmp_path / "foreign.safetensors"
    noise = tmp_path / "noise"
    noise.write_bytes(bytes(range(256)) * 8)
    chat("abc", f"/save {foreign}", flags=["--activations", "int8"])
    subprocess.run(
        [PROGRAM, "cache-prompt", "--model", MODEL, "--prompt", "Hello",
         "--prompt-cache-file", other],
        check=True, capture_output=True,
    )  # fmt: skip
    run = chat(
        "Name three colours.",
        "/save",
        f"/save {tmp_path}/no/such/folder",
        f"/load {other}",
        f"/load {foreign}",
        f"/load {noise}",
        f"/load {tmp_path}/none",
        "/nothing",
        "Which one is warm?",
    )
    errors = [
        line for line in run.stderr.splitlines() if "afterglow: " in line
    ]
    for line, words in zip(
        errors,
        ["needs a file", "no/such/folder", "not a chat that /save wrote",
         "other activations", "not a chat that /save wrote", "none",
         "no command /nothing"],
        strict=True,
    ):  # fmt: skip
        assert words in line
    plain = chat("Name three colours.", "Which one is warm?")
    assert run.stdout == plain.stdout
    assert turns(run.stderr) == turns(plain.stderr)


def test_nothing_said_is_nothing_to_save(tmp_path):
    run = chat(f"/save {tmp_path}/a")
    assert "nothing was said" in run.stderr
    assert not (tmp_path / "a").exists()


def test_another_models_chat_is_refused(tmp_path):
    file = tmp_path / "a.safetensors"
    chat("Hello.", f"/save {file}")
    tiny = ["--model", TINY, "--chat-template", PLAIN]
    run = chat(f"/load {file}", "/help", flags=tiny)
    assert "another model's" in run.stderr
    assert "/save FILE" in run.stderr
    run = chat(flags=[*tiny, "--load", file], status=1)
    assert "another model's" in run.stderr


def test_a_full_context_is_said_and_the_chat_stays():
    run = chat("Name three colours.", "word " * 8192, "Which one is warm?")
    assert "the context is full" in run.stderr
    assert "/reset" in run.stderr
    plain = chat("Name three colours.", "Which one is warm?")
    assert run.stdout == plain.stdout
    assert turns(run.stderr) == turns(plain.stderr)


def test_a_model_file_may_have_any_name(tmp_path, cache_dir):
    model = os.fsencode(tmp_path) + b"/caf\xe9.gguf"
    shutil.copy(MODEL, model)
    flags = ["--model", os.fsdecode(model), "--prompt-cache-dir", cache_dir]
    run = chat("Hello.", "And?", flags=flags)
    assert len(turns(run.stderr)) == 2
    last = json.loads((cache_dir / "chat/last.json").read_text())
    assert last["model"] == "caf\ufffd"
    assert len(last["messages"]) == 4


def begin(*flags):
    """A chat that answers at length through a pipe, and some of the text."""
    process = subprocess.Popen(
        command(["--max-tokens", "2000", *flags]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    text = b""
    try:
        process.stdin.write("Write a long story about a lighthouse.\n")
        process.stdin.flush()
        while len(text) < 200:
            more = read_soon(process.stdout.fileno(), 200 - len(text))
            assert more
            text += more
    except BaseException:
        process.kill()
        raise
    return process, text.decode()


def test_a_killed_chat_goes_on_from_its_last_answer(cache_dir):
    flags = ["--prompt-cache-dir", cache_dir]
    before = chat(LONG, flags=flags)
    process, _ = begin("--continue", *flags)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    after = chat("Which one is warm?", flags=[*flags, "--continue"])
    whole = chat(LONG, "Which one is warm?")
    assert before.stdout + after.stdout == whole.stdout
    (second,) = turns(after.stderr)
    assert comes_from_disk(second)


def test_sigint_cuts_the_answer_and_the_next_line_is_answered(cache_dir):
    process, text = begin("--prompt-cache-dir", cache_dir)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate("/exit\n", timeout=60)
    assert process.returncode == 0
    assert "Cut" in errors
    last = json.loads((cache_dir / "chat/last.json").read_text())
    assert last["messages"][1]["content"] + "\n" == text + output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_keeps_the_answer_so_far(cache_dir, number):
    process, text = begin("--prompt-cache-dir", cache_dir)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    last = json.loads((cache_dir / "chat/last.json").read_text())
    assert last["messages"][1]["content"] + "\n" == text + output
    first = turns(errors)[0]
    run = chat("Go on.", flags=["--prompt-cache-dir", cache_dir, "-c"])
    assert computes_new_tokens_only(first, turns(run.stderr)[0])


def test_a_reader_that_leaves_ends_it():
    process, _ = begin()
    process.stdout.close()
    assert process.wait(60) == 1


def test_at_a_terminal(terminal, tmp_path):
    one = terminal("--max-tokens", "16")
    one.prompt()
    one.send("Name threee\x7f colours.\r")
    first = one.turn()
    one.prompt()
    one.send("to be cleared\x03")
    one.expect(r"\^C")
    one.prompt()
    one.send("Which one is warm?\r")
    second = one.turn()
    assert computes_new_tokens_only(first, second)
    plain = chat("Name three colours.", "Which one is warm?")
    assert [first, second] == turns(plain.stderr)
    one.prompt()
    one.send("/help\r")
    one.expect("/save FILE")
    one.prompt()
    one.send("\x04")
    assert one.end() == 0
    # What was typed can be called back in the next chat.
    other = terminal("--max-tokens", "16")
    other.prompt()
    other.send("\x1b[A\x1b[A\r")
    other.expect("Which one is warm")
    other.turn()
    other.prompt()
    other.send("/exit\r")
    assert other.end() == 0
    history = tmp_path / "home/.local/state/afterglow/chat_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_ctrl_c_cuts_the_answer_and_keeps_the_session(terminal):
    one = terminal("--max-tokens", "200")
    one.prompt()
    one.send("Write a long story about a lighthouse.\r")
    one.begun()
    one.send("\x03")
    one.expect("what was said so far stays")
    first = one.turn()
    assert first[2] < 200
    one.prompt()
    # How long this answer is depends on where the first one was cut.
    one.send("/save a\x15Go on.\r")
    second = one.turn()
    assert second[1] >= first[0]
    one.prompt()
    one.send("\x04")
    assert one.end() == 0


def test_pasted_lines_are_one_message(terminal, cache_dir):
    one = terminal("--max-tokens", "4", "--prompt-cache-dir", str(cache_dir))
    one.prompt()
    one.send("\x1b[200~größer:\r\tx = 日本 🎉\r/exit\x1b[201~ really\x1b\r?\r")
    one.turn()
    one.prompt()
    last = json.loads((cache_dir / "chat/last.json").read_text())
    said = "größer:\n\tx = 日本 🎉\n/exit really\n?"
    assert last["messages"][0]["content"] == said
    one.send("\x04")
    assert one.end() == 0


def test_a_bar_shows_while_a_long_prompt_is_read(terminal):
    one = terminal("--max-tokens", "4")
    one.prompt()
    one.send(f"\x1b[200~{sentences(60, seed=2)}\x1b[201~\r")
    one.expect(r"Reading the prompt \[#*\.+\] \d+/\d+")
    one.turn()
    one.prompt()
    one.send("\x04")
    assert one.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("busy", [False, True])
def test_a_signal_leaves_the_terminal_as_it_was(terminal, number, busy):
    one = terminal("--max-tokens", "2000")
    one.prompt()
    one.send("Write a long story about a lighthouse." + "\r" * busy)
    one.begun() if busy else one.expect("lighthouse")
    os.kill(one.pid, number)
    assert one.end() == 128 + number


def test_a_second_ctrl_c_ends_at_once(terminal, cache_dir):
    one = terminal(
        "--max-tokens", "2000", "--prompt-cache-dir", str(cache_dir)
    )
    one.prompt()
    one.send("Write a long story about a lighthouse.\r")
    one.begun()
    # Both are there before the first is looked at.
    os.kill(one.pid, signal.SIGSTOP)
    wait_for(
        lambda: os.waitpid(one.pid, os.WUNTRACED | os.WNOHANG)[0], "stop"
    )
    os.kill(one.pid, signal.SIGINT)
    os.kill(one.pid, signal.SIGTERM)
    os.kill(one.pid, signal.SIGCONT)
    # Which comes second is not said, and its number is the status.
    assert one.end() in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    # With one signal alone the answer would be kept, and explained.
    assert "stays in the conversation" not in one.output
    assert not STATISTICS.search(one.output)
    assert not (cache_dir / "chat/last.json").exists()
