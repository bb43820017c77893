"""Requests that are wrong, made from good ones by a seeded generator.

Each mutation is of a kind that leaves no doubt: what it makes is not JSON,
not what a field takes, or not HTTP, whatever the dice say.
"""

import json
import random

CHAT = {
    "model": "any",
    "messages": [
        {"role": "system", "content": "Be brief. \u00e9\u4f60\U0001f600"},
        {"role": "user", "content": "What is two and two?"},
    ],
    "max_tokens": 1,
    "temperature": 0.5,
    "top_p": 0.9,
    "stop": ["\n", "END"],
    "logit_bias": {"17": -1.5},
    "stream": False,
    "seed": 7,
}
TEXT = {"prompt": "Once upon a time", "max_tokens": 1, "temperature": 0}
GOOD = {
    "/v1/chat/completions": CHAT,
    "/chat/completions": CHAT,
    "/v1/completions": TEXT,
}

# What a member does not take.
WRONG = {
    "messages": [
        "hi", {}, [], 3, True, [1], ["hi"], [[]], [None], [{}],
        [{"role": 5, "content": "x"}], [{"content": "x"}],
        [{"role": "user", "content": 5}],
        [{"role": "user", "content": {"type": "text"}}],
        [{"role": "user", "content": [{"type": "image_url"}]}],
        [{"role": "user", "content": [5]}],
        [{"role": "user", "content": "x"}, 7],
    ],
    "prompt": [{}, [], 3, True, [1.5], [True], [-1], [2**40], [{}], ["a", 5]],
    "max_tokens": [0, -2, 1.5, "many", True, [], {}, 2**70, -(2**70)],
    "temperature": [-1, "hot", True, [], {}, -1e300],
    "top_p": [1.5, -0.1, "x", False, [0.5]],
    "top_k": [-1, 1.5, "x", {}],
    "min_p": [2, -1, "x"],
    "repetition_penalty": [-1, "x", []],
    "presence_penalty": ["x", [], True],
    "seed": ["x", 1.5, [], {}],
    "stop": [5, True, {"a": 1}, [1], [["a"]], ["x" * 5000], ["a"] * 100],
    "stream": [1, "yes", [], {}],
    "stream_options": [5, "x", [], {"include_usage": "x"}],
    "logit_bias": [5, "x", [1], {"x": 1}, {"1": "y"}, {"1": []}, {"-3": 1}],
    "logprobs": ["x", [], {}, 2.5],
    "top_logprobs": [21, -1, 1.5, "x"],
    "xtc_probability": [2, -1, "x"],
    "xtc_threshold": [0.6, -1, "x"],
    "cache_prompt": [1, "x", []],
    "cache": [5, "x", {"read": 5}, {"what": True}],
    "prompt_cache_key": [5, [], {}],
}  # fmt: skip


def is_json(data: bytes) -> bool:
    """Whether Python's reader, which takes more than JSON, takes this."""
    try:
        json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return True


def encode(body, dice: random.Random) -> bytes:
    return json.dumps(
        body,
        ensure_ascii=dice.random() < 0.5,
        indent=dice.choice([None, None, 1]),
    ).encode()


def broken_json(good: dict, dice: random.Random) -> bytes:
    """Bytes that are no JSON."""
    text = encode(good, dice)
    while True:
        data = bytearray(text)
        for _ in range(dice.choice([1, 1, 2, 5, 20])):
            at = dice.randrange(len(data))
            kind = dice.randrange(6)
            if kind == 0:
                del data[at + 1 :]
            elif kind == 1:
                data[at] = dice.randrange(256)
            elif kind == 2:
                data.insert(at, dice.choice(b'{}[],:"\\\x00\x1f\xff\x80ntf-+.e9'))
            elif kind == 3:
                end = min(len(data), at + dice.randrange(1, 30))
                del data[at:end]
            elif kind == 4:
                end = min(len(data), at + dice.randrange(1, 30))
                data[at:at] = data[at:end]
            else:
                data[at:at] = dice.choice(
                    [b"\\ud800", b"1e", b"//", b"/*", b"'", b"\xc0\xaf", b"]" * 9]
                )
            data = data or bytearray(b"{")
        if not is_json(bytes(data)):
            return bytes(data)


def wrong_member(good: dict, dice: random.Random) -> bytes:
    """JSON with a member that has the wrong type or range."""
    names = [n for n in WRONG if n in good or n not in ("messages", "prompt")]
    name = dice.choice(names)
    members = list({**good, name: dice.choice(WRONG[name])}.items())
    dice.shuffle(members)
    return encode(dict(members), dice)


