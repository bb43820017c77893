"""Clients at the same time do not touch each other's answers."""

from concurrent.futures import ThreadPoolExecutor

from serving import Server, wait_for
from texts import sentences

REQUESTS = [
    {
        "prompt": f"Story {seed}.\n" + sentences(5 + 9 * seed, seed)
        if seed % 2
        else sentences(3, seed=0) + f"\nPart {seed}, a chapter about",
        "max_tokens": 20 + 4 * seed,
        "temperature": 0.8 if seed % 3 == 0 else 0,
        "seed": seed,
    }
    for seed in range(8)
]


def test_eight_at_once_get_what_each_gets_alone():
    with Server() as server:
        alone = [
            server.ask("/v1/completions", {**request, "cache_prompt": False})
            for request in REQUESTS
        ]
    with Server() as server, ThreadPoolExecutor(len(REQUESTS)) as pool:
        together = list(
            pool.map(lambda body: server.ask("/v1/completions", body), REQUESTS)
        )
    assert len({answer.text for answer in alone}) == len(REQUESTS)
    for one, other in zip(alone, together):
        assert other.text == one.text
        assert other.completion_tokens == one.completion_tokens
        assert other.finish_reason == one.finish_reason


def test_drawn_answers_are_the_same_cold_in_company_and_after_a_restart(
    cache_dir,
):
    requests = [
        {
            **request,
            "max_tokens": 24,
            "temperature": 1.1,
            "min_p": 0.02,
            "frequency_penalty": 0.3,
            "xtc_probability": 0.2,
        }
        for request in REQUESTS
    ]

    def ask_all(server):
        with ThreadPoolExecutor(len(requests)) as pool:
            return list(
                pool.map(
                    lambda body: server.ask("/v1/completions", body), requests
                )
            )

    with Server(cache=cache_dir) as server:
        cold = [
            server.ask("/v1/completions", {**request, "cache_prompt": False})
            for request in requests
        ]
        together = ask_all(server)
        server.flush()
    with Server(cache=cache_dir) as server:
        restarted = ask_all(server)
    assert [answer.cached_tokens for answer in cold] == [0] * len(requests)
    assert any(answer.timings["cache_disk_n"] > 0 for answer in restarted)
    texts = [answer.text for answer in cold]
    assert len(set(texts)) == len(requests)
    assert [answer.text for answer in together] == texts
    assert [answer.text for answer in restarted] == texts


def test_a_client_that_leaves_stops_its_work():
    with Server() as server:
        stream = server.stream(
            "/v1/completions",
            {"prompt": "Once upon a time", "max_tokens": 7000, "seed": 1},
        )
        next(stream)
        assert server.running() == 1
        stream.close()
        wait_for(lambda: server.running() == 0, "idle", 5)
        assert server.complete("The sea is").text


def test_a_client_that_leaves_while_its_prompt_is_read_stops_its_work():
    with Server() as server:
        connection = server.connect()
        body = '{"prompt": "%s", "max_tokens": 5}' % ("word " * 7000)
        connection.request("POST", "/v1/completions", body)
        wait_for(lambda: server.running() == 1, "work", 10)
        connection.close()
        wait_for(lambda: server.running() == 0, "idle", 3)
