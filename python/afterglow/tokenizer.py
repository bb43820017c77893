"""A model's tokenizer, in the manner of transformers and mlx_lm."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, overload

from . import _arguments, _native

# Of transformers' apply_chat_template. They are no variables of templates, so
# they must not become some.
_NOT_SUPPORTED = {
    "chat_template",
    "continue_final_message",
    "max_length",
    "padding",
    "return_assistant_tokens_mask",
    "return_tensors",
    "tokenizer_kwargs",
    "truncation",
}


class Tokens(list[int]):
    """Tokens of a chat, whose first `system_tokens` are a system prompt, which
    the prompt cache keeps longer than what follows."""

    system_tokens: int = 0


class Detokenizer:
    """Text from tokens as they come, as mlx_lm's StreamingDetokenizer."""

    def __init__(self, model: _native.Model) -> None:
        self._model = model
        self.reset()

    def reset(self) -> None:
        self._stream = _native.Detokenizer(self._model)
        self.tokens: list[int] = []
        self.text = ""
        self._given = 0

    def add_token(self, token: int) -> None:
        self.tokens.append(_arguments.token("token", token))
        self.text += self._stream.push(self.tokens[-1])

    def finalize(self) -> None:
        self.text += self._stream.flush()

    @property
    def last_segment(self) -> str:
        """The text since this was last asked for."""
        segment = self.text[self._given :]
        self._given = len(self.text)
        return segment


class Tokenizer:
    """Belongs to one model. Safe to use from many threads at once."""

    def __init__(self, model: _native.Model) -> None:
        self._model = model
        self._info = model.info
        bos, eos, pad, unk = model.special_tokens()
        self.bos_token_id: int | None = bos
        self.eos_token_id: int | None = eos
        self.pad_token_id: int | None = pad
        self.unk_token_id: int | None = unk
        self._added_eos: set[int] = set()

    def __repr__(self) -> str:
        return f"Tokenizer({self._info.name}, {self.vocab_size} tokens)"

    def __len__(self) -> int:
        return self._info.vocab_size

    @property
    def vocab_size(self) -> int:
        return self._info.vocab_size

    @property
    def bos_token(self) -> str | None:
        return self._text_of(self.bos_token_id)

    @property
    def eos_token(self) -> str | None:
        return self._text_of(self.eos_token_id)

    @property
    def pad_token(self) -> str | None:
        return self._text_of(self.pad_token_id)

    @property
    def unk_token(self) -> str | None:
        return self._text_of(self.unk_token_id)

    @property
    def eos_token_ids(self) -> set[int]:
        """All tokens that end an answer."""
        return {*self._info.stop_tokens, *self._added_eos}

    def add_eos_token(self, token: str | int) -> None:
        """Another token that ends answers: its number or its text.

        Raises: ValueError for one that the vocabulary has not.
        """
        try:
            number: int | None = int(token)
        except ValueError:
            number = self._model.token_to_id(str(token))
        if number is None or not 0 <= number < self.vocab_size:
            raise ValueError(f"'{token}' is not a token for this tokenizer")
        self._added_eos.add(number)

    def encode(
        self, text: str, *, add_special_tokens: bool = True
    ) -> list[int]:
        """The tokens of a text; with add_special_tokens it begins and ends as
        the model expects. The text of a special token becomes that token."""
        return self._model.encode(text, add_special_tokens)

    def decode(
        self,
        token_ids: int | Iterable[int] | Any,
        *,
        skip_special_tokens: bool = False,
    ) -> str:
        """The text of tokens, or of one.

        Raises: ValueError for tokens that the vocabulary has not.
        """
        if isinstance(token_ids, int):
            token_ids = [token_ids]
        return self._model.decode(
            _arguments.tokens("token_ids", token_ids), skip_special_tokens
        )

    @overload
    def convert_tokens_to_ids(self, tokens: str) -> int | None: ...
    @overload
    def convert_tokens_to_ids(
        self, tokens: list[str] | tuple[str, ...]
    ) -> list[int | None]: ...
    def convert_tokens_to_ids(
        self, tokens: str | list[str] | tuple[str, ...]
    ) -> int | None | list[int | None]:
        """The numbers of tokens as the vocabulary writes them; for one that
        it has not the unknown token's, if there is one."""
        if isinstance(tokens, str):
            number = self._model.token_to_id(tokens)
            return self.unk_token_id if number is None else number
        return [self.convert_tokens_to_ids(one) for one in tokens]

    @property
    def detokenizer(self) -> Detokenizer:
        """A new one."""
        return Detokenizer(self._model)

    @overload
    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        add_generation_prompt: bool = False,
        tokenize: Literal[True] = True,
        return_dict: Literal[False] = False,
        **variables: Any,
    ) -> Tokens: ...
    @overload
    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        add_generation_prompt: bool = False,
        tokenize: Literal[False],
        return_dict: Literal[False] = False,
        **variables: Any,
    ) -> str: ...
    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        add_generation_prompt: bool = False,
        tokenize: bool = True,
        return_dict: Literal[False] = False,
        **variables: Any,
    ) -> Tokens | str:
        """The prompt of a chat by the model's template.

        conversation: OpenAI messages. variables: further ones that the
        template reads, such as enable_thinking.
        Raises: ValueError with the template's own message; for what
        transformers' method takes and this does not.
        """
        unsupported = _NOT_SUPPORTED & variables.keys()
        if return_dict:
            unsupported.add("return_dict")
        if unsupported:
            names = ", ".join(sorted(unsupported))
            raise ValueError(f"apply_chat_template does not support {names}")
        variables["add_generation_prompt"] = bool(add_generation_prompt)
        numbers, system = self._model.apply_chat_template(
            json.dumps(list(conversation)),
            json.dumps(list(tools)) if tools else "",
            json.dumps(variables),
        )
        if not tokenize:
            return self._rendered(numbers)
        tokens = Tokens(numbers)
        tokens.system_tokens = system
        return tokens

    def _rendered(self, tokens: list[int]) -> str:
        text = self._model.decode(tokens, False)
        if self._model.encode(text, False) != tokens:
            raise ValueError(
                "this model's tokens do not tell their text; use "
                "apply_chat_template with tokenize=True"
            )
        return text

    def _text_of(self, token: int | None) -> str | None:
        return None if token is None else self._model.decode([token], False)
