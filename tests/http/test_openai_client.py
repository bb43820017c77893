"""The `openai` package works against the server as against OpenAI."""

import asyncio
import contextlib
import fcntl
import os
import shutil
import signal
import threading

import openai
import pytest
from serving import MODEL, Server, wait_for
from test_tools import MESSAGES, TEMPLATE, TOOLS

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


def ask(client, **options):
    options = {"model": "any", "messages": QUESTION, "max_tokens": 24} | options
    return client.chat.completions.create(**options)


def test_lists_models(client):
    models = client.models.list().data
    assert len(models) == 1
    assert models[0].object == "model"
    assert client.models.retrieve(models[0].id).id == models[0].id
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("no/such-model")
    assert missing.value.code == "model_not_found"


def test_answers_a_chat(client):
    answer = ask(client)
    choice = answer.choices[0]
    assert answer.object == "chat.completion"
    assert answer.model == client.models.list().data[0].id
    assert choice.message.role == "assistant"
    assert "Paris" in choice.message.content
    assert choice.finish_reason in ("stop", "length")
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 < usage.completion_tokens <= 24
    assert answer._request_id == answer.id


def test_streams_what_it_answers(client):
    whole = ask(client)
    text, reasons, usage = "", [], None
    stream = ask(
        client, stream=True, stream_options={"include_usage": True}
    )
    for chunk in stream:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            if choice.finish_reason:
                reasons.append(choice.finish_reason)
        if chunk.usage:
            usage = chunk.usage
            assert not chunk.choices
    assert text == whole.choices[0].message.content
    assert reasons == [whole.choices[0].finish_reason]
    assert usage.prompt_tokens == whole.usage.prompt_tokens
    assert usage.completion_tokens == whole.usage.completion_tokens


def test_content_may_be_parts(client):
    parts = [
        {"type": "text", "text": "What is the capital "},
        {"type": "text", "text": "of France?"},
    ]
    answer = ask(client, messages=[{"role": "user", "content": parts}])
    assert answer.choices[0].message == ask(client).choices[0].message


def test_the_same_prompt_is_not_read_twice(client):
    ask(client)
    usage = ask(client).usage
    details = usage.prompt_tokens_details
    assert details.cached_tokens == usage.prompt_tokens - 1


def test_timings_add_up(client):
    answer = ask(client)
    timings = answer.model_extra["timings"]
    assert timings["cache_n"] + timings["prompt_n"] == (
        answer.usage.prompt_tokens
    )
    assert timings["cache_n"] == (
        timings["cache_ram_n"] + timings["cache_disk_n"]
    )
    assert timings["predicted_n"] == answer.usage.completion_tokens
    assert timings["prompt_ms"] > 0 and timings["predicted_ms"] >= 0


def test_completes_text_and_tokens(client):
    text = client.completions.create(
        model="any", prompt="One, two, three, four,", max_tokens=6
    )
    assert text.object == "text_completion"
    assert "five" in text.choices[0].text
    assert text.choices[0].finish_reason == "length"
    assert text.usage.completion_tokens == 6
    pieces = client.completions.create(
        model="any",
        prompt=["One, two, three, four,"],
        max_tokens=6,
        stream=True,
    )
    joined = "".join(c.text for p in pieces for c in p.choices)
    assert joined == text.choices[0].text
    ids = client.completions.create(
        model="any", prompt=[1, 2, 3], max_tokens=2
    )
    assert ids.usage.prompt_tokens == 3


