import copy
import pickle

import pytest
from texts import sentences

from afterglow import (
    Error,
    generate,
    load,
    load_cache,
    logits_stream,
    save_cache,
    stream_generate,
)

PROMPT = sentences(25)


@pytest.fixture(scope="module")
def answered(model, tokenizer):
    return generate(
        model, tokenizer, PROMPT, max_tokens=8, return_cache=True
    )


def test_holds_prompt_and_answer(answered, tokenizer):
    text, cache = answered
    prompt = tokenizer.encode(PROMPT)
    assert len(cache) == len(cache.tokens)
    assert cache.tokens[: len(prompt)] == prompt
    # The last token has no KV yet.
    answer = tokenizer.decode(cache.tokens[len(prompt) :])
    assert text.startswith(answer)
    assert cache.nbytes > len(cache) * 1000
    assert str(len(cache)) in repr(cache)


def test_is_a_value(model, tokenizer, answered):
    _, cache = answered
    before = cache.tokens
    for one in (copy.copy(cache), copy.deepcopy(cache)):
        assert one.tokens == cache.tokens
    texts = [
        generate(model, tokenizer, PROMPT + end, max_tokens=8,
                 cache_history=cache, return_cache=True)
        for end in (" One more.", " Another.", " One more.")
    ]  # fmt: skip
    assert texts[0][0] == texts[2][0]
    assert cache.tokens == before
    assert texts[0][1].tokens != texts[1][1].tokens


def test_cannot_be_pickled_and_says_what_to_do(answered):
    with pytest.raises(TypeError, match="save_cache"):
        pickle.dumps(answered[1])


def test_each_pair_has_the_history_of_its_time(model, tokenizer):
    pairs = list(stream_generate(
        model, tokenizer, PROMPT, max_tokens=5, return_cache=True
    ))  # fmt: skip
    lengths = [len(cache) for _, cache in pairs]
    assert lengths == sorted(lengths)
    assert len(tokenizer.encode(PROMPT)) <= lengths[0] < lengths[-2]
    text = generate(model, tokenizer, PROMPT, max_tokens=5)
    assert "".join(text for text, _ in pairs) == text


def test_a_file_continues_as_memory_does(path, answered, tmp_path):
    text, cache = answered
    file = tmp_path / "one.safetensors"
    save_cache(cache, filename=file, metadata={"model_id": "x", "who": "é"})
    read, metadata = load_cache(filename=str(file))
    assert metadata == {"model_id": "x", "who": "é"}
    assert read.tokens == cache.tokens
    model, tokenizer = load(path)
    outputs = list(stream_generate(
        model, tokenizer, PROMPT, max_tokens=8, cache_history=read
    ))  # fmt: skip
    assert "".join(one.text for one in outputs) == text
    assert outputs[-1].cached_tokens == outputs[-1].prompt_tokens - 1


def test_mlx_array_files_open(answered, tmp_path):
    import mlx.core as mx

    file = tmp_path / "one.safetensors"
    save_cache(answered[1], file)
    arrays = mx.load(str(file))
    keys = [one for one in arrays.values() if len(one.shape) == 4]
    assert {one.shape[2] for one in keys} == {len(answered[1])}


def test_bad_files_and_arguments(answered, tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        load_cache(tmp_path / "none.safetensors")
    with pytest.raises(OSError):
        save_cache(answered[1], tmp_path / "no" / "folder.safetensors")
    with pytest.raises(TypeError, match="strings"):
        save_cache(answered[1], tmp_path / "x", metadata={"a": 1})
    with pytest.raises(ValueError, match="afterglow.tokens"):
        save_cache(
            answered[1], tmp_path / "x", metadata={"afterglow.tokens": "1"}
        )
    file = tmp_path / "damaged.safetensors"
    save_cache(answered[1], file)
    data = bytearray(file.read_bytes())
    data[-100] ^= 1
    file.write_bytes(data)
    with pytest.raises(Error) as caught:
        load_cache(file)
    assert caught.value.code == "corrupt"


def test_logits_of_a_history_are_those_of_its_prompt(model, answered):
    _, cache = answered
    tokens = cache.tokens
    with logits_stream(model, tokens) as cold:
        expected = cold.logits().copy()
    with logits_stream(model, tokens, cache_history=cache) as warm:
        assert (warm.logits() == expected).all()
        assert warm.cached_tokens == len(tokens) - 1
        token = int(expected.argmax())
        warm.accept(token)
        warm.logits()
        assert warm.tokens == [*tokens, token]
        assert warm.cache_history().tokens == warm.tokens
