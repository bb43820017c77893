"""`afterglow cache`: what it tells is true, what it does holds, while servers
run and after."""

import json
import os
import pty
import re
import shutil
import subprocess

import pytest
from blocks import blocks, flip_byte
from cache_tool import block_files, entries, stored_bytes, tool
from serving import PROGRAM, Server, wait_for
from texts import sentences

BLOCK = 30 * 3 * 64 * 2 * 2 * 256  # bytes of KV in a page of the model
SYSTEM = sentences(30, seed=21)  # about 490 tokens
ONE = ("--threads", "1")


def prompt(number: int) -> str:
    return sentences(35, seed=300 + number)  # about 570 tokens: two blocks


@pytest.fixture(scope="module")
def filled_once(tmp_path_factory):
    """A directory that a server filled with three prompts and left."""
    path = tmp_path_factory.mktemp("filled") / "cache"
    path.mkdir(mode=0o700)
    with Server(*ONE, cache=path) as server:
        server.chat("Who paints?", system=SYSTEM, max_tokens=8)
        server.chat("Who sells?", system=SYSTEM, max_tokens=8)
        server.complete(prompt(0), max_tokens=8)
        assert server.terminate() == 0
    return path


@pytest.fixture
def filled(filled_once, tmp_path):
    path = tmp_path / "cache"
    shutil.copytree(filled_once, path)
    return path


def test_list_tells_what_the_server_knows_and_the_files_take(cache_dir):
    with Server(*ONE, cache=cache_dir) as server:
        server.chat("Who paints?", system=SYSTEM, max_tokens=8)
        server.complete(prompt(0), max_tokens=8)
        server.flush()
        listed = server.get("/v1/cache")["entries"]
        known = {entry["id"]: entry for entry in listed}
        told = tool("list", "--json", cache=cache_dir).json
        files = block_files(cache_dir)
    assert told["blocks"] == len(files)
    assert told["bytes"] == sum(files.values())
    assert {entry["id"] for entry in told["entries"]} == set(known)
    for entry in told["entries"]:
        theirs = known[entry["id"]]
        for field in ("type", "tokens", "blocks", "hits", "pinned"):
            assert entry[field] == theirs[field], field
        assert entry["in_manifest"]
        assert 0 <= entry["own_bytes"] <= entry["bytes"] <= told["bytes"]
    # The chat's beginning is an entry, too, with no block of its own.
    own = {entry["own_bytes"] > 0 for entry in told["entries"]}
    assert own == {True, False}
    (model,) = told["models"]
    assert "SmolLM2" in model["name"]
    assert model["bytes"] == told["bytes"]


def test_the_table_fits_a_terminal_and_has_a_line_for_each_entry(filled):
    text = tool("list", cache=filled).out
    found = entries(filled)
    assert all(len(line) <= 80 for line in text.splitlines()), text
    for entry in found:
        line = next(
            line for line in text.splitlines() if entry["short_id"] in line
        )
        assert re.search(rf"\b{entry['type']}\b", line)
        assert re.search(rf"\b{entry['tokens']}\b", line)
    count = len(block_files(filled))
    assert f"{len(found)} entries, {count} blocks, " in text


def test_an_empty_cache_says_so(cache_dir):
    with Server(*ONE, cache=cache_dir) as server:
        server.terminate()
    assert "is empty" in tool("list", cache=cache_dir).out
    assert tool("list", "--json", cache=cache_dir).json["entries"] == []
    assert "No damage" in tool("verify", cache=cache_dir).out
    tool("clear", "--yes", cache=cache_dir)


def test_show_walks_the_path_and_names_who_shares_it(filled):
    chats = [entry for entry in entries(filled) if entry["type"] == "assistant"]
    chat = next(
        entry for entry in chats if entry["own_bytes"] < entry["bytes"]
    )
    shown = tool("show", chat["id"], "--json", cache=filled).json
    assert shown["id"] == chat["id"]
    path = shown["path"]
    assert [block["start"] for block in path] == [
        256 * index for index in range(len(path))
    ]
    assert path[-1]["id"] == chat["id"].split(":")[0]
    assert sum(block["bytes"] for block in path) == chat["bytes"]
    files = block_files(filled)
    assert all(files[block["id"]] == block["bytes"] for block in path)
    assert path[0]["users"] >= 2
    assert any(other["tokens"] >= 256 for other in shown["shares"])
    assert len(shown["first_tokens"]) == len(shown["last_tokens"]) == 8
    # The short form and a beginning of it name the same.
    text = tool("show", chat["short_id"], cache=filled).out
    assert chat["id"] in text
    assert " ".join(map(str, shown["first_tokens"])) in text
    assert all(len(line) <= 80 for line in text.splitlines()[9:])


def test_verify_reads_all_and_finds_nothing_wrong(filled):
    report = tool("verify", "--json", cache=filled).json
    files = block_files(filled)
    assert not report["damaged"]
    assert report["blocks"] == len(files)
    assert report["bytes"] == sum(files.values())
    assert report["lock_bytes"] == report["bytes"]
    assert "No damage." in tool("verify", cache=filled).out


