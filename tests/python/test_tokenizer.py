import pytest

from afterglow import load

MESSAGES = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": "Hello <|im_end|> é 🌊"},
]




def test_names_of_the_vocabulary(tokenizer):
    assert tokenizer.bos_token == "<|im_start|>"
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.eos_token_id in tokenizer.eos_token_ids
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") == (
        tokenizer.eos_token_id
    )
    assert tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|im_start|>"]) == [
        tokenizer.eos_token_id,
        tokenizer.bos_token_id,
    ]
    assert len(tokenizer) == tokenizer.vocab_size == 49152


def test_text_comes_back(tokenizer):
    text = "  Two  spaces, é, 🌊\n"
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    assert tokenizer.decode(tokens[0]) == tokenizer.decode(tokens[:1])
    marked = tokenizer.encode("a<|im_end|>")
    assert marked[-1] == tokenizer.eos_token_id
    assert tokenizer.decode(marked) == "a<|im_end|>"
    assert tokenizer.decode(marked, skip_special_tokens=True) == "a"
    for bad in ([-1], [60000]):
        with pytest.raises(ValueError):
            tokenizer.decode(bad)


def test_pieces_join_to_the_text(tokenizer):
    text = "A wave 🌊 and é."
    detokenizer = tokenizer.detokenizer
    pieces = []
    for token in tokenizer.encode(text):
        detokenizer.add_token(token)
        pieces.append(detokenizer.last_segment)
    detokenizer.finalize()
    pieces.append(detokenizer.last_segment)
    assert "".join(pieces) == detokenizer.text == text
    assert "\ufffd" not in "".join(pieces)


def test_chats_are_rendered_by_the_template(tokenizer):
    expected = (
        "<|im_start|>system\nYou are brief.<|im_end|>\n"
        "<|im_start|>user\nHello <|im_end|> é 🌊<|im_end|>\n"
    )
    text = tokenizer.apply_chat_template(MESSAGES, tokenize=False)
    assert text == expected
    text = tokenizer.apply_chat_template(
        MESSAGES, tokenize=False, add_generation_prompt=True
    )
    assert text == expected + "<|im_start|>assistant\n"
    tokens = tokenizer.apply_chat_template(MESSAGES)
    assert tokens == tokenizer.encode(expected, add_special_tokens=False)
    system = tokens[: tokens.system_tokens]
    assert tokenizer.decode(system).startswith(
        "<|im_start|>system\nYou are brief."
    )


@pytest.mark.parametrize(
    "name", ["continue_final_message", "return_dict", "return_tensors",
             "chat_template", "padding"],
)  # fmt: skip
def test_what_is_not_supported_is_refused(tokenizer, name):
    with pytest.raises(ValueError, match=name):
        tokenizer.apply_chat_template(MESSAGES, **{name: True})


def test_a_template_of_ones_own(path):
    template = (
        "{{ word }}{% for m in messages %}[{{ m.content }}]{% endfor %}"
        "{% for t in tools %}({{ t.name }}){% endfor %}"
    )
    _, tokenizer = load(path, chat_template=template)
    text = tokenizer.apply_chat_template(
        MESSAGES[:1], tools=[{"name": "clock"}], tokenize=False, word="Go"
    )
    assert text == "Go[You are brief.](clock)"
    _, tokenizer = load(
        path, chat_template="{{ raise_exception('only birds') }}"
    )
    with pytest.raises(ValueError, match="only birds"):
        tokenizer.apply_chat_template(MESSAGES)
