"""Several answers to one request on the real model."""

import random

from calls import good

TOPICS = "boats rivers clouds lamps stones birds roads bread".split()


def new_prompt(tag, sentences=60):
    draw = random.Random(tag)
    told = [f"{tag} has {draw.randrange(99)} {draw.choice(TOPICS)}."
            for _ in range(sentences)]  # fmt: skip
    return " ".join(told)


def computed_tokens(server):
    for line in good(server, "GET", "/metrics").splitlines():
        if line.startswith('afterglow_prompt_tokens_total{source="computed"}'):
            return int(float(line.split()[-1]))
    raise AssertionError("no such metric")


def complete(server, **body):
    body = {"max_tokens": 12, "temperature": 1.2, **body}
    return good(server, "POST", "/v1/completions", body)


def test_choices_draw_as_requests_with_the_next_seeds(server):
    prompt = new_prompt("Ada")
    answer = complete(server, prompt=prompt, n=4, seed=11)
    assert [one["index"] for one in answer["choices"]] == [0, 1, 2, 3]
    texts = [one["text"] for one in answer["choices"]]
    assert len(set(texts)) > 1
    alone = [complete(server, prompt=prompt, seed=11 + i) for i in range(4)]
    assert texts == [one["choices"][0]["text"] for one in alone]


def test_choices_share_their_prefill(server):
    before = computed_tokens(server)
    # Not kept, so that nothing but the choices' own sharing can help.
    cache = {"read": False, "store": False}
    answer = complete(server, prompt=new_prompt("Bob"), n=5, cache=cache)
    prompt_tokens = answer["usage"]["prompt_tokens"]
    assert prompt_tokens > 300
    # The last token is computed by each: its logits are needed.
    assert computed_tokens(server) - before == prompt_tokens + 4
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_several_prompts_are_answered_in_order(server):
    prompts = [new_prompt("Cid", 10), [504, 28, 1002], new_prompt("Dan", 10)]
    both = complete(server, prompt=prompts, temperature=0)
    alone = [complete(server, prompt=one, temperature=0) for one in prompts]
    assert [one["text"] for one in both["choices"]] == [
        one["choices"][0]["text"] for one in alone
    ]
    for count in ("prompt_tokens", "completion_tokens"):
        total = sum(one["usage"][count] for one in alone)
        assert both["usage"][count] == total


def test_a_stream_tells_choices_apart(client, server):
    prompt = new_prompt("Eve", 8)
    texts = {}
    for piece in client.completions.create(
        model="any",
        prompt=prompt,
        n=3,
        seed=5,
        temperature=1.2,
        max_tokens=10,
        stream=True,
    ):
        for choice in piece.choices:
            texts.setdefault(choice.index, []).append(choice.text)
    whole = complete(server, prompt=prompt, n=3, seed=5, max_tokens=10)
    assert {i: "".join(parts) for i, parts in texts.items()} == {
        one["index"]: one["text"] for one in whole["choices"]
    }
