"""Logits come without a copy."""

import gc
import weakref

import numpy as np
import pytest

from afterglow import Error, generate_step, load, logits_stream

PROMPT = "The three primary colours are"


def test_the_memory_is_shared(model):
    stream = logits_stream(model, PROMPT)
    logits = stream.logits()
    assert logits.dtype == np.float32 and logits.flags.writeable
    assert not logits.flags.owndata
    again = stream.logits()
    other = np.from_dlpack(logits)
    assert np.shares_memory(logits, again)
    assert np.shares_memory(logits, other)
    logits[7] = 1234.5
    assert again[7] == other[7] == 1234.5


def test_it_outlives_all_else(path):
    model = load(path)[0]
    stream = logits_stream(model, PROMPT)
    logits = stream.logits()
    expected = logits.copy()
    gone = weakref.ref(model)
    stream.accept(1)
    stream.close()
    del stream, model
    gc.collect()
    assert gone() is None
    assert np.array_equal(logits, expected)


def test_writing_into_it_changes_what_is_chosen(model, tokenizer):
    prompt = tokenizer.encode(PROMPT)
    memory = []

    def write(tokens, logits):
        memory.append(logits)
        logits[0, 99] = 1e6
        return logits

    steps = generate_step(
        prompt, model, max_tokens=3, logits_processors=[write]
    )
    assert [token for token, _ in steps] == [99, 99, 99]
    assert all(not one.flags.owndata for one in memory)


def test_other_libraries_take_it(model):
    import mlx.core as mx

    logits = logits_stream(model, PROMPT).logits()
    for array in (mx.array(logits), mx.array(np.from_dlpack(logits))):
        assert mx.argmax(array).item() == logits.argmax()
        np.testing.assert_allclose(
            np.array(mx.exp(array - mx.logsumexp(array))).sum(), 1, atol=1e-3
        )


def test_a_stream_is_used_in_its_order(model):
    stream = logits_stream(model, PROMPT)
    with pytest.raises(ValueError, match="before its logits"):
        stream.accept(1)
    assert stream.cached_tokens == 0
    stream.logits()
    with pytest.raises(ValueError, match="vocabulary"):
        stream.accept(60000)
    stream.accept(5)
    stream.close()
    stream.close()
    with pytest.raises(Error, match="closed"):
        stream.logits()
