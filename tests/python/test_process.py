"""Threads, signals, forks and the interpreter's end."""

import contextlib
import gc
import threading
import time
import weakref
from textwrap import indent

import pytest
from conftest import MODEL
from texts import sentences

from afterglow import generate, load, logits_stream, stream_generate

LONG = sentences(350)  # about 5,000 tokens: many seconds to read
BEGIN = """
import os, sys, threading, time
from afterglow import generate, load, logits_stream, stream_generate
model, tokenizer = load(MODEL, threads=1)
print("loaded")
"""
# A thread that has taken some tokens and goes on.
TAKE_TOKENS = """
taken = threading.Semaphore(0)
def work():
    while True:
        for output in stream_generate(model, tokenizer, "Once", max_tokens=-1):
            taken.release()
threading.Thread(target=work, daemon=True).start()
for _ in range(20):
    assert taken.acquire(timeout=30)
"""


def test_other_threads_run_meanwhile(model, tokenizer):
    counts = []
    stop = threading.Event()

    def count():
        number = 0
        while not stop.is_set():
            number += 1
            if number % 1000 == 0:
                counts.append(time.monotonic())

    thread = threading.Thread(target=count)
    prompt = sentences(40) + " threads"
    start = time.monotonic()
    thread.start()
    try:
        generate(model, tokenizer, prompt, max_tokens=1)
    finally:
        end = time.monotonic()
        stop.set()
        thread.join()
    meanwhile = [one for one in counts if start < one < end]
    gaps = [b - a for a, b in zip(meanwhile, meanwhile[1:])]
    assert len(meanwhile) > 20
    assert max(gaps) < (end - start) / 2


def test_other_threads_run_while_a_history_is_asked_for(model, tokenizer):
    class Enough(Exception):
        pass

    reading, stop = threading.Event(), threading.Event()
    count = 0

    def run():
        nonlocal count
        while not stop.is_set():
            count += 1

    def told(done, total):
        reading.set()
        if stop.is_set():
            raise Enough

    def read():  # what the engine is at when it is asked
        with contextlib.suppress(Enough):
            generate(
                model, tokenizer, LONG + " asked", prompt_progress_callback=told
            )

    pairs = stream_generate(
        model, tokenizer, "Once", max_tokens=-1, return_cache=True
    )
    next(pairs)
    threads = [threading.Thread(target=one) for one in (run, read)]
    for thread in threads:
        thread.start()
    waits = []
    try:
        assert reading.wait(60)
        for _, cache in pairs:
            before, start = count, time.monotonic()
            length = len(cache)
            took, counted = time.monotonic() - start, count - before
            assert length > 0
            waits.append((took, counted))
            if len([one for one in waits if one[0] > 0.02]) == 3:
                break
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert all(counted > 0 for took, counted in waits if took > 0.02), waits
    assert any(took > 0.02 for took, _ in waits), waits


