import dataclasses
import subprocess

import numpy as np
import pytest
from conftest import MODEL, PROGRAM
from texts import sentences

from afterglow import (
    Error,
    StepOutput,
    generate,
    generate_step,
    load,
    make_logits_processors,
    make_sampler,
    stream_generate,
)

PROMPT = "The three primary colours are"


def text_of(outputs):
    return "".join(output.text for output in outputs)


def test_says_what_the_program_says(model, tokenizer):
    run = subprocess.run(
        [PROGRAM, "generate", "--model", MODEL, "--prompt", PROMPT,
         "--ignore-chat-template", "--max-tokens", "24", "--temp", "0"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    text = generate(model, tokenizer, PROMPT, max_tokens=24)
    assert text
    assert run.stdout == text + "\n"


def test_outputs_have_the_fields_of_mlx_lm(model, tokenizer):
    outputs = list(stream_generate(model, tokenizer, PROMPT, max_tokens=5))
    last = outputs[-1]
    assert len(outputs) == 5
    assert [one.finish_reason for one in outputs] == [None] * 4 + ["length"]
    assert [one.generation_tokens for one in outputs] == [1, 2, 3, 4, 5]
    assert all(one.from_draft is False for one in outputs)
    assert last.prompt_tokens == len(tokenizer.encode(PROMPT))
    assert 0 <= last.cached_tokens < last.prompt_tokens
    assert last.prompt_tps > 0 and last.generation_tps > 0
    assert 0.05 < last.peak_memory < 50
    assert tokenizer.decode([one.token for one in outputs]) == text_of(outputs)
    names = {field.name for field in dataclasses.fields(StepOutput)}
    theirs = {"text", "token", "from_draft", "prompt_tokens", "prompt_tps",
              "generation_tokens", "generation_tps", "peak_memory",
              "finish_reason"}  # fmt: skip
    assert theirs <= names


def test_the_token_that_ends_an_answer_is_told(model, tokenizer):
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Say yes."}], add_generation_prompt=True
    )
    last = list(stream_generate(model, tokenizer, prompt, max_tokens=-1))[-1]
    assert last.finish_reason == "stop"
    assert last.token in tokenizer.eos_token_ids


def test_an_added_end_ends_answers(loaded, path):
    model, tokenizer = load(path)
    outputs = list(stream_generate(model, tokenizer, PROMPT, max_tokens=8))
    end = outputs[3].token
    assert end not in {one.token for one in outputs[:3]}
    tokenizer.add_eos_token(end)
    assert end in tokenizer.eos_token_ids
    again = list(stream_generate(model, tokenizer, PROMPT, max_tokens=8))
    assert text_of(again) == text_of(outputs[:3])
    assert again[-1].finish_reason == "stop"
    assert again[-1].token == end


def test_stop_texts_end_the_answer(model, tokenizer):
    whole = generate(model, tokenizer, PROMPT, max_tokens=24)
    stop = whole[10:14]
    for given in (stop, [stop, "never"]):
        cut = generate(model, tokenizer, PROMPT, max_tokens=24, stop=given)
        assert cut == whole[: whole.index(stop)]


def test_prompts_of_all_kinds_are_the_same(model, tokenizer):
    import mlx.core as mx

    tokens = tokenizer.encode(PROMPT)
    expected = generate(model, tokenizer, PROMPT, max_tokens=8)

    class OnlyDlpack:
        def __init__(self):
            self.array = np.array(tokens)

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    for prompt in (tokens, tuple(tokens), iter(tokens), np.array(tokens),
                   np.array(tokens, np.uint16), mx.array(tokens),
                   OnlyDlpack()):  # fmt: skip
        assert generate(model, tokenizer, prompt, max_tokens=8) == expected


@pytest.mark.parametrize(
    "prompt, error, words",
    [
        ([], ValueError, "prompt"),
        ([1.5], TypeError, "integer"),
        ([True], TypeError, "bool"),
        ([-1], ValueError, "0 or more"),
        ([1 << 40], ValueError, "no token"),
        ([60000], ValueError, "60000"),
        (b"text", TypeError, "bytes"),
        ({1: 2}, TypeError, "dict"),
        (7, TypeError, "int"),
        (np.array([1.0]), TypeError, "float64"),
        (np.array([[1]]), ValueError, "dimension"),
        (np.array([-1]), ValueError, "no tokens"),
    ],
)
def test_bad_prompts_are_refused(model, tokenizer, prompt, error, words):
    with pytest.raises(error, match=words):
        generate(model, tokenizer, prompt)


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({"kv_bits": 4}, TypeError, "kv_bits"),
        ({"draft_model": None}, TypeError, "draft_model"),
        ({"prompt_cache": []}, TypeError, "prompt_cache"),
        ({"max_tokens": 0}, ValueError, "max_tokens"),
        ({"max_tokens": -2}, ValueError, "max_tokens"),
        ({"max_tokens": 1.5}, TypeError, "max_tokens"),
        ({"sampler": 3}, TypeError, "sampler"),
        ({"stop": ""}, ValueError, "stop"),
        ({"stop": [1]}, TypeError, "stop"),
        ({"cache_history": 3}, TypeError, "incompatible"),
        ({"sampler": make_sampler(temp=-1)}, ValueError, "temperature"),
        ({"top_logprobs": -1}, ValueError, "top_logprobs"),
    ],
)
@pytest.mark.parametrize("function", [generate, stream_generate])
def test_what_is_not_supported_is_refused(
    model, tokenizer, function, options, error, words
):
    with pytest.raises(error, match=words):
        function(model, tokenizer, PROMPT, **options)


