"""A prompt that was ever read is not read again, however the server ended."""

import time

from serving import Server
from texts import handbook, sentences

FIRST = "Who repairs the broken lantern?"
SECOND = "Give me three rules for winter."
# What the template puts behind the last message, in tokens: <|im_end|> \n
# <|im_start|> ass istant \n.
AFTER_CONTENT = 6
# About 970 tokens: enough where no speed is told.
SHORTER = sentences(60, seed=2)


def shared_tokens(server: Server, text: str) -> int:
    """Tokens that any two questions over the text have in common."""
    empty = server.chat("", system=text, max_tokens=1)
    return empty.prompt_tokens - AFTER_CONTENT


def check_warm(cache_dir, cold_chat, how: str, text: str):
    """Asks again over what the directory holds; compares with cold."""
    cold = cold_chat(SECOND, system=text)
    with Server(cache=cache_dir) as server:
        warm = server.chat(SECOND, system=text)
        shared = shared_tokens(server, text)
    print(
        f"\n{how}: {warm.prompt_tokens} tokens, {warm.cached_tokens} cached; "
        f"first token {cold.first_ms:.0f} ms cold, {warm.first_ms:.1f} ms "
        f"warm ({cold.first_ms / warm.first_ms:.0f} times faster)"
    )
    assert shared > 900
    assert warm.text == cold.text
    assert warm.cached_tokens == shared
    assert warm.timings["cache_disk_n"] == shared
    assert warm.timings["cache_ram_n"] == 0
    assert warm.timings["prompt_n"] == warm.prompt_tokens - shared
    assert cold.cached_tokens == 0
    return cold, warm


def test_two_seconds_before_kill_are_enough(cache_dir, cold_chat, capsys):
    with Server(cache=cache_dir) as server:
        first = server.chat(FIRST, system=handbook())
        assert first.cached_tokens == 0
        # The promise under test: sealed blocks are durable after this time.
        time.sleep(2)
        server.kill()
    with capsys.disabled():
        cold, warm = check_warm(
            cache_dir, cold_chat, "kill -9 after two seconds", handbook()
        )
    assert warm.prompt_tokens > 2900
    assert cold.first_ms >= 20 * warm.first_ms


def test_sigterm_right_after_the_answer_loses_nothing(
    cache_dir, cold_chat, capsys
):
    with Server(cache=cache_dir) as server:
        server.chat(FIRST, system=SHORTER)
        assert server.terminate() == 0
    with capsys.disabled():
        check_warm(cache_dir, cold_chat, "SIGTERM at once", SHORTER)


def test_kill_after_flush_loses_nothing(cache_dir, cold_chat, capsys):
    with Server(cache=cache_dir) as server:
        server.chat(FIRST, system=SHORTER)
        server.flush()
        server.kill()
    with capsys.disabled():
        check_warm(cache_dir, cold_chat, "kill -9 after a flush", SHORTER)


def test_kill_in_the_middle_of_a_prompt_keeps_the_directory_usable(
    cache_dir, cold_chat
):
    cold = cold_chat(SECOND, system=SHORTER)
    for _ in range(3):
        with Server(cache=cache_dir) as server:
            stream = server.stream(
                "/v1/chat/completions",
                {
                    "messages": [
                        {"role": "system", "content": SHORTER},
                        {"role": "user", "content": FIRST},
                    ],
                    "temperature": 0,
                    "max_tokens": 200,
                },
            )
            next(stream)
            server.kill()
    with Server(cache=cache_dir) as server:
        warm = server.chat(SECOND, system=SHORTER)
        assert warm.text == cold.text
        server.flush()
        assert list((cache_dir / "v1" / "tmp").iterdir()) == []
    with Server(cache=cache_dir) as server:
        again = server.chat(SECOND, system=SHORTER)
        assert again.text == cold.text
        assert again.cached_tokens == again.prompt_tokens - 1


def test_sigterm_while_streaming_ends_well(cache_dir):
    with Server(cache=cache_dir) as server:
        stream = server.stream(
            "/v1/completions",
            {"prompt": "Once upon a time", "max_tokens": 6000},
        )
        next(stream)
        assert server.terminate() == 0
