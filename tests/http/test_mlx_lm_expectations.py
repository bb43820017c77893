"""What mlx_lm's tests expect of its server, shown against ours.

docs/http-api.md lists the expectations, with the test of each.
"""

import json
import math
import re
import socket

import pytest
from calls import call, good
from openai import OpenAI
from serving import ROOT, Server, wait_for
from texts import handbook

SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
HELLO = {"role": "user", "content": "Hello!"}


def chat(server, messages=(SYSTEM, HELLO), **options):
    body = {"model": "chat_model", "messages": list(messages)}
    body |= {"max_tokens": 10} | options
    return good(server, "POST", "/v1/chat/completions", body)


def complete(server, prompt, **options):
    body = {"model": "default_model", "prompt": prompt, "max_tokens": 10}
    return good(server, "POST", "/v1/completions", body | options)


def raw(server, path, body) -> bytes:
    """All bytes of the answer, its head without."""
    data = json.dumps(body).encode()
    with socket.create_connection(
        ("127.0.0.1", server.port), timeout=120
    ) as sock:
        sock.sendall(
            f"POST {path} HTTP/1.0\r\nHost: localhost\r\n"
            f"Content-Length: {len(data)}\r\n\r\n".encode()
            + data
        )
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
    return answer.partition(b"\r\n\r\n")[2]


# Completions and chats.


def test_completions_repeat_with_a_seed(server):
    options = {
        "temperature": 0.5,
        "top_p": 0.9,
        "repetition_penalty": 1.1,
        "repetition_context_size": 20,
        "seed": 999,
        "stop": "stop sequence",
    }
    first = complete(server, "Once upon a time", **options)
    assert first["id"] and first["choices"][0]["text"]
    again = complete(server, "Once upon a time", **options)
    assert again["choices"][0]["text"] == first["choices"][0]["text"]
    assert again["id"] != first["id"]


SAMPLED = {"temperature": 0.7, "top_p": 0.85, "repetition_penalty": 1.2}


def test_chats_have_id_and_choices(server):
    answer = chat(server, **SAMPLED)
    assert answer["id"] and len(answer["choices"]) == 1


def test_content_may_be_fragments(server):
    def fragments(message):
        part = {"type": "text", "text": message["content"]}
        return {"role": message["role"], "content": [part]}

    answer = chat(server, map(fragments, (SYSTEM, HELLO)), **SAMPLED)
    assert answer["id"] and answer["choices"]
    # Not only taken: read as the same prompt.
    plain = chat(server, temperature=0)
    parts = chat(server, map(fragments, (SYSTEM, HELLO)), temperature=0)
    assert parts["choices"][0]["message"] == plain["choices"][0]["message"]
    assert parts["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"]


def test_content_beside_tool_calls_may_be_null(server):
    call_of_add = {
        "type": "function",
        "id": "123",
        "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'},
    }
    messages = [
        {"role": "user", "content": "what is 2+3?"},
        {"role": "assistant", "content": None, "tool_calls": [call_of_add]},
        {"role": "tool", "content": "5", "tool_call_id": "123"},
    ]
    answer = chat(server, messages, **SAMPLED)
    assert answer["id"] and answer["choices"]


def test_models_are_listed(server):
    answer = good(server, "GET", "/v1/models")
    assert answer["object"] == "list"
    assert len(answer["data"]) > 0
    model = answer["data"][0]
    assert model["id"] and model["object"] == "model"
    assert isinstance(model["created"], int)


# What the tests with a draft model expect of any model.


def test_answers_count_their_tokens(server):
    for answer in (
        complete(server, "Once upon a time", temperature=0.0, top_p=1.0),
        chat(server, temperature=0.0),
    ):
        assert answer["id"] and answer["choices"]
        assert answer["usage"]["completion_tokens"] > 0


def test_a_draft_model_is_refused_by_name(server):
    body = {"prompt": "x", "draft_model": "some/model"}
    status, answer = call(server, "POST", "/v1/completions", body)
    assert status == 400
    assert answer["error"]["param"] == "draft_model"
    complete(server, "x", draft_model="default_model")


def test_pieces_of_a_stream_have_one_choice_with_a_delta(server):
    body = {
        "messages": [SYSTEM, HELLO],
        "max_tokens": 10,
        "temperature": 0.0,
        "stream": True,
    }
    lines = raw(server, "/v1/chat/completions", body).decode().split("\n")
    data = [line for line in lines if line.startswith("data: ")]
    assert data.pop() == "data: [DONE]"
    assert len(data) > 1
    text = ""
    for line in data:
        piece = json.loads(line.removeprefix("data: "))
        (choice,) = piece["choices"]
        text += choice["delta"].get("content") or ""
    whole = chat(server, temperature=0.0)
    assert text == whole["choices"][0]["message"]["content"]


