"""Requests with headers of one's own."""

import json

from openai import OpenAI


def openai_client(server):
    """A client that tells of the first answer, whatever it is."""
    return OpenAI(
        base_url=f"http://127.0.0.1:{server.port}/v1",
        api_key="none",
        max_retries=0,
        timeout=120,
    )


def call(server, method, path, body=None, key=None, headers=None):
    """One exchange: status, and the body as JSON where it is JSON.

    key: sent as `Authorization: Bearer key`.
    """
    headers = dict(headers or {})
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    connection = server.connect()
    try:
        connection.request(
            method, path, None if body is None else json.dumps(body), headers
        )
        response = connection.getresponse()
        text = response.read()
        if response.getheader("Content-Type") == "application/json":
            return response.status, json.loads(text)
        return response.status, text.decode()
    finally:
        connection.close()


def good(server, method, path, body=None, key=None, headers=None):
    status, answer = call(server, method, path, body, key, headers)
    assert status == 200, answer
    return answer


def complete(server, prompt, key=None, **options):
    """The answer to a plain continuation of one token."""
    body = {"prompt": prompt, "max_tokens": 1, "temperature": 0, **options}
    return good(server, "POST", "/v1/completions", body, key)


def entries(server, key=None, query=""):
    return good(server, "GET", "/v1/cache" + query, key=key)["entries"]
