"""The endpoints of llama-server that turn text into tokens and back."""

from calls import call, good

MESSAGES = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "Grüße! 你好 🙂?"},
]


def test_a_chat_reads_what_the_endpoints_say(server):
    prompt = good(server, "POST", "/apply-template", {"messages": MESSAGES})
    assert prompt["prompt"].endswith("<|im_start|>assistant\n")
    body = {"content": prompt["prompt"], "with_pieces": True}
    pieces = good(server, "POST", "/tokenize", body)["tokens"]
    body = {"messages": MESSAGES, "max_tokens": 1}
    answer = good(server, "POST", "/v1/chat/completions", body)
    assert answer["usage"]["prompt_tokens"] == len(pieces)
    as_bytes = b"".join(
        one["piece"].encode()
        if isinstance(one["piece"], str)
        else bytes(one["piece"])
        for one in pieces
    )
    assert as_bytes.decode() == prompt["prompt"]
    tokens = {"tokens": [one["id"] for one in pieces]}
    text = good(server, "POST", "/detokenize", tokens)
    assert text == {"content": prompt["prompt"]}


def test_special_tokens_are_found_only_where_wanted(server):
    body = {"content": "<|im_end|>"}
    assert len(good(server, "POST", "/tokenize", body)["tokens"]) == 1
    body["parse_special"] = False
    assert len(good(server, "POST", "/tokenize", body)["tokens"]) > 1


def test_wrong_members_are_named(server):
    for path, body, param in (
        ("/tokenize", {"content": 3}, "content"),
        ("/detokenize", {"tokens": [10**9]}, "tokens"),
        ("/apply-template", {"messages": MESSAGES, "extra": 1}, "extra"),
        ("/apply-template", {"messages": MESSAGES, "role_mapping": {"a": "b"}},
         "role_mapping"),
    ):  # fmt: skip
        status, answer = call(server, "POST", path, body)
        assert status == 400
        assert answer["error"]["param"] == param
