"""What one server reuses from RAM, to the token."""

from serving import Server
from texts import sentences

SYSTEM = sentences(40, seed=3)


def test_the_second_turn_reads_only_what_is_new(cold_chat):
    with Server() as server:
        first = server.chat("Who paints?", system=SYSTEM)
        second = server.chat(
            "Who paints?", first.text, "And who sells?", system=SYSTEM
        )
    assert first.cached_tokens == 0
    assert second.cached_tokens >= first.prompt_tokens
    assert second.timings["cache_ram_n"] == second.cached_tokens
    assert (
        second.timings["prompt_n"]
        == second.prompt_tokens - second.cached_tokens
    )
    cold = cold_chat("Who paints?", first.text, "And who sells?", system=SYSTEM)
    assert second.text == cold.text


def test_an_exact_resend_computes_one_token():
    with Server() as server:
        first = server.chat("Who paints?", system=SYSTEM)
        again = server.chat("Who paints?", system=SYSTEM)
        third = server.chat("Who paints?", system=SYSTEM)
    assert again.text == third.text == first.text
    for answer in (again, third):
        assert answer.cached_tokens == answer.prompt_tokens - 1
        assert answer.timings["prompt_n"] == 1


def test_a_prompt_of_one_token_works_each_time():
    with Server() as server:
        answers = [server.complete("Hello") for _ in range(3)]
    assert {answer.prompt_tokens for answer in answers} == {1}
    assert {answer.cached_tokens for answer in answers} == {0}
    assert len({answer.text for answer in answers}) == 1
    assert answers[0].text


def test_a_prompt_that_ends_at_a_page_boundary(cold_chat):
    """Resent and continued where a block is exactly full."""
    with Server() as server:
        prompt = "word"
        answer = server.complete(prompt, max_tokens=1)
        prompt += " word" * (256 - answer.prompt_tokens)
        first = server.complete(prompt)
        again = server.complete(prompt)
        longer = server.complete(prompt + " and")
    with Server() as server:
        cold = server.complete(prompt + " and")
    assert first.prompt_tokens == 256
    assert again.text == first.text
    assert again.cached_tokens == 255
    assert longer.cached_tokens == 256
    assert longer.text == cold.text


def test_diverging_questions_do_not_change_each_other(cold_chat):
    questions = ["Who paints?", "Who sells?", "Who measures apples?"]
    with Server() as server:
        rounds = [
            [server.chat(question, system=SYSTEM).text for question in questions]
            for _ in range(2)
        ]
    cold = [cold_chat(question, system=SYSTEM).text for question in questions]
    assert rounds == [cold, cold]