def test_another_tokenizer_is_refused(model, tokenizer, path):
    with pytest.raises(TypeError, match="tokenizer"):
        generate(model, None, PROMPT)
    _, other = load(path)
    with pytest.raises(ValueError, match="another"):
        generate(model, other, PROMPT)


def test_functions_of_python_choose_tokens(model, tokenizer):
    import mlx.core as mx

    expected = generate(model, tokenizer, PROMPT, max_tokens=8)
    shapes = set()

    def numpy(logprobs):
        shapes.add((logprobs.shape, logprobs.dtype.name))
        assert abs(np.exp(logprobs).sum() - 1) < 1e-3
        return np.argmax(logprobs, axis=-1)

    def mlx(logprobs):
        return mx.argmax(mx.array(logprobs), axis=-1)

    for sampler in (numpy, mlx, lambda one: int(one.argmax())):
        text = generate(model, tokenizer, PROMPT, max_tokens=8, sampler=sampler)
        assert text == expected
    assert shapes == {((1, tokenizer.vocab_size), "float32")}

    for bad, error in (
        (lambda one: None, TypeError),
        (lambda one: 60000, ValueError),
        (lambda one: [1, 2], ValueError),
        (lambda one: 1 / 0, ZeroDivisionError),
    ):
        with pytest.raises(error):
            generate(model, tokenizer, PROMPT, max_tokens=8, sampler=bad)


def test_functions_of_python_change_logits(model, tokenizer):
    import mlx.core as mx

    first = next(stream_generate(model, tokenizer, PROMPT)).token
    seen = []

    def in_place(tokens, logits):
        seen.append(tokens.tolist())
        logits[:, first] = -np.inf
        return logits

    def another(tokens, logits):
        logits = mx.array(logits)
        logits[:, first] = -mx.inf
        return logits

    for processor in (in_place, another):
        outputs = list(stream_generate(
            model, tokenizer, PROMPT, max_tokens=4,
            logits_processors=[processor],
        ))  # fmt: skip
        assert first not in [one.token for one in outputs]
    prompt = tokenizer.encode(PROMPT)
    assert seen[0] == prompt
    assert [len(one) - len(prompt) for one in seen] == [0, 1, 2, 3]

    for bad, error in (
        (lambda tokens, logits: None, TypeError),
        (lambda tokens, logits: logits[:, 1:], ValueError),
        (lambda tokens, logits: 1 / 0, ZeroDivisionError),
    ):
        with pytest.raises(error):
            generate(model, tokenizer, PROMPT, logits_processors=[bad])


def test_what_a_function_kept_stays_as_it_was(model, tokenizer):
    kept = []

    def keep(tokens, logits):
        kept.append((logits, logits.copy()))
        return logits

    generate(model, tokenizer, PROMPT, max_tokens=4, logits_processors=[keep])
    assert len(kept) == 4
    assert all(np.array_equal(one, copy) for one, copy in kept)
    assert not np.array_equal(kept[0][0], kept[1][0])


def test_seeds_draw_the_same_again(model, tokenizer):
    def draw(seed):
        sampler = make_sampler(temp=1.0, top_p=0.95, top_k=50, seed=seed)
        return generate(
            model, tokenizer, PROMPT, max_tokens=12, sampler=sampler
        )

    assert draw(1) == draw(1)
    assert len({draw(seed) for seed in (1, 2, 3)}) > 1


