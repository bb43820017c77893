"""With a small memory limit, many long requests wait for each other, and the
process stays small."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from serving import Server
from texts import sentences

PAGE = 30 * 3 * 64 * 2 * 2 * 256  # bytes of KV of 256 tokens of the model
MIB = 1 << 20
CLIENTS = 6
LIMIT = 250 * MIB
# Program, tokenizer, buffers of sockets: what a limit of model, requests and
# cache does not count.
BESIDE = 20 * MIB


def resident(server: Server, which: str) -> int:
    """Bytes. which: "VmRSS", now; "VmHWM", at most so far."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    line = next(x for x in status.splitlines() if x.startswith(which + ":"))
    return int(line.split()[1]) * 1024


def forget_peak(server: Server) -> None:
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")


def complete(server: Server, prompt: str, max_tokens: int):
    return server.request(
        "POST",
        "/v1/completions",
        {"prompt": prompt, "max_tokens": max_tokens, "temperature": 0},
    )


def test_many_long_requests_stay_below_the_limit():
    prompts = [sentences(62, seed=700 + i) for i in range(CLIENTS)]
    with Server("--activations", "int8") as server:
        right = [complete(server, prompt, 8)[1] for prompt in prompts]
    tokens = right[0]["usage"]["prompt_tokens"]
    assert tokens > 900
    limit = LIMIT
    with Server(
        "--activations", "int8", "--memory-limit", limit,
        "--threads", 2,
    ) as server:  # fmt: skip
        complete(server, "Once", 2)
        idle = resident(server, "VmRSS")
        forget_peak(server)
        with ThreadPoolExecutor(CLIENTS) as pool:
            answers = list(
                pool.map(lambda text: complete(server, text, 8), prompts)
            )
        peak = resident(server, "VmHWM")
        # Nothing of this size is ever computed, however empty the server is.
        status, body = complete(server, sentences(100, seed=1), 7000)
    print(f"idle {idle / MIB:.0f} MiB, peak {peak / MIB:.0f} MiB")
    for (answered, got), expected in zip(answers, right):
        assert answered == 200
        assert got["choices"][0]["text"] == expected["choices"][0]["text"]
    assert peak < limit + BESIDE
    assert peak > idle + 2 * 4 * PAGE, "the requests waited for nothing"
    assert status == 400
    assert body["error"]["code"] == "memory_limit_exceeded"
    assert body["error"]["param"] == "max_tokens"
    assert " MB of memory" in body["error"]["message"]
