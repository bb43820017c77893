"""Requests with the same prompt that come at once: it is read once."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

from serving import Server, wait_for
from texts import handbook, sentences

CLIENTS = 8
QUESTION = {
    "messages": [
        {"role": "system", "content": handbook(seed=8)},
        {"role": "user", "content": "What does the cook sell at noon?"},
    ],
    "max_tokens": 12,
}
CHAT = "/v1/chat/completions"


def prompt_tokens(server: Server, source: str) -> int:
    connection = server.connect()
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    name = "afterglow_prompt_tokens_total"
    return int(float(re.search(rf'{name}{{source="{source}"}} (\S+)', text)[1]))


def test_eight_equal_prompts_at_once_cost_one_prefill():
    with Server("--activations", "int8") as server:
        with ThreadPoolExecutor(CLIENTS) as pool:
            answers = list(
                pool.map(
                    lambda _: server.ask(CHAT, QUESTION), range(CLIENTS)
                )
            )
        computed = prompt_tokens(server, "computed")
        from_memory = prompt_tokens(server, "ram")
        alone = server.ask(CHAT, {**QUESTION, "cache_prompt": False})

    total = alone.prompt_tokens
    assert total > 2500
    assert alone.cached_tokens == 0
    # One reads all, each other one only the token whose logits it needs.
    assert computed == total + CLIENTS - 1
    assert from_memory == (CLIENTS - 1) * (total - 1)
    assert {answer.text for answer in answers} == {alone.text}
    for answer in answers:
        assert answer.timings["cache_ram_n"] == answer.cached_tokens
    assert sorted(answer.cached_tokens for answer in answers) == [0] + [
        total - 1
    ] * (CLIENTS - 1)


def test_the_choices_of_one_answer_share_a_prefill_that_nothing_caches():
    body = {
        "prompt": sentences(30, seed=9),
        "n": 4,
        "max_tokens": 3,
        "temperature": 0.8,
        "seed": 5,
        "cache_prompt": False,
    }
    with Server("--activations", "int8") as server:
        status, answer = server.request("POST", "/v1/completions", body)
        assert status == 200, answer
        computed = prompt_tokens(server, "computed")
        entries = server.get("/v1/cache")["entry_count"]
        # Each choice is what its seed alone gives.
        alone = server.request(
            "POST", "/v1/completions", {**body, "n": 1, "seed": 7}
        )[1]
    assert len(answer["choices"]) == 4
    assert computed == alone["usage"]["prompt_tokens"] + 3
    assert entries == 0
    texts = {one["index"]: one["text"] for one in answer["choices"]}
    assert texts[2] == alone["choices"][0]["text"]


def test_who_waits_for_a_prompt_hears_how_far_it_is_read():
    with Server("--activations", "int8") as server:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(server.ask, CHAT, QUESTION)
            wait_for(lambda: server.running() == 1, "a running request")
            connection = server.connect()
            connection.request(
                "POST", CHAT, json.dumps({**QUESTION, "stream": True})
            )
            comments = [
                line
                for line in connection.getresponse().read().splitlines()
                if line.startswith(b": keepalive")
            ]
            connection.close()
            total = first.result().prompt_tokens
    # Its own work is the last token only; the rest it heard as it waited.
    assert len(comments) >= 2
    assert comments[-1] == b": keepalive %d/%d" % (total, total)
    done = [int(re.search(rb"(\d+)/", line)[1]) for line in comments]
    assert all(0 < some < total for some in done[1:-1])
    assert done == sorted(done)