def test_penalties_work_in_the_library_and_by_call(model, tokenizer):
    (penalties,) = make_logits_processors(
        logit_bias={5: 3.0}, repetition_penalty=1.7, frequency_penalty=0.5
    )
    assert make_logits_processors() == []

    def by_call(tokens, logits):
        return penalties(tokens, logits)

    def run(*processors):
        return generate(
            model, tokenizer, PROMPT, max_tokens=24,
            logits_processors=list(processors),
        )  # fmt: skip

    assert run(penalties) == run(by_call)
    assert run(penalties) != run()


def test_generate_step_gives_what_stream_generate_gives(model, tokenizer):
    for sampler in (None, make_sampler(temp=0.8, min_p=0.02, seed=7)):
        options = {
            "max_tokens": 8,
            "sampler": sampler,
            "logits_processors": make_logits_processors(repetition_penalty=1.2),
        }
        outputs = list(stream_generate(
            model, tokenizer, PROMPT, logprobs=True, top_logprobs=3, **options
        ))  # fmt: skip
        steps = list(generate_step(tokenizer.encode(PROMPT), model, **options))
        assert [token for token, _ in steps] == [one.token for one in outputs]
        for (_, logprobs), output in zip(steps, outputs):
            np.testing.assert_array_equal(logprobs, output.logprobs)
            best = np.argsort(-logprobs)[:3]
            assert [token for token, _ in output.top_logprobs] == best.tolist()
            np.testing.assert_allclose(
                [value for _, value in output.top_logprobs],
                logprobs[best],
                atol=1e-4,
            )


def test_generate_step_goes_on_behind_an_end(model, tokenizer):
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Say yes."}], add_generation_prompt=True
    )
    answer = list(stream_generate(model, tokenizer, prompt, max_tokens=-1))
    steps = generate_step(prompt, model, max_tokens=len(answer) + 5)
    tokens = [token for token, _ in steps]
    assert tokens[: len(answer)] == [one.token for one in answer]
    assert len(tokens) == len(answer) + 5


def test_logprobs_are_told_only_when_asked_for(model, tokenizer):
    output = next(stream_generate(model, tokenizer, PROMPT))
    with pytest.raises(ValueError, match="logprobs=True"):
        output.logprobs


def test_progress_is_told(model, tokenizer):
    told = []
    prompt = sentences(20) + " progress"
    generate(
        model, tokenizer, prompt, max_tokens=1,
        prompt_progress_callback=lambda *one: told.append(one),
    )  # fmt: skip
    total = len(tokenizer.encode(prompt))
    assert told[-1] == (total, total)
    assert [one[0] for one in told] == sorted(one[0] for one in told)

    def fail(done, total):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        generate(model, tokenizer, prompt, prompt_progress_callback=fail)


def test_verbose_prints_text_and_statistics(model, tokenizer, capfd):
    text = generate(model, tokenizer, PROMPT, verbose=True, max_tokens=6)
    output, errors = capfd.readouterr()
    assert output == text + "\n"
    assert "Generation: 6 tokens" in errors


def test_a_closed_model_says_so(path):
    model, tokenizer = load(path)
    assert model.close() is True
    with pytest.raises(Error) as caught:
        generate(model, tokenizer, PROMPT)
    assert caught.value.code == "unavailable"
    assert isinstance(caught.value, RuntimeError)


def test_bad_models_are_told_by_their_kind(tmp_path, path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.gguf")
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(Error) as caught:
        load(damaged)
    assert caught.value.code == "corrupt"
    with pytest.raises(ValueError, match="backend"):
        load(path, backend="tpu")
    with pytest.raises(ValueError, match="prompt_cache_ttl"):
        load(path, prompt_cache_ttl=float("nan"))
    with pytest.raises(TypeError, match="adapter_path"):
        load(path, adapter_path="x")


def test_prompts_are_kept_over_restarts(path, tmp_path):
    prompt = sentences(20)
    model, tokenizer = load(path, prompt_cache_dir=tmp_path)
    first = list(stream_generate(model, tokenizer, prompt, max_tokens=4))
    assert first[-1].cached_tokens == 0
    assert model.close()
    model, tokenizer = load(path, prompt_cache_dir=str(tmp_path))
    second = list(stream_generate(model, tokenizer, prompt, max_tokens=4))
    assert second[-1].cached_tokens == second[-1].prompt_tokens - 1
    assert text_of(second) == text_of(first)