def test_prompts_that_begin_alike_share_the_cache(server):
    def ask(text):
        user = {"role": "user", "content": text}
        return chat(server, (SYSTEM, user), max_tokens=5, temperature=0.0)

    story = "Tell me a story of a ship, its crew and an old captain. " * 3
    first, second = ask(story), ask(story + "Begin.")
    for answer in (first, second):
        assert answer["choices"][0]["message"]["content"]
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] > 32


# Signs of life while a prompt is read.


def test_keepalives_tell_what_is_done_of_the_prompt(server):
    body = {
        "messages": [
            {"role": "system", "content": handbook()},
            {"role": "user", "content": "What is forbidden?"},
        ],
        "max_tokens": 1,
        "stream": True,
        "cache_prompt": False,
    }
    answer = raw(server, "/v1/chat/completions", body).decode()
    events = answer.split("\n\n")
    alive = [event for event in events if event.startswith(":")]
    counts = [re.fullmatch(r": keepalive (\d+)/(\d+)", a) for a in alive]
    assert len(counts) > 1 and all(counts)
    done = [int(count[1]) for count in counts]
    (total,) = {int(count[2]) for count in counts}
    assert done == sorted(done) and done[-1] <= total
    # Before the text, and the rest of the stream is as ever.
    first_data = next(i for i, e in enumerate(events) if e.startswith("data"))
    assert all(not e.startswith(":") for e in events[first_data:])
    assert events[-2:] == ["data: [DONE]", ""]
    del body["stream"]
    whole = raw(server, "/v1/chat/completions", body)
    assert b"keepalive" not in whole
    assert json.loads(whole)["usage"]["prompt_tokens"] == total