def path_of(entry: dict, cache) -> list[dict]:
    return tool("show", entry["id"], "--json", cache=cache).json["path"]


def test_verify_names_a_damaged_block_and_repair_mends(filled, filled_once):
    question = dict(system=SYSTEM, max_tokens=8)
    # The first block of both chats.
    name = next(
        block["id"]
        for entry in entries(filled)
        for block in path_of(entry, filled)
        if block["users"] > 2
    )
    paths = [block.path for block in blocks(filled)]
    (victim,) = (path for path in paths if path.stem == name)
    flip_byte(victim, victim.stat().st_size - 100)

    text = tool("verify", cache=filled, status=1).out
    assert f"damaged: {name}" in text
    assert "layers.29.v: bytes have another sum" in text
    report = tool("verify", "--json", cache=filled, status=1).json
    assert [bad["id"] for bad in report["corrupt"]] == [name]
    paths = {
        entry["id"]: [block["id"] for block in path_of(entry, filled_once)]
        for entry in entries(filled_once)
    }
    touched = {id: path for id, path in paths.items() if name in path}
    assert len(touched) > 2
    assert {lost["entry"] for lost in report["lost"]} == set(touched)
    assert {lost["kept_tokens"] for lost in report["lost"]} == {0}
    after = {block for path in touched.values() for block in path} - {name}
    assert {block["id"] for block in report["orphans"]} == after
    assert victim.exists()

    report = tool("verify", "--repair", "--json", cache=filled, status=1).json
    assert report["removed_blocks"] == 1
    assert not victim.exists()
    assert not tool("verify", "--json", cache=filled).json["damaged"]
    with Server(*ONE, cache=filled) as server:
        mended = server.chat("Who paints?", **question)
        server.flush()
    with Server(*ONE) as server:
        assert mended.text == server.chat("Who paints?", **question).text
    report = tool("verify", "--json", cache=filled).json
    assert not report["damaged"] and not report["orphans"]


def test_prune_to_a_budget_keeps_what_is_pinned(filled):
    before = block_files(filled)
    oldest = entries(filled)[-1]
    text = tool("pin", oldest["short_id"], cache=filled).out
    assert text.startswith("Pinned " + oldest["short_id"])
    assert "Already pinned" in tool("pin", oldest["id"], cache=filled).out
    budget = oldest["bytes"]

    dry = tool(
        "prune", "--to", budget, "--dry-run", "--json", cache=filled
    ).json
    assert block_files(filled) == before
    done = tool("prune", "--to", budget, "--json", cache=filled).json
    assert {**done, "dry_run": True} == dry
    after = block_files(filled)
    assert sum(after.values()) == done["left_bytes"] <= budget
    assert done["bytes"] == sum(before.values()) - sum(after.values())
    assert done["blocks"] == len(before) - len(after)
    kept = {entry["id"]: entry for entry in entries(filled)}
    assert kept[oldest["id"]]["pinned"]
    assert sum(entry["own_bytes"] > 0 for entry in kept.values()) == 1
    assert not tool("verify", "--json", cache=filled).json["damaged"]

    # It cannot be pruned away, and that is said.
    refused = tool("prune", "--to", "0", cache=filled, status=1)
    assert "pinned" in refused.err
    tool("unpin", oldest["id"], cache=filled)
    tool("prune", "--to", "0", cache=filled)
    assert block_files(filled) == {}


def test_prune_by_age_and_by_model(filled):
    nothing = tool("prune", "--unused-for", "1d", cache=filled).out
    assert nothing.startswith("Removed 0 entries, 0 blocks, 0 B; ")
    (model,) = tool("list", "--json", cache=filled).json["models"]
    unknown = tool("prune", "--model", "other", cache=filled, status=1)
    assert model["name"] in unknown.err
    done = tool("prune", "--model", model["name"], "--json", cache=filled).json
    assert done["left_bytes"] == 0
    assert block_files(filled) == {}


def test_a_pinned_entry_survives_a_running_servers_eviction(cache_dir):
    budget = 6 * (BLOCK + 8192)
    flags = (*ONE, "--prompt-cache-disk-bytes", budget)
    with Server(*flags, cache=cache_dir) as server:
        first = server.complete(prompt(0), max_tokens=4)
        server.flush()
        (entry,) = entries(cache_dir)
        tool("pin", entry["id"], cache=cache_dir)

        def pinned():
            known = server.get("/v1/cache")["entries"]
            return [item["id"] for item in known if item["pinned"]]

        wait_for(lambda: pinned() == [entry["id"]], "pin taken over", 5)
        for number in range(1, 5):
            server.complete(prompt(number), max_tokens=4)
            server.flush()
            assert stored_bytes(cache_dir) <= budget
        kept = [item for item in entries(cache_dir) if item["pinned"]]
        assert [item["id"] for item in kept] == [entry["id"]]
        assert kept[0]["bytes"] == entry["bytes"]
        # Unpinned, it goes the way of all.
        tool("unpin", entry["id"], cache=cache_dir)
        wait_for(lambda: pinned() == [], "unpin taken over", 5)
        for number in range(5, 9):
            server.complete(prompt(number), max_tokens=4)
            server.flush()
        assert entry["id"] not in {item["id"] for item in entries(cache_dir)}
        assert server.terminate() == 0
    with Server(*flags, cache=cache_dir) as server:
        assert server.complete(prompt(0), max_tokens=4).text == first.text