def test_stop_strings_end_the_text(client):
    whole = ask(client).choices[0].message.content
    stop = whole[len(whole) // 2 :][:3]
    answer = ask(client, stop=[stop])
    choice = answer.choices[0]
    assert choice.message.content == whole[: whole.index(stop)]
    assert choice.finish_reason == "stop"
    stream = ask(client, stop=stop, stream=True)
    text = "".join(
        c.delta.content or "" for chunk in stream for c in chunk.choices
    )
    assert text == choice.message.content


def test_logprobs_agree_with_the_text(client):
    answer = ask(client, logprobs=True, top_logprobs=3, max_tokens=8)
    content = answer.choices[0].logprobs.content
    joined = b"".join(bytes(entry.bytes) for entry in content).decode()
    assert joined == answer.choices[0].message.content
    for entry in content:
        assert len(entry.top_logprobs) == 3
        assert entry.logprob <= 0
        # Greedy: the chosen token is the likeliest.
        assert entry.top_logprobs[0].logprob == entry.logprob
        assert entry.top_logprobs[0].token == entry.token
        alternatives = [one.logprob for one in entry.top_logprobs]
        assert alternatives == sorted(alternatives, reverse=True)
    chunks = ask(
        client, logprobs=True, top_logprobs=3, max_tokens=8, stream=True
    )
    streamed = [
        entry.token
        for chunk in chunks
        for choice in chunk.choices
        if choice.logprobs
        for entry in choice.logprobs.content
    ]
    assert streamed == [entry.token for entry in content]


def test_logprobs_of_completions(client):
    answer = client.completions.create(
        model="any", prompt="One, two,", max_tokens=4, logprobs=2
    )
    logprobs = answer.choices[0].logprobs
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == 4
    assert len(logprobs.text_offset) == 4
    assert all(len(top) == 2 for top in logprobs.top_logprobs)
    assert "".join(logprobs.tokens) == answer.choices[0].text


def test_parts_of_characters_are_named_apart(client):
    # The biased tokens are one byte each, and no character.
    biased = client.completions.create(
        model="any",
        prompt="Once",
        max_tokens=2,
        logprobs=5,
        temperature=0,
        logit_bias={str(token): 100 for token in range(150, 154)},
    )
    logprobs = biased.choices[0].logprobs
    for name, alternatives in zip(
        logprobs.tokens, logprobs.top_logprobs, strict=True
    ):
        assert len(alternatives) == 5
        assert name in alternatives
        parts = [it for it in alternatives if it.startswith("bytes:\\x")]
        assert len(parts) >= 4


def test_a_seed_repeats_its_draws(client):
    def draw(seed):
        answer = ask(client, temperature=1.5, seed=seed)
        return answer.choices[0].message.content

    assert draw(7) == draw(7)
    assert len({draw(seed) for seed in range(4)}) > 1


def test_logit_bias_decides(client):
    def tokens(**options):
        answer = client.completions.create(
            model="any", prompt="One, two,", max_tokens=3, logprobs=0, **options
        )
        return answer.choices[0].logprobs.tokens

    forced = tokens(logit_bias={"504": 100})
    assert len(set(forced)) == 1
    assert len(set(tokens())) > 1


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"temperature": -1}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"n": 0}, "n"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]},
         "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"extra_body": {"adapters": "x"}}, "adapters"),
        ({"extra_body": {"no_such_field": 1}}, "no_such_field"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "asistant", "content": "x"}]},
         "messages[0].role"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:,"}}]}]},
         "messages[0].content[0].type"),
    ],
)  # fmt: skip
def test_errors_name_the_field(client, options, param):
    with pytest.raises(openai.BadRequestError) as refused:
        ask(client, **options)
    assert refused.value.param == param
    assert refused.value.type == "invalid_request_error"


def test_values_that_ask_for_nothing_are_taken(client):
    taken = ask(
        client,
        max_tokens=2,
        service_tier="auto",
        stop=[""],
        extra_body={
            "id_slot": -1,
            "timings_per_token": False,
            "repeat_penalty": 1,
        },
    )
    assert taken.usage.completion_tokens == 2
    assert ask(client, max_tokens=2, service_tier="default", stop="")
    named = client.completions.create(
        model="any", prompt="Once", extra_body={"n_predict": 2}
    )
    assert named.usage.completion_tokens == 2


def test_minus_one_is_as_far_as_the_context_goes(client):
    # Of a prompt that nearly fills it.
    prompt = [504] * 8180
    filled = client.completions.create(
        model="any", prompt=prompt, max_tokens=-1, logit_bias={"504": 100}
    )
    assert filled.usage.completion_tokens == 8192 - 8180
    assert filled.choices[0].finish_reason == "length"


def test_calls_without_arguments_are_taken(client):
    called = {"id": "1", "type": "function", "function": {"name": "f"}}
    texts = []
    for arguments in ("", None, "{}"):
        history = [
            {"role": "user", "content": "Go on."},
            {
                "role": "assistant",
                "tool_calls": [
                    called
                    | {"function": {"name": "f", "arguments": arguments}}
                ],
            },
            {"role": "tool", "tool_call_id": "1", "content": "done"},
        ]
        answer = ask(client, messages=history, max_tokens=4, temperature=0)
        texts.append(answer.choices[0].message.content)
    assert texts[0] == texts[1] == texts[2]


