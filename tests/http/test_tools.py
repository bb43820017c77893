"""Tools and reasoning on the real model, whose own template knows neither: it
gets one that does, and learns from the conversation what a call looks like."""

import json

import pytest
from calls import good, openai_client
from openai import BadRequestError
from serving import Server

TEMPLATE = r"""
{%- if tools %}{{ '<|im_start|>system\nYou can call tools: ' + (tools | tojson)
  + '\n<|im_end|>\n' }}{% endif %}
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}
{%- if message.reasoning_content %}
  {{- '<think>' + message.reasoning_content + '</think>' }}{% endif %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}{% set tool_call = call.function %}
  {{- '<tool_call>{"name": ' + (tool_call.name | tojson) + ', "arguments": '
    + (tool_call.arguments | tojson) + '}</tool_call>' }}{% endfor %}
{{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather of a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


@pytest.fixture(scope="module")
def agent_server():
    with Server("--chat-template", TEMPLATE) as running:
        yield running
        assert running.terminate() == 0


@pytest.fixture(scope="module")
def agent(agent_server):
    return openai_client(agent_server)


def call_of(number, city):
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {
            "name": "get_weather",
            "arguments": json.dumps({"city": city}),
        },
    }


def asked_about(*cities):
    """Each city but the last was answered by a call."""
    messages = []
    for number, city in enumerate(cities):
        question = f"What is the weather in {city}?"
        messages.append({"role": "user", "content": question})
        call = call_of(number, city)
        messages.append(
            {"role": "assistant", "content": None, "tool_calls": [call]}
        )
    return messages[:-1]


MESSAGES = asked_about("Rome", "Oslo", "Lima", "Paris")


def ask(agent, messages=MESSAGES, **options):
    options = {"tools": TOOLS, "max_tokens": 80, "temperature": 0, **options}
    return agent.chat.completions.create(
        model="any", messages=messages, **options
    )


def test_a_call_is_taken_out_of_the_answer(agent):
    choice = ask(agent).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    (call,) = choice.message.tool_calls
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "Paris"}
    assert call.id


def test_a_stream_gives_the_same_call(agent):
    calls, finish = [], None
    for piece in ask(agent, stream=True):
        choice = piece.choices[0]
        assert not choice.delta.content
        calls += choice.delta.tool_calls or []
        finish = choice.finish_reason or finish
    assert finish == "tool_calls"
    (call,) = calls
    assert call.index == 0
    assert json.loads(call.function.arguments) == {"city": "Paris"}


def test_with_choice_none_the_call_is_text_on_the_same_prompt(agent):
    ask(agent)
    answer = ask(agent, tool_choice="none")
    message = answer.choices[0].message
    assert message.tool_calls is None
    assert message.content.startswith('<tool_call>{"name": "get_weather"')
    usage = answer.usage
    cached = usage.prompt_tokens_details.cached_tokens
    assert cached == usage.prompt_tokens - 1


def test_a_call_cut_by_max_tokens_is_text(agent):
    choice = ask(agent, max_tokens=6).choices[0]
    assert choice.finish_reason == "length"
    assert choice.message.tool_calls is None
    assert choice.message.content.startswith("<tool_call>")


def test_the_next_turn_reuses_the_call(agent):
    first = ask(agent)
    message = first.choices[0].message
    turn = MESSAGES + [
        message.model_dump(exclude_none=True),
        {
            "role": "tool",
            "content": "sunny",
            "tool_call_id": message.tool_calls[0].id,
        },
    ]
    second = ask(agent, turn, max_tokens=1)
    # All of the first prompt and of the call, whose last token was given out
    # and never read.
    known = first.usage.prompt_tokens + first.usage.completion_tokens
    cached = second.usage.prompt_tokens_details.cached_tokens
    assert known - 1 <= cached <= known


def tokens_of(server, messages):
    prompt = good(server, "POST", "/apply-template", {"messages": messages})
    content = {"content": prompt["prompt"]}
    return good(server, "POST", "/tokenize", content)["tokens"]


def test_dropped_reasoning_reuses_what_agrees(agent_server):
    def turn(**more):
        return [
            {"role": "system", "content": "You are thoughtful. " * 20},
            {"role": "user", "content": "Is seven a prime number?"},
            {"role": "assistant", "content": "Yes.", **more},
            {"role": "user", "content": "And nine?"},
        ]

    def cached(messages):
        body = {"messages": messages, "max_tokens": 1, "temperature": 0}
        answer = good(agent_server, "POST", "/v1/chat/completions", body)
        return answer["usage"]["prompt_tokens_details"]["cached_tokens"]

    thinking, dropped = turn(reasoning="Seven has no divisors."), turn()
    cached(thinking)
    pairs = zip(
        tokens_of(agent_server, thinking),
        tokens_of(agent_server, dropped),
        strict=False,
    )
    shared = next(i for i, (a, b) in enumerate(pairs) if a != b)
    assert shared > 80
    assert cached(dropped) == shared


def test_what_cannot_be_forced_is_refused(agent):
    for choice in (
        "required",
        {"type": "function", "function": {"name": "get_weather"}},
    ):
        with pytest.raises(BadRequestError) as refused:
            ask(agent, tool_choice=choice)
        assert refused.value.param == "tool_choice"


def test_tools_for_a_template_without_are_refused(client):
    with pytest.raises(BadRequestError) as refused:
        ask(client, [{"role": "user", "content": "hi"}])
    assert refused.value.param == "tools"
    assert "chat template" in str(refused.value)
