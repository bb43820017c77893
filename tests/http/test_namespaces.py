"""With --cache-namespaces clients share no cached prompt."""

import hashlib
import hmac
import struct

import pytest
from calls import call, complete, entries, good
from serving import Server

PROMPT = "The quick brown fox jumps over the lazy dog. " * 80  # 3 blocks


def length_prefixed(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("namespaces") / "cache"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture(scope="module")
def tenants(directory):
    """A server where two clients have sent the same prompt."""
    with Server("--cache-namespaces", cache=directory) as server:
        for key in ("sk-one", "sk-two"):
            first = complete(server, PROMPT, key)
            assert first["timings"]["cache_n"] == 0, key
            again = complete(server, PROMPT, key)
            assert again["timings"]["prompt_n"] == 1, key
            assert again["choices"] == first["choices"]
        yield server


def test_keys_and_cache_keys_each_set_clients_apart(tenants):
    for options in ({"key": "sk-three"}, {"prompt_cache_key": "team-x"}):
        both = {"key": "sk-one", **options}
        assert complete(tenants, PROMPT, **both)["timings"]["cache_n"] == 0
        assert complete(tenants, PROMPT, **both)["timings"]["cache_n"] > 0
    status, answer = call(
        tenants,
        "POST",
        "/v1/completions",
        {"prompt": PROMPT, "max_tokens": 1},
        headers={"X-Api-Key": "sk-one"},
    )
    assert status == 200
    assert answer["timings"]["prompt_n"] == 1


def test_each_lists_its_own(tenants):
    one = {entry["id"] for entry in entries(tenants, "sk-one")}
    two = {entry["id"] for entry in entries(tenants, "sk-two")}
    assert one and two
    assert not one & two
    assert entries(tenants, "sk-nobody") == []
    assert entries(tenants, "sk-two", "?prompt_cache_key=other") == []


def test_nobody_touches_anothers(tenants):
    mine = entries(tenants, "sk-one")
    for entry in mine:
        for method, path in (
            ("POST", "/v1/cache/pin"),
            ("POST", "/v1/cache/unpin"),
            ("DELETE", "/v1/cache"),
        ):
            for key in ("sk-two", None):
                status, answer = call(
                    tenants, method, path, {"id": entry["id"]}, key
                )
                assert status == 404, answer
    gone = good(tenants, "DELETE", "/v1/cache", key="sk-four")
    assert gone["entries"] == gone["blocks"] == 0
    assert entries(tenants, "sk-one") == mine
    pinned = good(
        tenants, "POST", "/v1/cache/pin", {"id": mine[-1]["id"]}, "sk-one"
    )
    assert pinned["pinned"] is True
    assert not any(e["pinned"] for e in entries(tenants, "sk-two"))


def test_the_directory_names_nobody(tenants, directory):
    good(tenants, "POST", "/v1/cache/flush")
    secret_file = directory / "v1" / "secret"
    assert secret_file.stat().st_mode & 0o777 == 0o600
    secret = secret_file.read_bytes()
    assert len(secret) == 32
    name = hmac.new(
        secret,
        length_prefixed("sk-one") + length_prefixed(""),
        hashlib.sha256,
    )
    blocks = 0
    for path in directory.rglob("*"):
        if not path.is_file() or path == secret_file:
            continue
        blocks += path.suffix == ".safetensors"
        for content in (path.read_bytes(), path.name.encode()):
            for text in (b"sk-", b"team-x", name.digest()):
                assert text not in content, path
            assert name.hexdigest().encode() not in content, path
    assert blocks > 3


def test_a_restart_mixes_nobody_up(tenants, directory):
    assert tenants.terminate() == 0
    with Server("--cache-namespaces", cache=directory) as server:
        restored = complete(server, PROMPT, "sk-two")["timings"]
        assert restored["prompt_n"] == 1
        assert restored["cache_disk_n"] > 0
        assert complete(server, PROMPT, "sk-new")["timings"]["cache_n"] == 0
        assert complete(server, PROMPT)["timings"]["cache_n"] == 0
        assert any(e["pinned"] for e in entries(server, "sk-one"))
        assert server.terminate() == 0
    # Nor does a server without namespaces find what lies in one.
    with Server(cache=directory) as server:
        assert complete(server, PROMPT)["timings"]["cache_n"] == 0