def test_a_client_that_leaves_between_keepalives_harms_nobody(server):
    body = json.dumps(
        {"prompt": "word " * 6000, "max_tokens": 1, "stream": True,
         "cache_prompt": False}
    )  # fmt: skip
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.sendall(
            f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        seen = b""
        while b": keepalive" not in seen:
            piece = sock.recv(4096)
            assert piece
            seen += piece
    wait_for(lambda: server.running() == 0, "an end of the work", 10)
    assert server.get("/health") == {"status": "ok"}


# The prompt cache. mlx_lm's tests give it single tokens; a prompt here has 40
# for each of those, as less than 32 known tokens are computed again.

UNIT = 40


def tokens(*units: int) -> list[int]:
    return [unit for unit in units for _ in range(UNIT)]


def cached(server, prompt, **options) -> int:
    answer = complete(server, prompt, max_tokens=1, **options)
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def known(server, *units) -> int:
    """How many of these are cached, asked without changing anything."""
    return cached(server, tokens(*units), cache={"store": False})


def entry_lengths(server) -> list[int]:
    entries = server.get("/v1/cache")["entries"]
    return sorted(entry["tokens"] for entry in entries)


def test_the_longest_known_beginning_is_used():
    with Server() as server:
        prompt = tokens(10)
        assert cached(server, prompt) == 0
        # A beginning that is used stays, until what is longer replaces it.
        prompt += tokens(20)
        assert known(server, 10, 20) == UNIT
        assert entry_lengths(server) == [UNIT]
        assert cached(server, prompt) == UNIT
        assert entry_lengths(server) == [2 * UNIT]
        prompt += tokens(30)
        assert cached(server, prompt) == 2 * UNIT
        assert entry_lengths(server) == [3 * UNIT]
        # What goes another way from the middle on is a second entry.
        prompt = prompt[: UNIT + UNIT // 2] + tokens(40)
        assert cached(server, prompt) == UNIT + UNIT // 2
        assert entry_lengths(server) == [len(prompt), 3 * UNIT]


def test_the_least_recently_used_entry_goes_first():
    with Server("--prompt-cache-size", "2") as server:
        cached(server, tokens(1, 2))
        cached(server, tokens(2, 3))
        # All of it, less than it, and what it begins with.
        assert known(server, 1, 2) == 2 * UNIT - 1
        assert known(server, 1) == UNIT - 1
        assert known(server, 1, 3, 4) == UNIT
        assert known(server, 2, 3, 4) == 2 * UNIT
        assert known(server, 2, 4, 5) == UNIT

        for units in ((1, 2), (2, 3), (3, 4)):
            cached(server, tokens(*units))
        assert known(server, 1, 2) == 0
        assert known(server, 2, 3) == 2 * UNIT - 1
        assert known(server, 3, 4) == 2 * UNIT - 1
        assert entry_lengths(server) == [2 * UNIT, 2 * UNIT]


def test_system_prompts_outlive_answers():
    with Server("--prompt-cache-size", "2") as server:

        def kinds():
            entries = server.get("/v1/cache")["entries"]
            return sorted(entry["type"] for entry in entries)

        system = {"role": "system", "content": "Be brief and polite. " * 20}
        chat(server, (system, HELLO), temperature=0.0)
        assert kinds() == ["assistant", "system"]
        # Others push out the answer, and then each other.
        for unit in (5, 7, 9):
            cached(server, tokens(unit, unit + 1))
            assert kinds() == ["assistant", "system"]
        assert known(server, 7, 8) == 0
        assert known(server, 9, 10) == 2 * UNIT - 1
        again = chat(server, (system, HELLO), cache={"store": False})
        usage = again["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] > 80


def test_bytes_are_kept_within_their_limit():
    with Server("--prompt-cache-bytes", "40MB") as server:
        limit = server.get("/v1/cache")["ram"]["budget_bytes"]
        assert limit == 40_000_000
        for unit in range(1, 7):
            cached(server, [unit] * 700)
            assert server.get("/v1/cache")["ram"]["bytes"] <= limit
        # 700 tokens take 16 MB: not all of them fit, the last does.
        assert server.get("/v1/cache")["ram"]["evicted_blocks"] > 0
        last = cached(server, [6] * 700, cache={"store": False})
        assert last == 699
        assert cached(server, [1] * 700, cache={"store": False}) == 0


def test_there_is_no_empty_prompt(server):
    for prompt in ([], "", [[]]):
        body = {"prompt": prompt, "max_tokens": 1}
        status, answer = call(server, "POST", "/v1/completions", body)
        assert status == 400, (prompt, answer)


# Sampling.


LINE_BREAK, END, THE, DID = 198, 2, 504, 1250
TEXTS = {LINE_BREAK: "\n", END: "<|im_end|>", THE: "The", DID: " did"}


def drawn_with_xtc(server, likely: int, other: int) -> set[str]:
    """The texts of draws between two tokens that have 88 and 12 %."""

    def draw(difference: float, **options):
        bias = {str(likely): 50 + difference, str(other): 50}
        prompt = "One\nTwo\n"
        options |= {"max_tokens": 1, "logit_bias": bias}
        return complete(server, prompt, **options)["choices"]

    told = draw(0, temperature=0, logprobs=2)[0]["logprobs"]
    known = told["top_logprobs"][0]
    difference = known[TEXTS[likely]] - known[TEXTS[other]]
    drawn = draw(
        math.log(88 / 12) - difference,
        temperature=1.0,
        n=16,
        seed=1,
        xtc_probability=1.0,
        xtc_threshold=0.05,
    )
    return {choice["text"] for choice in drawn}


def test_xtc_leaves_line_breaks_and_end_tokens(server):
    # Of two that are above the threshold it takes the likelier one,
    assert drawn_with_xtc(server, DID, THE) == {"The"}
    # but not these; the end of an answer has no text.
    assert "\n" in drawn_with_xtc(server, LINE_BREAK, THE)
    assert "" in drawn_with_xtc(server, END, THE)


# What its code does besides.


def test_the_path_without_v1_is_a_chat_too(server):
    body = {"messages": [SYSTEM, HELLO], "max_tokens": 4, "temperature": 0}
    short = good(server, "POST", "/chat/completions", body)
    long = good(server, "POST", "/v1/chat/completions", body)
    assert short["choices"] == long["choices"]
    assert short["object"] == "chat.completion"


def test_the_newer_name_of_max_tokens_wins(server):
    options = {"max_tokens": 9, "max_completion_tokens": 2, "temperature": 0}
    assert chat(server, **options)["usage"]["completion_tokens"] == 2


def test_stop_is_a_string_or_a_list(server):
    whole = complete(server, "One, two, three,", temperature=0)
    text = whole["choices"][0]["text"]
    stop = text.strip().split()[1]
    for given in (stop, ["no such text", stop]):
        choice = complete(
            server, "One, two, three,", temperature=0, stop=given
        )["choices"][0]
        assert choice["finish_reason"] == "stop"
        assert choice["text"] == text[: text.index(stop)]


def test_usage_comes_before_done_when_asked_for(server):
    body = {
        "prompt": "Once",
        "max_tokens": 2,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    events = raw(server, "/v1/completions", body).decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    usage = json.loads(events[-3].removeprefix("data: "))
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 2
    assert usage["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    del body["stream_options"]
    events = raw(server, "/v1/completions", body).decode().split("\n\n")
    assert json.loads(events[-3].removeprefix("data: "))["choices"]


def test_template_variables_of_the_server_and_of_the_request():
    # The model's template has this one: without it no answer is begun.
    off = json.dumps({"add_generation_prompt": False})
    with Server("--chat-template-args", off) as server:
        set_off = chat(server)["usage"]["prompt_tokens"]
        on = {"chat_template_kwargs": {"add_generation_prompt": True}}
        set_on = chat(server, **on)["usage"]["prompt_tokens"]
    assert set_off < set_on


@pytest.mark.parametrize(
    "body, status",
    [(b"{", 400), (b"[]", 400), (b'{"messages": 1}', 400), (b"{}", 400)],
)
def test_bad_bodies_are_400(server, body, status):
    connection = server.connect()
    try:
        connection.request("POST", "/v1/chat/completions", body)
        response = connection.getresponse()
        assert response.status == status
        assert json.loads(response.read())["error"]["message"]
    finally:
        connection.close()


@pytest.mark.parametrize(
    "name, value",
    [
        ("stream", 1),
        ("max_tokens", 0),
        ("temperature", -1),
        ("top_p", 1.5),
        ("top_k", -1),
        ("min_p", 2),
        ("repetition_penalty", -1),
        ("repetition_context_size", -1),
        ("presence_penalty", "x"),
        ("presence_context_size", -1),
        ("frequency_penalty", []),
        ("frequency_context_size", -1),
        ("logprobs", "yes"),
        ("top_logprobs", -2),
        ("xtc_probability", 2),
        ("xtc_threshold", -0.5),
        ("model", 1),
        ("adapters", 1),
        ("seed", "x"),
        ("logit_bias", []),
        ("logit_bias", {"x": 1}),
        ("num_draft_tokens", -1),
    ],
)
def test_fields_of_the_wrong_type_or_range_are_400(server, name, value):
    body = {"messages": [HELLO], "max_tokens": 1, name: value}
    status, answer = call(server, "POST", "/v1/chat/completions", body)
    assert status == 400
    assert name in answer["error"]["message"]


def test_unknown_paths_are_404(server):
    assert call(server, "GET", "/v1/nothing")[0] == 404
    assert call(server, "POST", "/v1/nothing", {})[0] == 404


def test_health_is_ok_while_it_generates(server):
    body = {"prompt": "Once", "max_tokens": 4000, "logit_bias": {"2": -100}}
    events = server.stream("/v1/completions", body)
    for _ in range(3):
        assert next(events)["choices"]
        assert good(server, "GET", "/health") == {"status": "ok"}
    assert server.running() == 1
    events.close()
    wait_for(lambda: server.running() == 0, "end of the work")


def preflight(server, origin):
    connection = server.connect()
    try:
        connection.request(
            "OPTIONS",
            "/v1/chat/completions",
            headers={
                "Origin": origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type",
            },
        )
        response = connection.getresponse()
        response.read()
        return response.status, response.headers
    finally:
        connection.close()


ALLOW_ORIGIN = "Access-Control-Allow-Origin"


def test_origins_that_are_allowed_get_their_headers():
    with Server("--allowed-origins", "https://a.example") as server:
        status, headers = preflight(server, "https://a.example")
        assert status == 204
        assert headers[ALLOW_ORIGIN] == "https://a.example"
        assert "Origin" in headers["Vary"]
        _, headers = preflight(server, "https://b.example")
        assert headers[ALLOW_ORIGIN] is None
    with Server("--allowed-origins", "*") as server:
        status, headers = preflight(server, "https://b.example")
        assert status == 204 and headers[ALLOW_ORIGIN] == "*"


def test_no_other_origin_is_allowed_by_default(server):
    _, headers = preflight(server, "https://a.example")
    assert headers[ALLOW_ORIGIN] is None


# The list itself.


def test_the_docs_name_every_test_and_no_other():
    text = (ROOT / "docs/http-api.md").read_text()
    section = text.split("## Expectations of mlx_lm's server tests")[1]
    section = section.split("\n## ")[0]
    named = set(re.findall(r"`(test_\w+)` \|$", section, re.MULTILINE))
    here = {name for name in globals() if name.startswith("test_")}
    here.remove("test_the_docs_name_every_test_and_no_other")
    assert named == here
