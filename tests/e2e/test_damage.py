"""Whatever lies in the cache directory, answers are those of a cold server."""

import shutil
from pathlib import Path

import pytest
from blocks import blocks, flip_byte, truncate
from serving import MODEL, Server
from texts import sentences

SYSTEM = sentences(60, seed=2)  # about 970 tokens: three full blocks and a tail
FIRST = "What is sold at noon?"
SECOND = "Who counts the apples?"


def fill(cache_dir, *flags) -> None:
    with Server(*flags, cache=cache_dir) as server:
        server.chat(FIRST, system=SYSTEM)
        assert server.terminate() == 0


@pytest.fixture(scope="module")
def filled_once(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "cache"
    path.mkdir(mode=0o700)
    fill(path)
    return path


@pytest.fixture
def filled(filled_once: Path, tmp_path: Path) -> Path:
    """A directory of the test's own, as `fill` leaves it."""
    return shutil.copytree(filled_once, tmp_path / "filled", symlinks=True)


def ask(cache_dir, *flags):
    with Server(*flags, cache=cache_dir) as server:
        answer = server.chat(SECOND, system=SYSTEM)
        server.flush()
        return answer


def test_blocks_are_valid_safetensors_with_the_page_at_a_page_boundary(
    filled,
):
    from safetensors import safe_open

    found = blocks(filled)
    assert [block.start for block in found] == [0, 256, 512, 768]
    assert [block.count for block in found[:3]] == [256] * 3
    for block in found:
        with safe_open(block.path, "np") as file:
            assert len(file.keys()) == 1 + 2 * 30
            tokens = file.get_tensor("tokens")
            assert tokens.shape == (256,)
            assert (tokens[block.count :] == 0).all()
            assert file.get_tensor("layers.0.k").shape[:2] == (3, 64)
        # The KV bytes follow the 1024 bytes of tokens.
        assert (block.data + 1024) % 4096 == 0
        assert block.path.stat().st_mode & 0o777 == 0o600


def test_blocks_of_another_mode_are_skipped_and_kept(cache_dir, cold_chat):
    fill(cache_dir, "--activations", "int16")
    before = {block.path: block.path.read_bytes() for block in blocks(cache_dir)}
    int8 = ask(cache_dir, "--activations", "int8")
    assert int8.cached_tokens == 0
    assert (
        int8.text
        == cold_chat(
            SECOND, system=SYSTEM, flags=("--activations", "int8")
        ).text
    )
    assert len(blocks(cache_dir)) > len(before)
    for path, content in before.items():
        assert path.read_bytes() == content
    int16 = ask(cache_dir, "--activations", "int16")
    assert int16.cached_tokens > 768
    assert int16.text == cold_chat(SECOND, system=SYSTEM).text


def test_blocks_of_another_model_are_skipped_and_kept(filled, tmp_path):
    """The same file name with one changed byte of weights."""
    other = tmp_path / "other" / MODEL.name
    other.parent.mkdir()
    other.write_bytes(MODEL.read_bytes())
    flip_byte(other, other.stat().st_size - 1_000_000)

    before = {block.path: block.path.read_bytes() for block in blocks(filled)}
    with Server(model=other) as server:
        cold = server.chat(SECOND, system=SYSTEM)
    with Server(model=other, cache=filled) as server:
        answer = server.chat(SECOND, system=SYSTEM)
        server.flush()
    assert answer.cached_tokens == 0
    assert answer.text == cold.text
    for path, content in before.items():
        assert path.read_bytes() == content
    assert ask(filled).cached_tokens > 768


@pytest.mark.parametrize("victim", [0, 1, 2])
@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(
            lambda block: flip_byte(block.path, block.data + 5000), id="kv"
        ),
        pytest.param(
            lambda block: flip_byte(block.path, block.data + 10), id="tokens"
        ),
        pytest.param(lambda block: flip_byte(block.path, 40), id="header"),
        pytest.param(
            lambda block: truncate(block.path, block.data + 100_000),
            id="truncated",
        ),
        pytest.param(lambda block: truncate(block.path, 0), id="empty"),
        pytest.param(lambda block: block.path.unlink(), id="deleted"),
    ],
)
def test_a_damaged_block_ends_the_usable_prefix(
    filled, cold_chat, harm, victim
):
    block = blocks(filled)[victim]
    assert block.start == 256 * victim
    harm(block)
    answer = ask(filled)
    assert answer.text == cold_chat(SECOND, system=SYSTEM).text
    assert answer.cached_tokens == 256 * victim
    # The block was computed and written again.
    assert ask(filled).cached_tokens == answer.prompt_tokens - 1


def test_a_damaged_manifest_costs_nothing(filled, cold_chat):
    (filled / "v1" / "manifest.json").write_text('{"version": 1, "entr')
    answer = ask(filled)
    assert answer.text == cold_chat(SECOND, system=SYSTEM).text
    assert answer.cached_tokens > 768


def test_strangers_in_the_directory_are_left_alone(filled, cold_chat):
    folder = blocks(filled)[0].path.parent
    other = filled / "v1" / ("ab" * 32 + "-" + "cd" * 32) / "blocks"
    other.mkdir(parents=True)
    strangers = [
        folder / ("0" * 64 + ".safetensors"),
        folder / "notes.txt",
        other / ("1" * 64 + ".safetensors"),
    ]
    for path in strangers[1:]:
        path.write_bytes(b"not a block")
    strangers[0].symlink_to("/etc/passwd")
    answer = ask(filled)
    assert answer.text == cold_chat(SECOND, system=SYSTEM).text
    assert answer.cached_tokens > 768
    assert strangers[1].exists() and strangers[2].exists()


def test_a_directory_others_may_write_is_refused(cache_dir):
    from serving import ServerError

    cache_dir.chmod(0o777)
    with pytest.raises(ServerError, match=str(cache_dir)):
        Server(cache=cache_dir)