def wrong_shape(good: dict, dice: random.Random) -> bytes:
    """JSON that is no such request at all."""
    kind = dice.randrange(7)
    if kind == 0:
        return encode(dice.choice([None, 1, "x", True, [], [good], {}]), dice)
    if kind == 1:  # a member that nobody knows
        name = "".join(dice.choices("abcxyz_\u00e9\x00", k=dice.randrange(1, 20)))
        return encode({**good, "q" + name: dice.choice([0, "", [], {}])}, dice)
    if kind == 2:  # a member twice
        text = encode(good, dice).lstrip(b"{ \n")
        return b'{"max_tokens": 1, "' + b"max_tokens" + b'": 1, ' + text
    if kind == 3:  # without what it needs
        lost = {k: v for k, v in good.items() if k not in ("messages", "prompt")}
        return encode(lost, dice)
    if kind == 4:  # nested too deep
        depth = dice.choice([65, 100, 5000, 100_000])
        opening, closing = dice.choice([(b"[", b"]"), (b'{"a":', b"}")])
        tail = closing * depth if dice.random() < 0.5 else b""
        return b'{"prompt": ' + opening * depth + b"1" + tail + b"}"
    if kind == 5:  # numbers that no computer has
        number = dice.choice([b"1e999", b"-1e400", b"NaN", b"Infinity", b"0x10"])
        return b'{"prompt": "a", "max_tokens": 1, "temperature": ' + number + b"}"
    # half a character
    return b'{"max_tokens": 1, "prompt": "' + dice.choice(
        [b"\\ud800", b"\\udc00\\ud800", b"\xed\xa0\x80", b"\xff", b"\xc3"]
    ) + b'"}'


def framed(method: str, path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def well_framed(dice: random.Random) -> bytes:
    """Good HTTP that asks for what does not exist or cannot be meant."""
    path = dice.choice(list(GOOD))
    kind = dice.randrange(10)
    if kind < 4:
        return framed("POST", path, broken_json(GOOD[path], dice))
    if kind < 7:
        return framed("POST", path, wrong_member(GOOD[path], dice))
    if kind < 9:
        return framed("POST", path, wrong_shape(GOOD[path], dice))
    methods = ["GET", "PUT", "PATCH", "TRACE", "PURGE", "DELETE", "LINK"]
    if dice.random() < 0.5:
        return framed(dice.choice(methods), path, b"")
    nowhere = "/" + "".join(dice.choices("abc/.%20~", k=20)) + "q"
    return framed("POST", nowhere, encode(TEXT, dice))


def bad_http(dice: random.Random) -> bytes:
    """Bytes that no HTTP/1.1 server may take for a request."""
    body = json.dumps(TEXT).encode()
    host = "Host: localhost\r\n"
    size = f"Content-Length: {len(body)}\r\n"
    line = "POST /v1/completions HTTP/1.1\r\n"
    chunked = "Transfer-Encoding: chunked\r\n"

    def junk(letters: str, most: int) -> str:
        return "".join(dice.choices(letters, k=dice.randrange(1, most)))

    head = dice.choice(
        [
            lambda: junk("()<>@,;:\\\"[]{}\t", 9) + line + host + size,
            lambda: f"POST /{junk(chr(1) + chr(127) + chr(9), 9)} HTTP/1.1\r\n"
            + host + size,
            lambda: f"POST / HTTP/{dice.choice(['2.0', '1.2', '9.9', '1', 'x'])}"
            + "\r\n" + host + size,
            lambda: "POST /\r\n" + host + size,
            lambda: "POST  / HTTP/1.1\r\n" + host + size,
            lambda: line + size,
            lambda: line + host + host + size,
            lambda: line + host + size + junk("abc", 9) + "\r\n",
            lambda: line + host + size + junk("abc", 9) + " : x\r\n",
            lambda: line + host + size + ": x\r\n",
            lambda: line + host + size + f"a{junk('()@,;[]', 9)}b: x\r\n",
            lambda: line + host + size + f"a: {chr(dice.randrange(1, 9))}\r\n",
            lambda: line + host + "Content-Length: "
            + dice.choice(["-1", "+5", "5x", "0x5", "", "1e3", "9" * 30]) + "\r\n",
            lambda: line + host + size + "Content-Length: 1\r\n",
            lambda: line + host + size + size,
            lambda: line + host + f"Content-Length: {len(body)}, {len(body)}\r\n",
            lambda: line + host + size + chunked,
            lambda: line + host + chunked + size,
            lambda: line + host + "Transfer-Encoding: "
            + dice.choice(["gzip", "identity", "chunked, gzip", "xchunked"])
            + "\r\n",
            lambda: line + host + f"Content-Length: {dice.randrange(33 << 20, 1 << 60)}\r\n",
            lambda: line + host + size + f"Expect: {junk('xyz', 9)}\r\n",
            lambda: line + host + size + "a: " + "x" * dice.randrange(17_000, 40_000)
            + "\r\n",
            lambda: line + host + size + "a: b\r\n" * dice.randrange(4_000, 9_000),
        ]
    )()  # fmt: skip
    if dice.random() < 0.2:
        size_line = dice.choice(
            ["x", "-1", "g0", "1" * 20, " ", ";", "ffffffffffff", "5 5"]
        )
        head = line + host + chunked
        body = f"{size_line}\r\n".encode() + body
    return (head + "\r\n").encode("latin-1") + body


def flipped(dice: random.Random) -> bytes:
    """A good request of one token with some bytes changed: perhaps still
    good."""
    path = dice.choice(list(GOOD))
    data = bytearray(framed("POST", path, encode(GOOD[path], dice)))
    for _ in range(dice.choice([1, 1, 2, 4, 16])):
        at = dice.randrange(len(data))
        kind = dice.randrange(3)
        if kind == 0:
            data[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            data.insert(at, dice.randrange(256))
        else:
            del data[at]
    return bytes(data)
