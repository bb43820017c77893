"""Models of the Hugging Face hub: downloads, the cache, what can go wrong."""

import hashlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hub_stand_in import Hub
from serving import MODEL, PROGRAM, ROOT, Server, read_soon, wait_for

TINY = ROOT / "tests/parity/golden/q4-g32"
BIG = 3_000_000


def big(seed: int, size: int = BIG) -> bytes:
    return (hashlib.sha256(b"%d" % seed).digest() * (size // 32 + 1))[:size]


def tokenizer() -> str:
    """One token for each printable character: the tiny model's 96."""
    tokens = ["<unk>", "Ġ", *map(chr, range(33, 127))]
    byte_level = {"add_prefix_space": False, "trim_offsets": True}
    return json.dumps(
        {
            "version": "1.0",
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", **byte_level},
            "decoder": {"type": "ByteLevel", **byte_level},
            "model": {
                "type": "BPE",
                "unk_token": "<unk>",
                "vocab": {token: i for i, token in enumerate(tokens)},
                "merges": [],
            },
        }
    )


def tiny_files() -> dict[str, bytes]:
    return {
        "README.md": b"# A tiny model\n",
        "config.json": (TINY / "config.json").read_bytes(),
        "model.safetensors": (TINY / "model.safetensors").read_bytes(),
        "tokenizer.json": tokenizer().encode(),
        "tokenizer_config.json": b"{}",
    }


WANTED = sorted(tiny_files().keys() - {"README.md"})


@pytest.fixture
def hub():
    with Hub() as hub:
        yield hub


class Machine:
    """A home of its own, and the programs that use it."""

    def __init__(self, home: Path, hub: Hub):
        self.cache = home / "hub"
        self.home = home
        home.mkdir()
        hidden = ("HF_", "HUGGING", "AFTERGLOW", "XDG_")
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(hidden) and "proxy" not in name.lower()
        }
        self.environment |= {"HF_HOME": str(home), "HF_ENDPOINT": hub.url}

    def start(self, *arguments, **options):
        return subprocess.Popen(
            [str(PROGRAM), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            **options,
        )

    def run(self, *arguments, status: int | None = 0):
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        process.out, process.err = out, err
        if status is not None:
            assert process.returncode == status, out + err
        return process

    def pull(self, name: str, status: int = 0):
        return self.run("models", "pull", name, status=status)

    def generate(self, model, *flags, status: int = 0):
        return self.run(
            "generate", "--model", model, "--prompt", "Who?", "--temp", "0",
            "--max-tokens", "8", *flags, status=status,
        )  # fmt: skip

    def installed(self) -> list[dict]:
        """The models in the cache; others may lie beside the program."""
        listed = json.loads(self.run("models", "--json").out)
        assert listed["hub_cache"] == str(self.cache)
        return [
            model
            for model in listed["models"]
            if model["path"].startswith(str(self.cache))
        ]

    def repository(self, name: str) -> Path:
        return self.cache / ("models--" + name.replace("/", "--"))

    def blobs(self, name: str) -> dict[str, int]:
        folder = self.repository(name) / "blobs"
        return {path.name: path.stat().st_size for path in folder.glob("*")}

    def partial_size(self, name: str) -> int:
        sizes = self.blobs(name).items()
        return sum(n for blob, n in sizes if blob.endswith(".incomplete"))

    def python(self, code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", "import huggingface_hub as hub\n" + code],
            env={**self.environment, "HF_HUB_DISABLE_XET": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def machine(tmp_path, hub):
    return Machine(tmp_path / "home", hub)


def test_a_folder_is_downloaded_once_and_then_needs_no_network(hub, machine):
    repository = hub.add("org/tiny", tiny_files())
    first = machine.generate("org/tiny")
    assert first.out.strip()
    snapshot = machine.repository("org/tiny") / "snapshots" / repository.commit
    assert sorted(path.name for path in snapshot.iterdir()) == WANTED
    assert "org/tiny: downloading" in first.err
    assert len(hub.asked("/resolve/")) == len(WANTED)

    asked = len(hub.seen)
    second = machine.generate("org/tiny")
    assert len(hub.seen) == asked
    hub.stop()
    third = machine.generate("org/tiny")
    assert first.out == second.out == third.out
    assert "downloading" not in second.err + third.err


def test_the_real_gguf_answers_as_its_local_file_does(hub, machine):
    hub.add("org/smol", {"README.md": b"x", MODEL.name: MODEL.read_bytes()})
    downloaded = machine.generate("org/smol")
    hub.stop()
    again = machine.generate("org/smol:Q4_1")
    local = machine.generate(MODEL)
    assert downloaded.out == again.out == local.out
    assert local.out.strip()


def test_a_server_goes_by_the_hubs_name(hub, machine, monkeypatch):
    hub.add("org/tiny", tiny_files())
    for name in ("HF_HOME", "HF_ENDPOINT"):
        monkeypatch.setenv(name, machine.environment[name])
    with Server(model="org/tiny") as server:
        models = server.get("/v1/models")
    assert [model["id"] for model in models["data"]] == ["org/tiny"]


def test_huggingface_hub_finds_what_was_downloaded(hub, machine):
    hub.add("org/tiny", tiny_files())
    path = machine.pull("org/tiny").out.strip()
    hub.stop()
    snapshot = machine.python(
        "patterns = ['*.json', 'model*.safetensors']\n"
        "print(hub.snapshot_download('org/tiny', local_files_only=True,"
        " allow_patterns=patterns))"
    )
    assert snapshot == path
    found = machine.python(
        f"for file in {WANTED}:\n"
        "    print(hub.try_to_load_from_cache('org/tiny', file))"
    )
    assert found.split() == [f"{path}/{file}" for file in WANTED]
    # The listing is there, too: it knows what was left out.
    missing = machine.python(
        "try: hub.snapshot_download('org/tiny', local_files_only=True)\n"
        "except hub.errors.IncompleteSnapshotError as error: print(error)"
    )
    assert "README.md" in missing


def test_what_huggingface_hub_downloaded_is_found(hub, machine):
    hub.add("org/tiny", tiny_files())
    path = machine.python("print(hub.snapshot_download('org/tiny'))")
    asked = len(hub.seen)
    hub.stop()
    assert machine.generate("org/tiny").out.strip()
    assert len(hub.seen) == asked
    (model,) = machine.installed()
    assert model["path"] == path
    assert model["revision"] == "main"


def test_what_huggingface_hub_left_unfinished_is_completed(hub, machine):
    hub.add("org/tiny", tiny_files())
    path = machine.python(
        "print(hub.snapshot_download('org/tiny',"
        " ignore_patterns=['tokenizer.json']))"
    )
    assert machine.installed()[0]["complete"] is False
    before = len(hub.asked("/resolve/"))
    assert machine.pull("org/tiny").out.strip() == path
    assert [seen.path.split("/")[-1] for seen in hub.asked("/resolve/")][
        before:
    ] == ["tokenizer.json"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_download_goes_on_where_it_ended(hub, machine, number):
    data = big(1)
    hub.add("org/m", {"m-Q8_0.gguf": data})
    hub.speed = 1_000_000
    process = machine.start("models", "pull", "org/m")
    wait_for(lambda: machine.partial_size("org/m") > 200_000, "partial file")
    process.send_signal(number)
    _, err = process.communicate(timeout=10)
    if number == signal.SIGINT:
        assert process.returncode == 130, err
        assert "goes on where it ended" in err
    (model,) = machine.installed()
    assert model["name"] == "org/m" and not model["complete"]
    there = machine.partial_size("org/m")
    assert 200_000 < there < BIG

    hub.speed = 0
    second = machine.pull("org/m")
    (first_get, second_get) = hub.asked("/lfs/")
    assert first_get.range is None
    assert second_get.range == f"bytes={there}-"
    assert Path(second.out.strip()).read_bytes() == data
    assert list(machine.blobs("org/m").values()) == [BIG]


def test_signals_end_commands_that_wait_for_a_download(hub, machine):
    hub.add("org/m", {"m-Q8_0.gguf": big(1)})
    hub.speed = 200_000
    commands = {"generate": 130, "chat": 130, "serve": 0}
    for command, status in commands.items():
        flags = ("--port", "0") if command == "serve" else ()
        process = machine.start(command, "--model", "org/m", *flags)
        before = machine.partial_size("org/m")
        wait_for(
            lambda before=before: machine.partial_size("org/m") > before,
            "growing file",
        )
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        assert process.returncode == status, err


def test_a_broken_connection_is_taken_up_again(hub, machine):
    data = big(2)
    hub.add("org/m", {"m-Q8_0.gguf": data})
    hub.cut_after, hub.cuts = 1_000_000, 2
    done = machine.pull("org/m")
    assert Path(done.out.strip()).read_bytes() == data
    ranges = [seen.range for seen in hub.asked("/lfs/")]
    assert ranges == [None, "bytes=1000000-", "bytes=2000000-"]


def test_a_body_that_always_ends_early_is_refused(hub, machine):
    hub.add("org/m", {"m-Q8_0.gguf": big(3)})
    hub.ranges = False
    hub.cut_after, hub.cuts = 1_000_000, 1000
    failed = machine.pull("org/m", status=1)
    assert "broke off after 1000000 of 3000000 bytes" in failed.err
    assert machine.partial_size("org/m") == 1_000_000
    assert not list(machine.repository("org/m").glob("snapshots/*/*"))


def test_a_server_without_ranges_begins_anew(hub, machine):
    data = big(4)
    hub.add("org/m", {"m-Q8_0.gguf": data})
    hub.ranges = False
    hub.cut_after, hub.cuts = 1_000_000, 1
    done = machine.pull("org/m")
    assert Path(done.out.strip()).read_bytes() == data


@pytest.mark.parametrize("path", ["model.safetensors", "config.json"])
def test_other_bytes_than_the_sum_says_are_refused(hub, machine, path):
    repository = hub.add("org/tiny", tiny_files())
    hub.wrong.add(path)
    failed = machine.pull("org/tiny", status=1)
    assert path in failed.err and "sum" in failed.err
    etag = repository.files[path].etag
    assert not [name for name in machine.blobs("org/tiny") if etag in name]
    assert machine.installed() == [] or not machine.installed()[0]["complete"]

    hub.wrong.clear()
    machine.pull("org/tiny")
    assert machine.installed()[0]["complete"]


def test_a_damaged_partial_file_costs_a_second_download(hub, machine):
    data = big(5)
    repository = hub.add("org/m", {"m-Q8_0.gguf": data})
    etag = repository.files["m-Q8_0.gguf"].etag
    blobs = machine.repository("org/m") / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{etag}.incomplete").write_bytes(b"?" * 1000)
    done = machine.pull("org/m")
    assert Path(done.out.strip()).read_bytes() == data
    ranges = [seen.range for seen in hub.asked("/lfs/")]
    assert ranges == ["bytes=1000-", None]


def test_the_token_is_sent_to_the_hub_and_to_nobody_else(hub, machine):
    hub.add("org/m", {"m-Q8_0.gguf": big(6, 1000)}, token="hf_right")
    failed = machine.pull("org/m", status=1)
    assert "set HF_TOKEN" in failed.err

    machine.environment["HF_TOKEN"] = "hf_wrong"
    failed = machine.pull("org/m", status=1)
    assert "does not accept the token in HF_TOKEN" in failed.err
    assert "hf_wrong" not in failed.err

    del machine.environment["HF_TOKEN"]
    (machine.home / "token").write_text("hf_right\n")
    machine.pull("org/m")
    assert hub.asked("/resolve/")[-1].token == "hf_right"
    assert [seen.token for seen in hub.asked("/lfs/")] == [None]


def test_a_gated_model_says_how_to_get_access(hub, machine):
    files = {"m-Q8_0.gguf": big(6, 1000)}
    hub.add("org/m", files, token="hf_right", gated=True)
    failed = machine.pull("org/m", status=1)
    assert f"accept its conditions at {hub.url}/org/m" in failed.err
    machine.environment["HF_TOKEN"] = "hf_other"
    failed = machine.pull("org/m", status=1)
    assert "has no access" in failed.err
    machine.environment["HF_TOKEN"] = "hf_right"
    machine.pull("org/m")


def test_a_model_that_does_not_exist_is_named(hub, machine):
    hub.add("org/m", {})
    failed = machine.generate("org/none", status=1)
    assert "knows no public model org/none" in failed.err
    failed = machine.generate("org/m", status=1)
    assert "org/m has neither model*.safetensors nor a .gguf" in failed.err
    for name in ("org/bad name", "org/m:", "none", "a/b/c"):
        failed = machine.generate(name, status=1)
        assert f"'{name}'" in failed.err
    asked = [seen.path for seen in hub.seen]
    assert all("/none/" in p or "/m/" in p for p in asked), asked


def test_of_several_ggufs_one_must_be_named(hub, machine):
    files = {f"m-{kind}.gguf": big(7, 1000) for kind in ("Q4_0", "Q8_0")}
    hub.add("org/m", files)
    for name in ("org/m", "org/m:Q5_0"):
        failed = machine.pull(name, status=1)
        assert "org/m:m-Q4_0.gguf\n  org/m:m-Q8_0.gguf" in failed.err
    path = machine.pull("org/m:q8_0").out.strip()
    assert path.endswith("/m-Q8_0.gguf")
    assert len(hub.asked("/resolve/")) == 1
    assert [m["name"] for m in machine.installed()] == ["org/m:m-Q8_0.gguf"]


def test_a_hub_that_tells_no_sums_is_asked_for_each_file(hub, machine):
    hub.add("org/tiny", tiny_files())
    hub.sums = False
    machine.pull("org/tiny")
    assert len(hub.asked("/resolve/", "HEAD")) == len(WANTED)
    assert machine.generate("org/tiny").out.strip()


def test_pull_takes_what_is_new_and_a_run_does_not_ask(hub, machine):
    old = hub.add("org/tiny", tiny_files())
    first = machine.pull("org/tiny").out
    assert old.commit in first
    new = hub.add("org/tiny", tiny_files() | {"tokenizer_config.json": b"{ }"})
    asked = len(hub.seen)
    machine.generate("org/tiny")
    assert len(hub.seen) == asked

    before = len(hub.asked("/resolve/"))
    second = machine.pull("org/tiny")
    assert new.commit in second.out
    assert len(hub.asked("/resolve/")) == before + 1
    revisions = {m["revision"] for m in machine.installed()}
    assert revisions == {"main", old.commit}
    third = machine.pull("org/tiny")
    assert third.out == second.out and third.err == ""


def test_two_at_once_download_a_file_once(hub, machine):
    hub.add("org/m", {"m-Q8_0.gguf": big(8)})
    hub.speed = 3_000_000
    both = [machine.start("models", "pull", "org/m") for _ in range(2)]
    outs = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], outs
    assert outs[0][0] == outs[1][0]
    assert len(hub.asked("/lfs/")) == 1


def test_the_environment_says_where_and_whether(hub, machine, tmp_path):
    hub.add("org/m", {"m-Q8_0.gguf": big(9, 1000)})
    machine.environment["HF_HUB_OFFLINE"] = "1"
    failed = machine.generate("org/m", status=1)
    assert "HF_HUB_OFFLINE" in failed.err and not hub.seen
    del machine.environment["HF_HUB_OFFLINE"]
    machine.environment["HF_HUB_CACHE"] = str(tmp_path / "elsewhere")
    path = machine.pull("org/m").out.strip()
    assert path.startswith(str(tmp_path / "elsewhere/models--org--m"))
    machine.environment["HF_HUB_OFFLINE"] = "1"
    assert machine.pull("org/m").out.strip() == path


def test_a_path_that_exists_comes_before_the_hub(hub, machine, tmp_path):
    hub.add("org/tiny", tiny_files())
    folder = tmp_path / "org/tiny"
    folder.mkdir(parents=True)
    process = machine.start(
        "generate", "--model", "org/tiny", "--prompt", "x", cwd=tmp_path
    )
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "config.json" in err
    assert not hub.seen


def test_models_prints_a_table(hub, machine):
    assert str(machine.cache) in machine.run("models").out
    hub.add("org/tiny", tiny_files())
    machine.pull("org/tiny")
    title, *rows, last = machine.run("models").out.splitlines()
    assert title.split() == ["NAME", "FORMAT", "SIZE", "REVISION"]
    (row,) = [row.split() for row in rows if row.startswith("org/tiny ")]
    assert row == ["org/tiny", "safetensors", "49.3", "KB", "main"]
    assert str(machine.cache) in last


def test_models_beside_the_program_are_listed(machine, tmp_path):
    program = tmp_path / "bin/afterglow"
    program.parent.mkdir()
    shutil.copy(PROGRAM, program)
    model = tmp_path / "bin/models/some.gguf"
    model.parent.mkdir()
    model.write_bytes(b"x" * 2000)
    out = subprocess.check_output(
        [str(program), "models"], env=machine.environment, text=True
    )
    (row,) = [row.split() for row in out.splitlines() if "gguf" in row]
    assert row == [str(model), "gguf", "2.0", "KB"]


def test_the_environment_can_name_a_model_of_the_hub(hub, machine):
    hub.add("org/tiny", tiny_files())
    machine.environment["AFTERGLOW_MODEL"] = "org/tiny"
    machine.run("generate", "--prompt", "Who?", "--max-tokens", "4")
    assert machine.installed()[0]["name"] == "org/tiny"


def test_a_prompts_file_downloads_nothing(hub, machine, tmp_path):
    hub.add("org/tiny", tiny_files())
    file = tmp_path / "a.safetensors"
    machine.run(
        "cache-prompt", "--model", "org/tiny", "--prompt", "Who",
        "--chat-template", "{{ messages[0].content }}",
        "--prompt-cache-file", file,
    )  # fmt: skip
    words = ["generate", "--prompt-cache-file", file, "--prompt", "?"]
    words += ["--max-tokens", "4"]
    asked = len(hub.seen)
    here = machine.run(*words)
    shutil.rmtree(machine.cache)
    failed = machine.run(*words, status=1)
    assert "org/tiny" in failed.err and "--model" in failed.err
    assert len(hub.seen) == asked
    again = machine.run(*words, "--model", "org/tiny")
    assert again.out == here.out


def test_a_file_with_a_name_that_steers_a_terminal_is_refused(hub, machine):
    hub.add("org/m", {"a\x1b[2J-Q8_0.gguf": big(6, 1000)})
    failed = machine.pull("org/m", status=1)
    assert "\x1b" not in failed.err and "wrong file" in failed.err


def test_a_terminal_shows_a_line_that_goes_away(hub, machine):
    hub.add("org/m", {"m-Q8_0.gguf": big(10)})
    hub.speed = 2_000_000
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [str(PROGRAM), "models", "pull", "org/m"],
        stdout=subprocess.DEVNULL,
        stderr=slave,
        env=machine.environment,
    )
    os.close(slave)
    shown = b""
    try:
        while block := read_soon(master, 4096):
            shown += block
    except TimeoutError:
        process.kill()
        raise
    except OSError:
        pass  # how a terminal's end is told
    os.close(master)
    assert process.wait(timeout=60) == 0
    text = shown.decode()
    assert "\rorg/m  " in text and "% of 3.0 MB" in text, text
    assert text.rstrip().endswith("\r\x1b[Korg/m: 3.0 MB are here"), text
