"""Files that go while a server holds their pages in memory."""

from pathlib import Path

from cache_tool import block_files, entries, tool
from serving import Server, wait_for
from texts import sentences

PROMPT = sentences(40, seed=71)  # about 650 tokens
OTHER = sentences(30, seed=72)
TOKENS = 6
FLAGS = ("--threads", "2")


def ask(server: Server, prompt: str = PROMPT):
    return server.complete(prompt, max_tokens=TOKENS)


def disk(server: Server) -> dict:
    return server.get("/v1/cache")["disk"]


def cached_after_kill(server: Server, cache: Path, prompt: str = PROMPT):
    """Kills the server; what another then finds of the prompt."""
    server.kill()
    with Server(*FLAGS, cache=cache) as later:
        return ask(later, prompt).cached_tokens


def test_a_prompt_asked_again_after_a_clear_outlives_a_kill(cache_dir):
    with Server(*FLAGS, cache=cache_dir) as server:
        first = ask(server)
        ask(server, OTHER)
        server.flush()
        assert tool("clear", "--yes", "--json", cache=cache_dir).json["blocks"]
        assert block_files(cache_dir) == {}
        again = ask(server)
        assert again.text == first.text
        assert again.cached_tokens == again.timings["cache_ram_n"]
        assert again.cached_tokens == first.prompt_tokens - 1
        flushed = server.flush()
        assert flushed["complete"] and flushed["durable_blocks"] > 0
        assert flushed["failed_blocks"] == 0
        # Those of the prompt that was used, and of no other.
        count = (first.prompt_tokens + TOKENS - 1 + 255) // 256
        assert len(block_files(cache_dir)) == count
        assert not tool("verify", "--json", cache=cache_dir).json["damaged"]
        assert cached_after_kill(server, cache_dir) == again.cached_tokens
    with Server(*FLAGS, cache=cache_dir) as server:
        assert ask(server, OTHER).cached_tokens < 32


def test_what_is_not_used_after_a_clear_is_not_written_again(cache_dir):
    with Server(*FLAGS, cache=cache_dir) as server:
        ask(server)
        server.flush()
        assert disk(server)["blocks"] == len(block_files(cache_dir)) > 0
        tool("clear", "--yes", cache=cache_dir)
        # The list tells so without anybody asking anything.
        wait_for(lambda: disk(server)["blocks"] == 0, "notice", 5)
        listed = server.get("/v1/cache")["entries"]
        assert listed and all(entry["disk_blocks"] == 0 for entry in listed)
        assert all(entry["ram_blocks"] > 0 for entry in listed)
        assert server.flush()["complete"]
        assert block_files(cache_dir) == {}
        assert server.terminate() == 0
    assert block_files(cache_dir) == {}


def test_a_pin_brings_back_what_another_server_removed(cache_dir):
    with (
        Server(*FLAGS, cache=cache_dir) as holder,
        Server(*FLAGS, cache=cache_dir) as other,
    ):
        first = ask(holder)
        holder.flush()
        listed = holder.get("/v1/cache")["entries"]
        longest = max(listed, key=lambda entry: entry["tokens"])
        status, removed = other.request("DELETE", "/v1/cache")
        assert status == 200 and removed["blocks"] == longest["blocks"]
        status, pinned = holder.request(
            "POST", f"/v1/cache/pin?id={longest['id']}"
        )
        assert status == 200 and pinned["pinned"], pinned
        assert len(block_files(cache_dir)) == longest["blocks"]
        [kept] = entries(cache_dir)
        assert kept["id"] == longest["id"] and kept["pinned"]
        other.kill()
        cached = cached_after_kill(holder, cache_dir)
        assert cached == first.prompt_tokens - 1


def test_a_removal_on_the_server_itself_stays(cache_dir):
    with Server(*FLAGS, cache=cache_dir) as server:
        ask(server)
        server.flush()
        tool("clear", "--yes", cache=cache_dir)
        ask(server)  # brings it back
        status, _ = server.request("DELETE", "/v1/cache")
        assert status == 200
        assert server.flush()["complete"]
        assert block_files(cache_dir) == {}
        assert server.terminate() == 0
    assert block_files(cache_dir) == {}
    with Server(*FLAGS, cache=cache_dir) as server:
        assert ask(server).cached_tokens == 0
