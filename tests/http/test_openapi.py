"""Random requests, as the API's own description has them and as it forbids
them: nothing fails inside, and every answer is one that it describes."""

import json

import jsonschema_rs
import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from calls import call, good
from serving import ROOT, Server

# What is asked for must not take long.
MOST = {"max_tokens": 2, "max_completion_tokens": 2, "n_predict": 2, "n": 2}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    cache.chmod(0o700)
    with Server("--max-tokens", "2", cache=cache) as running:
        running.complete("Something that the cache holds. " * 20)
        yield running
        # Idle again, and nothing was left behind.
        assert running.running() == 0
        assert running.terminate() == 0


@pytest.fixture(scope="module")
def document(server):
    return server.get("/openapi.json")


SCHEMA = schemathesis.openapi.from_path(ROOT / "docs" / "openapi.yaml")
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]


def bound(body):
    """Makes a valid request a small one, of tokens that the model knows."""
    if not isinstance(body, dict):
        return
    for name, most in MOST.items():
        if type(body.get(name)) is int and not 0 <= body[name] <= most:
            body[name] = most
    for name in ("tokens", "prompt"):
        if isinstance(body.get(name), list):
            body[name] = [small(it) for it in body[name][:100]]


def small(token):
    if isinstance(token, list):
        return [small(it) for it in token[:100]]
    is_token = type(token) is int and 0 <= token < 2**31
    return token % 40000 if is_token else token


def with_random_cases(server, operation, mode, examples):
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case):
        bound(case.body)
        url = f"http://127.0.0.1:{server.port}"
        case.call_and_validate(base_url=url, checks=CHECKS, timeout=60)

    check()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda it: it.label)
def test_what_is_described_is_answered_so(server, operation):
    with_random_cases(server, operation, GenerationMode.POSITIVE, 25)


@pytest.mark.parametrize(
    "operation",
    [it for it in OPERATIONS if any(it.body)],
    ids=lambda it: it.label,
)
def test_what_is_not_described_is_refused(server, operation):
    with_random_cases(server, operation, GenerationMode.NEGATIVE, 40)


USER = [{"role": "user", "content": "Add 1 and 2."}]
GOOD = [
    ("/v1/chat/completions", {"messages": USER, "n": 2, "seed": 1}),
    ("/v1/chat/completions", {"messages": USER, "top_logprobs": 3}),
    ("/chat/completions", {"messages": USER, "stream": True}),
    ("/v1/completions", {"prompt": ["One", "Two"], "logprobs": 3}),
    ("/v1/completions", {"prompt": [1, 2, 3], "logit_bias": {"5": 1.5}}),
    ("/v1/completions", {"prompt": "One", "cache": {"store": False}}),
    ("/tokenize", {"content": "ä🙂", "with_pieces": True}),
    ("/detokenize", {"tokens": [1, 2, 3]}),
    ("/apply-template", {"messages": USER}),
    ("/v1/cache/flush", {}),
]


@pytest.mark.parametrize("path, body", GOOD)
def test_plain_requests_are_answered_as_described(server, path, body):
    answer = answer_of(server, path, "POST", body=body)
    assert answer.status_code == 200, answer.text


def answer_of(server, path, method, **parts):
    if "body" in parts:
        parts["media_type"] = "application/json"
    case = SCHEMA[path][method].Case(**parts)
    url = f"http://127.0.0.1:{server.port}"
    return case.call_and_validate(base_url=url, checks=CHECKS[:-1], timeout=60)


def test_an_entry_is_listed_pinned_and_removed_as_described(server):
    server.complete("A prompt of its own. " * 20, max_tokens=1)
    entry = answer_of(server, "/v1/cache", "GET").json()["entries"][-1]
    body = {"id": entry["id"]}
    for path in ("/v1/cache/pin", "/v1/cache/unpin"):
        answer = answer_of(server, path, "POST", body=body)
        assert answer.json()["id"] == entry["id"]
    answer = answer_of(server, "/v1/cache", "DELETE", query=body)
    assert answer.json()["entries"] == 1


def test_the_model_is_as_described(server):
    name = answer_of(server, "/v1/models", "GET").json()["data"][0]["id"]
    path = "/v1/models/{id}"
    answer = answer_of(server, path, "GET", path_parameters={"id": name})
    assert answer.json()["id"] == name


def test_the_document_is_the_one_in_docs(document):
    text = (ROOT / "docs" / "openapi.yaml").read_text()
    assert document == yaml.safe_load(text)


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("usage", [True, False])
def test_every_event_of_a_stream_is_described(server, document, chat, usage):
    name = "ChatChunk" if chat else "TextChunk"
    validator = jsonschema_rs.validator_for(
        {"$ref": f"#/components/schemas/{name}", **document}
    )
    body = {"stream": True, "n": 2, "logprobs": True, "top_logprobs": 2}
    if usage:
        body["stream_options"] = {"include_usage": True}
    if chat:
        body["messages"] = [{"role": "user", "content": "Count."}]
        path = "/v1/chat/completions"
    else:
        body["prompt"] = "One, two,"
        path = "/v1/completions"
    events = list(server.stream(path, body))
    assert len(events) >= 4
    for event in events:
        validator.validate(event)
    assert ("usage" in events[-1]) == usage
    assert "timings" in events[-1]


def test_what_asks_for_a_key_is_described(document, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("secret-1\n")
    keys.chmod(0o600)
    with Server("--api-key-file", keys) as guarded:
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                status, answer = call(
                    guarded, method.upper(), path.replace("{id}", "some"), {}
                )
                if operation.get("security") == []:
                    assert status == 200, path
                else:
                    assert status == 401, path
                    assert answer["error"]["code"] == "invalid_api_key"
        good(guarded, "GET", "/v1/models", key="secret-1")