def test_after_clear_a_running_server_works_on(cache_dir):
    with Server(*ONE, cache=cache_dir) as server:
        first = server.complete(prompt(0), max_tokens=8)
        server.flush()
        text = tool("clear", "--yes", cache=cache_dir).out
        assert text.splitlines()[-1].startswith("Removed 1 entry, ")
        assert text.endswith(" MB; 0 B left\n")
        assert block_files(cache_dir) == {}
        again = server.complete(prompt(0), max_tokens=8)
        other = server.complete(prompt(1), max_tokens=8)
        assert server.flush()
        assert len(block_files(cache_dir)) >= 3
        assert not tool("verify", "--json", cache=cache_dir).json["damaged"]
        assert server.terminate() == 0
    assert again.text == first.text
    with Server(*ONE, cache=cache_dir) as server:
        warm = server.complete(prompt(1), max_tokens=8)
    assert warm.text == other.text
    assert warm.cached_tokens == warm.prompt_tokens - 1


def ask_on_a_terminal(answer: str, cache) -> subprocess.CompletedProcess:
    ours, theirs = pty.openpty()
    command = [PROGRAM, "cache", "clear", "--prompt-cache-dir", cache]
    try:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=theirs,
            stdout=subprocess.PIPE,
            text=True,
        )
        os.write(ours, answer.encode())
        out, _ = process.communicate(timeout=30)
    finally:
        os.close(ours)
        os.close(theirs)
    return subprocess.CompletedProcess(command, process.returncode, out)


def test_clear_asks_on_a_terminal(filled):
    before = block_files(filled)
    for answer in ("n\n", "\n"):
        refused = ask_on_a_terminal(answer, filled)
        assert "Remove all of it? [y/N]" in refused.stdout
        assert "Nothing was removed." in refused.stdout
        assert refused.returncode == 1
    assert block_files(filled) == before
    assert ask_on_a_terminal("y\n", filled).returncode == 0
    assert block_files(filled) == {}


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["list"], "--prompt-cache-dir is required"),
        (["sweep"], "there is no command 'sweep'; the commands are: list"),
        (["prune"], "--to, --unused-for and --model"),
        (["prune", "--to", "many"], "many"),
        (["prune", "--unused-for", "soon"], "15m"),
        (["clear"], "--yes"),
        (["show"], "id is required"),
        (["list", "--frob"], "--frob"),
        ([], "subcommand"),
    ],
)
def test_a_wrong_command_line_is_status_2(arguments, says, tmp_path):
    cache = tmp_path if arguments and arguments != ["list"] else None
    wrong = tool(*arguments, cache=cache, status=2)
    assert says in wrong.err
    assert wrong.out == ""


def test_what_is_no_cache_is_status_1_and_says_what_to_type(tmp_path, filled):
    missing = tmp_path / "missing"
    wrong = tool("list", cache=missing, status=1)
    assert str(missing) in wrong.err and "no such directory" in wrong.err
    assert not missing.exists()
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    (stranger / "letter.txt").write_text("x")
    wrong = tool("clear", "--yes", cache=stranger, status=1)
    assert "is no prompt-cache directory" in wrong.err
    assert (stranger / "letter.txt").exists()
    wrong = tool("list", cache=stranger / "letter.txt", status=1)
    assert "not a directory" in wrong.err
    filled.chmod(0o777)
    wrong = tool("list", cache=filled, status=1)
    assert f"chmod 700 '{filled}'" in wrong.err
    filled.chmod(0o700)
    wrong = tool("show", "123456", cache=filled, status=1)
    assert "afterglow cache list" in wrong.err
    wrong = tool("show", "no id", cache=filled, status=1)
    assert "no id" in wrong.err


def test_the_directory_may_come_from_the_environment(filled):
    done = subprocess.run(
        [str(PROGRAM), "cache", "list", "--json"],
        env={**os.environ, "AFTERGLOW_PROMPT_CACHE_DIR": str(filled)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["directory"] == str(filled)


def test_a_damaged_index_costs_types_and_no_block(filled):
    before = entries(filled)
    (filled / "v1/manifest.json").write_text("{")
    wrong = tool("verify", cache=filled, status=1)
    assert "index:" in wrong.out
    tool("verify", "--repair", cache=filled, status=1)
    tool("verify", cache=filled)
    # Entries that blocks alone cannot tell are gone, prompts' ends are not.
    longest = max(before, key=lambda entry: entry["tokens"])
    assert longest["tokens"] in {
        entry["tokens"] for entry in entries(filled)
    }
