"""Random requests, as the API's own description has them and as it forbids
them: nothing fails inside, and every answer is one that it describes."""

import json

import jsonschema_rs
import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, settings
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
MOST = {"max_tokens": 2, "max_completion_tokens": 2, "n": 2}
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


@pytest.fixture(scope="module")
def api(server, document):
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=f"http://127.0.0.1:{server.port}")
    return schema


schema = schemathesis.pytest.from_fixture("api")


def bound(body):
    """Makes a valid request a small one."""
    if not isinstance(body, dict):
        return
    for name, most in MOST.items():
        if type(body.get(name)) is int and body[name] > most:
            body[name] = most
    if isinstance(body.get("prompt"), list):
        body["prompt"] = body["prompt"][:100]


@schema.parametrize()
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_described(case):
    bound(case.body)
    case.call_and_validate(checks=CHECKS, timeout=60)


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