def test_a_prompt_beyond_the_context_is_refused(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(
            model="any", prompt="word " * 20_000, max_tokens=1
        )
    assert refused.value.code == "context_length_exceeded"
    assert refused.value.param == "prompt"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": [1, 10**9]}, "prompt"),
        ({"prompt": [[1], [10**9]]}, "prompt"),
        ({"logit_bias": {"1000000000": 1}}, "logit_bias"),
        ({"extra_body": {"top_k": 10**9}}, "top_k"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_the_model_cannot_take_is_named(client, options, param, stream):
    options = {"prompt": "Once", "max_tokens": 1, "stream": stream} | options
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model="any", **options)
    assert refused.value.param == param
    assert refused.value.type == "invalid_request_error"


def client_of(server, **options) -> openai.OpenAI:
    options = {"api_key": "none", "max_retries": 0, "timeout": 120} | options
    return openai.OpenAI(
        base_url=f"http://127.0.0.1:{server.port}/v1", **options
    )


def test_the_stream_helper_gathers_the_answer(client):
    whole = ask(client)
    with client.chat.completions.stream(
        model="any", messages=QUESTION, max_tokens=24
    ) as stream:
        text = "".join(
            event.delta for event in stream if event.type == "content.delta"
        )
        final = stream.get_final_completion()
    assert text == whole.choices[0].message.content
    assert final.choices[0].message.content == text
    assert final.choices[0].finish_reason == whole.choices[0].finish_reason


def test_closing_a_stream_ends_the_work(server, client):
    stream = ask(
        client, max_tokens=4000, stream=True, logit_bias={"2": -100}
    )
    next(iter(stream))
    assert server.running() == 1
    stream.close()
    wait_for(lambda: server.running() == 0, "an end of the work", 10)


def test_the_asynchronous_client_asks_at_once(server, client):
    cities = ["France", "Italy", "Spain", "Japan"]

    def question(country):
        text = f"What is the capital of {country}?"
        return {
            "model": "any",
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 12,
        }

    async def ask_all():
        async with openai.AsyncOpenAI(
            base_url=f"http://127.0.0.1:{server.port}/v1",
            api_key="none",
            max_retries=0,
        ) as other:
            answers = await asyncio.gather(
                *(other.chat.completions.create(**question(c)) for c in cities)
            )
            stream = await other.chat.completions.create(
                **question(cities[0]), stream=True
            )
            text = ""
            async for chunk in stream:
                text += chunk.choices[0].delta.content or ""
            return [a.choices[0].message.content for a in answers], text

    texts, streamed = asyncio.run(ask_all())
    for country, text in zip(cities, texts):
        alone = client.chat.completions.create(**question(country))
        assert text == alone.choices[0].message.content
    assert streamed == texts[0]


def test_raw_answers_have_their_id_and_type(client):
    raw = client.chat.completions.with_raw_response.create(
        model="any", messages=QUESTION, max_tokens=1
    )
    assert raw.headers["content-type"].startswith("application/json")
    assert raw.headers["x-request-id"] == raw.parse().id


@contextlib.contextmanager
def lease(path):
    """Whoever opens the file waits until the function that this yields is
    called, or /proc/sys/fs/lease-break-time is over (45 s)."""
    ignored = signal.signal(signal.SIGIO, signal.SIG_IGN)  # "somebody waits"
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield lambda: fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, ignored)


def test_a_model_that_is_loaded_is_waited_for(tmp_path):
    """503 with Retry-After is what the client tries again by itself."""
    model = shutil.copyfile(MODEL, tmp_path / "model.gguf")
    seen = []
    with lease(model) as release:

        def note(response):
            if not seen:
                release()
            seen.append((response.status_code, response.headers))

        with Server(model=model, loaded=False) as server:
            client = client_of(
                server,
                max_retries=5,
                http_client=openai.DefaultHttpxClient(
                    event_hooks={"response": [note]}
                ),
            )
            answer = ask(client, max_tokens=1)
    assert answer.choices
    *before, (last, _) = seen
    assert last == 200
    assert before, "the model was loaded before it was asked"
    for status, headers in before:
        assert status == 503
        assert int(headers["Retry-After"]) >= 1


def test_keys_are_asked_for_and_taken():
    with Server("--api-key", "sk-one") as server:
        for key in ("sk-two", "none"):
            with pytest.raises(openai.AuthenticationError) as refused:
                ask(client_of(server, api_key=key))
            assert refused.value.status_code == 401
        assert ask(client_of(server, api_key="sk-one"), max_tokens=1).choices


def test_a_full_queue_is_a_rate_limit():
    one = (
        "--decode-concurrency", "1", "--prompt-concurrency", "1",
        "--queue-limit", "1",
    )  # fmt: skip
    with Server(*one) as server:
        client = client_of(server)
        endless = {"max_tokens": 4000, "logit_bias": {"2": -100}}
        stream = ask(client, stream=True, **endless)
        answers = []
        waiting = threading.Thread(
            target=lambda: answers.append(ask(client, max_tokens=1))
        )
        waiting.start()
        wait_for(
            lambda: server.get("/v1/cache")["requests"]["queued"] == 1, "queue"
        )
        with pytest.raises(openai.RateLimitError) as refused:
            ask(client, max_tokens=1)
        assert int(refused.value.response.headers["retry-after"]) >= 1
        stream.close()
        waiting.join()
        assert answers[0].choices
        assert ask(client, max_tokens=1).choices


def test_an_error_within_a_stream_is_raised():
    with Server("--drain-seconds", "0") as server:
        stream = ask(
            client_of(server),
            max_tokens=4000,
            stream=True,
            logit_bias={"2": -100},
        )
        next(iter(stream))
        server.process.terminate()
        with pytest.raises(openai.APIError) as cut:
            for _ in stream:
                pass
        assert cut.value.message == "the server is shutting down"
        assert cut.value.code == "stopping"


def test_the_stream_helper_gathers_tool_calls():
    with Server("--chat-template", TEMPLATE) as server:
        options = {"tools": TOOLS, "messages": MESSAGES, "max_tokens": 80}
        client = client_of(server)
        whole = ask(client, **options).choices[0]
        with client.chat.completions.stream(model="any", **options) as stream:
            final = stream.get_final_completion().choices[0]
    assert final.finish_reason == whole.finish_reason == "tool_calls"
    (expected,) = whole.message.tool_calls
    (call,) = final.message.tool_calls
    assert call.function.name == expected.function.name == "get_weather"
    assert call.function.arguments == expected.function.arguments
    assert not final.message.content