def test_threads_get_their_own_answers(model, tokenizer):
    prompts = [f"{name} is a city in" for name in ("Lyon", "Kyoto", "Lagos")]
    expected = [
        generate(model, tokenizer, one, max_tokens=8) for one in prompts
    ]
    answers = [None] * len(prompts)

    def ask(number):
        answers[number] = generate(
            model, tokenizer, prompts[number], max_tokens=8
        )

    threads = [
        threading.Thread(target=ask, args=(number,))
        for number in range(len(prompts))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == expected


@pytest.mark.parametrize(
    "call",
    [
        # While a long prompt is read.
        "generate(model, tokenizer, LONG, prompt_progress_callback=told)",
        "logits_stream(model, LONG, prompt_progress_callback=told).logits()",
        # While a long answer is made.
        """
for number, output in enumerate(stream_generate(
    model, tokenizer, "Once upon a time", max_tokens=-1,
    sampler=make_sampler(temp=1), logits_processors=
        make_logits_processors(logit_bias={t: -100 for t in
                                           tokenizer.eos_token_ids})
)):
    if number == 20:
        print("running")
""",
    ],
    ids=["prompt", "logits", "answer"],
)
def test_an_interrupt_comes_promptly(script, call):
    call = call.strip().replace("\n", "\n    ")
    process = script(
        f"""{BEGIN}
from afterglow import make_logits_processors, make_sampler
LONG = {LONG!r}
said = []
def told(done, total):
    if not said:
        said.append(done)
        print("running")
expected = generate(model, tokenizer, "One, two,", max_tokens=6)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", time.monotonic())
else:
    print("it ended by itself")
assert generate(model, tokenizer, "One, two,", max_tokens=6) == expected
print("usable")
"""
    )
    process.wait_for_line("running")
    sent = process.interrupt()
    output, _ = process.finish()
    word, when, usable = output.split()
    assert (word, usable) == ("interrupted", "usable")
    assert float(when) - sent < 10


def test_the_interpreter_may_end_while_a_thread_generates(script):
    script(
        f"""{BEGIN}
running = threading.Event()
def work():
    for output in stream_generate(
        model, tokenizer, {LONG!r},
        prompt_progress_callback=lambda *one: running.set(),
    ):
        pass
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
assert running.wait(30)
"""
    ).finish(20)


def test_the_interpreter_may_end_while_threads_take_tokens(script):
    script(
        f"""{BEGIN}
{TAKE_TOKENS}
"""
    ).finish(20)


@pytest.mark.parametrize(
    "end",
    [
        # A generator that is half way, held by a module.
        "stream = stream_generate(model, tokenizer, 'Once'); next(stream)",
        "stream = stream_generate(model, tokenizer, 'Once'); next(stream);"
        "stream.close()",
        "stream = stream_generate(model, tokenizer, 'Once')",
        # All that there is, but the stream, is gone.
        "stream = stream_generate(model, tokenizer, 'Once'); del model,"
        "tokenizer; import gc; gc.collect(); assert len(list(stream)) > 1",
        "stream = logits_stream(model, 'Once'); stream.logits(); del model",
        "text, cache = generate(model, tokenizer, 'Once', return_cache=True);"
        "del model, tokenizer; assert len(cache) > 1",
        # A cycle through a callback, which the interpreter's end breaks.
        "def told(*one): pass\n"
        "told.stream = logits_stream(model, 'Once',"
        "prompt_progress_callback=told); told.stream.logits()",
        "a, b = load(MODEL); sys.exit(0)",
        "raise SystemExit(0)",
    ],
)
def test_ends_without_leaks(script, end):
    script(f"{BEGIN}\n{end}").finish(30)


def test_a_fork_refuses_the_model_and_ends(script):
    output, _ = script(
        f"""{BEGIN}
from afterglow import Error
text, cache = generate(model, tokenizer, "Once", max_tokens=4,
                       return_cache=True)
stream = stream_generate(model, tokenizer, "Once upon", max_tokens=-1)
next(stream)
child = os.fork()
if child == 0:
    for use in (lambda: generate(model, tokenizer, "Once"),
                lambda: tokenizer.encode("a"), lambda: len(cache),
                lambda: next(stream)):
        try:
            use()
        except Error as error:
            assert error.code == "unavailable" and "fork" in str(error)
            print("refused")
    del stream, cache, model, tokenizer
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
next(stream)
assert generate(model, tokenizer, "Once", max_tokens=4) == text
"""
    ).finish(60)
    assert output.split() == ["loaded"] + ["refused"] * 4


def test_a_fork_may_load_its_own(script):
    output, _ = script(
        f"""{BEGIN}
expected = generate(model, tokenizer, "Once", max_tokens=4)
child = os.fork()
if child == 0:
    mine, its = load(MODEL, threads=1)
    assert generate(mine, its, "Once", max_tokens=4) == expected
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    ).finish(60)
    assert output.split() == ["loaded"]


def test_a_fork_closes_its_own_at_its_end(script, tmp_path):
    script(
        f"""{BEGIN}
child = os.fork()
if child == 0:
    model, tokenizer = load(MODEL, threads=1, prompt_cache_dir="kept")
    generate(model, tokenizer, {sentences(20)!r}, max_tokens=1)
{indent(TAKE_TOKENS, "    ")}
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    ).finish(60)
    mine, its = load(MODEL, prompt_cache_dir=tmp_path / "kept")
    outputs = list(stream_generate(mine, its, sentences(20), max_tokens=1))
    assert outputs[-1].cached_tokens == outputs[-1].prompt_tokens - 1


@pytest.mark.parametrize("kind", ["progress", "sampler", "processor", "logits"])
def test_an_abandoned_stream_in_a_cycle_ends(model, tokenizer, kind):
    class Reader:
        def told(self, done, total):
            pass

        def choose(self, logprobs):
            return logprobs.argmax()

        def change(self, tokens, logits):
            return logits

    reader = Reader()
    options = {
        "progress": {"prompt_progress_callback": reader.told},
        "sampler": {"sampler": reader.choose},
        "processor": {"logits_processors": [reader.change]},
        "logits": {"prompt_progress_callback": reader.told},
    }[kind]
    if kind == "logits":
        reader.stream = logits_stream(model, "Once", **options)
        reader.stream.logits()
    else:
        reader.stream = stream_generate(model, tokenizer, "Once", **options)
        next(reader.stream)
    gone = weakref.ref(reader)
    gc.collect()
    assert gone() is reader
    del reader, options
    gc.collect()
    assert gone() is None


def test_a_loaded_model_goes_when_it_is_dropped(path):
    model, tokenizer = load(path)
    gone = weakref.ref(model)
    stream = stream_generate(model, tokenizer, "Once", max_tokens=3)
    del model, tokenizer
    gc.collect()
    assert len(list(stream)) == 3
    gc.collect()
    assert gone() is None
