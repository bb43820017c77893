"""The cache's endpoints on a directory."""

import pytest
from calls import call, complete, entries, good
from serving import Server, wait_for

PROMPT = "One swallow does not make a summer, they say. " * 90
OTHER = "An entirely different text about ships and harbours. " * 90


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    return path


def block_files(directory):
    return {path.name for path in directory.rglob("*.safetensors")}


def newest(server):
    return max(entries(server), key=lambda entry: entry["last_use"])


def test_an_entry_is_deleted_for_good(directory):
    with Server(cache=directory) as server:
        complete(server, OTHER)
        good(server, "POST", "/v1/cache/flush")
        others = block_files(directory)
        complete(server, PROMPT)
        good(server, "POST", "/v1/cache/flush")
        entry = newest(server)
        assert len(block_files(directory)) == len(others) + entry["blocks"]
        good(server, "POST", "/v1/cache/pin", {"id": entry["id"]})
        gone = good(server, "DELETE", "/v1/cache", {"id": entry["id"][:20]})
        assert gone["entries"] == 1
        assert gone["blocks"] == entry["blocks"]
        wait_for(lambda: block_files(directory) == others, "unlinked files")
        assert complete(server, PROMPT, cache={"store": False})["timings"][
            "cache_n"
        ] == 0
        server.kill()
    with Server(cache=directory) as server:
        assert entry["id"] not in {e["id"] for e in entries(server)}
        assert complete(server, PROMPT)["timings"]["cache_n"] == 0
        assert complete(server, OTHER)["timings"]["cache_disk_n"] > 0


def test_an_entry_whose_blocks_others_keep_is_deleted_for_good(directory):
    with Server(cache=directory) as server:
        server.chat("What is two and two?", system=PROMPT)
        system = [e for e in entries(server) if e["type"] == "system"]
        assert len(system) == 1
        good(server, "POST", "/v1/cache/pin", {"id": system[0]["id"]})
        good(server, "POST", "/v1/cache/flush")
        gone = good(server, "DELETE", "/v1/cache", {"id": system[0]["id"]})
        assert gone["entries"] == 1
        assert gone["blocks"] == 0
        left = entries(server)
        server.kill()
    with Server(cache=directory) as server:
        wait_for(lambda: entries(server), "entries")
        assert [e["id"] for e in entries(server)] == [e["id"] for e in left]
        answer = server.chat("What is two and two?", system=PROMPT)
        assert answer.timings["prompt_n"] == 1


def test_all_entries_are_deleted(directory):
    with Server(cache=directory) as server:
        for prompt in (PROMPT, OTHER):
            complete(server, prompt)
        good(server, "POST", "/v1/cache/flush")
        good(server, "POST", f"/v1/cache/pin?id={newest(server)['id']}")
        files = block_files(directory)
        gone = good(server, "DELETE", "/v1/cache")
        assert gone["blocks"] == len(files) > 4
        assert gone["entries"] == 2
        assert block_files(directory) == set()
        assert entries(server) == []
        assert complete(server, PROMPT)["timings"]["cache_n"] == 0


def test_a_pin_survives_a_kill(directory):
    with Server(cache=directory) as server:
        complete(server, PROMPT)
        entry = newest(server)
        good(server, "POST", "/v1/cache/pin", {"id": entry["id"]})
        server.kill()
    with Server(cache=directory) as server:

        def pinned():
            return [e["id"] for e in entries(server) if e["pinned"]]

        assert wait_for(pinned, "pinned entry") == [entry["id"]]
        good(server, "POST", "/v1/cache/unpin", {"id": entry["id"]})
        assert pinned() == []


def test_what_is_not_to_be_stored_is_not(directory):
    with Server(cache=directory) as server:
        for _ in range(2):
            answer = complete(server, PROMPT, cache={"store": False})
            assert answer["timings"]["cache_n"] == 0
            assert answer["timings"]["cache_store"] is False
        assert good(server, "POST", "/v1/cache/flush")["durable_blocks"] == 0
        cache = good(server, "GET", "/v1/cache")
        assert cache["entries"] == []
        assert cache["ram"]["blocks"] == cache["disk"]["blocks"] == 0
        assert block_files(directory) == set()

        kept = complete(server, PROMPT)
        assert kept["timings"]["cache_store"] is True
        good(server, "POST", "/v1/cache/flush")
        files = block_files(directory)
        longer = complete(server, PROMPT + OTHER, cache={"store": False})
        assert longer["timings"]["cache_n"] > 700
        good(server, "POST", "/v1/cache/flush")
        assert block_files(directory) == files


def test_entries_expire(directory):
    with Server("--prompt-cache-ttl", "2.5", cache=directory) as server:
        complete(server, PROMPT)
        entry = newest(server)
        assert entry["ttl_seconds"] == 2.5
        good(server, "POST", "/v1/cache/flush")
        wait_for(lambda: not block_files(directory), "unlinked files")
        assert entries(server) == []
        assert complete(server, PROMPT)["timings"]["cache_n"] == 0
        evicted = good(server, "GET", "/v1/cache")["evicted_entries"]
        assert evicted["expired"] >= 1


def test_what_names_nothing_is_said_so(directory):
    with Server(cache=directory) as server:
        complete(server, PROMPT)
        before = entries(server)
        for path in ("/v1/cache/pin", "/v1/cache/unpin"):
            status, answer = call(server, "POST", path, {"id": "0" * 64})
            assert status == 404
            assert answer["error"]["param"] == "id"
            status, answer = call(server, "POST", path, {"id": "nonsense"})
            assert status == 400
        status, _ = call(server, "DELETE", "/v1/cache", {"id": "f" * 64})
        assert status == 404
        status, answer = call(server, "DELETE", "/v1/cache", {"ids": []})
        assert status == 400
        assert answer["error"]["param"] == "ids"
        assert [e["id"] for e in entries(server)] == [e["id"] for e in before]
