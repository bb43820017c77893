"""How tokens are chosen: mlx_lm.sample_utils' names. What is made here stands
for parameters of the library's own sampler, which does the work; it can be
called like any other sampler or processor, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _arguments, _native

Floats = npt.NDArray[np.float32]
Tokens = npt.NDArray[np.int32]

#: Chooses a token. logprobs: [1, vocab_size]. It returns an integer, or an
#: array of any library with one.
SamplerFunction = Callable[[Floats], Any]
#: Changes logits. tokens: prompt and answer so far; logits: [1, vocab_size].
#: It returns the logits, the same array or another.
LogitsProcessor = Callable[[Tokens, Floats], Any]


@dataclass(frozen=True)
class Sampler:
    """What make_sampler returns."""

    temp: float = 0.0
    top_p: float = 0.0
    min_p: float = 0.0
    min_tokens_to_keep: int = 1
    top_k: int = 0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    xtc_special_tokens: tuple[int, ...] = ()
    seed: int | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type == "float":
                _arguments.number(field.name, value)
            elif field.type == "int":
                _arguments.integer(field.name, value)
        if self.min_tokens_to_keep < 1:
            raise ValueError("min_tokens_to_keep must be 1 or more")
        if self.seed is not None:
            _arguments.integer("seed", self.seed)

    def __call__(self, logprobs: Any, position: int = 0) -> int:
        """One token. The draw depends on the seed and the position."""
        row = np.ascontiguousarray(logprobs, dtype=np.float32).reshape(-1)
        params = _native.SamplingParams()
        self._fill(params)
        return _native.sample(params, row, position)

    def _fill(self, params: _native.SamplingParams) -> None:
        params.temperature = self.temp
        params.top_p = self.top_p if self.top_p > 0 else 1.0
        params.min_p = self.min_p
        params.min_tokens_to_keep = self.min_tokens_to_keep
        params.top_k = self.top_k
        params.xtc_probability = self.xtc_probability
        params.xtc_threshold = self.xtc_threshold
        params.xtc_special_tokens = list(self.xtc_special_tokens)
        params.seed = self.seed


@dataclass(frozen=True)
class Penalties:
    """What make_logits_processors returns one of: bias, then penalties."""

    logit_bias: tuple[tuple[int, float], ...] = ()
    repetition_penalty: float = 0.0
    repetition_context_size: int = 20
    presence_penalty: float = 0.0
    presence_context_size: int = 20
    frequency_penalty: float = 0.0
    frequency_context_size: int = 20

    def __call__(self, tokens: Any, logits: Any) -> Floats:
        """Changes the logits in place if they are a contiguous array of
        32-bit numbers of numpy's."""
        out = np.ascontiguousarray(logits, dtype=np.float32)
        params = _native.SamplingParams()
        self._fill(params)
        _native.process(
            params, out.reshape(-1), _arguments.tokens("tokens", tokens)
        )
        return out

    def _fill(self, params: _native.SamplingParams) -> None:
        params.logit_bias = list(self.logit_bias)
        params.repetition_penalty = self.repetition_penalty
        params.repetition_context_size = self.repetition_context_size
        params.presence_penalty = self.presence_penalty
        params.presence_context_size = self.presence_context_size
        params.frequency_penalty = self.frequency_penalty
        params.frequency_context_size = self.frequency_context_size


def make_sampler(
    temp: float = 0.0,
    top_p: float = 0.0,
    min_p: float = 0.0,
    min_tokens_to_keep: int = 1,
    top_k: int = 0,
    xtc_probability: float = 0.0,
    xtc_threshold: float = 0.1,
    xtc_special_tokens: Iterable[int] | None = None,
    *,
    seed: int | None = None,
) -> Sampler:
    """A sampler. temp 0 takes the most likely token; a value of 0 switches a
    part off. seed: draws depend on it and the token's position alone; None:
    other ones each time."""
    return Sampler(
        _arguments.number("temp", temp),
        _arguments.number("top_p", top_p),
        _arguments.number("min_p", min_p),
        _arguments.integer("min_tokens_to_keep", min_tokens_to_keep),
        _arguments.integer("top_k", top_k),
        _arguments.number("xtc_probability", xtc_probability),
        _arguments.number("xtc_threshold", xtc_threshold),
        tuple(
            _arguments.tokens("xtc_special_tokens", xtc_special_tokens or ())
        ),
        seed,
    )


def make_logits_processors(
    logit_bias: Mapping[int, float] | None = None,
    repetition_penalty: float | None = None,
    repetition_context_size: int | None = 20,
    presence_penalty: float | None = None,
    presence_context_size: int | None = 20,
    frequency_penalty: float | None = None,
    frequency_context_size: int | None = 20,
) -> list[LogitsProcessor]:
    """Processors for those that are asked for: none, or one for all."""

    def penalty(name: str, value: float | None) -> float:
        return 0.0 if value is None else _arguments.number(name, value)

    def size(name: str, value: int | None) -> int:
        return 20 if value is None else _arguments.integer(name, value)

    one = Penalties(
        tuple(
            (_arguments.token("logit_bias", token), float(bias))
            for token, bias in (logit_bias or {}).items()
        ),
        penalty("repetition_penalty", repetition_penalty),
        size("repetition_context_size", repetition_context_size),
        penalty("presence_penalty", presence_penalty),
        size("presence_context_size", presence_context_size),
        penalty("frequency_penalty", frequency_penalty),
        size("frequency_context_size", frequency_context_size),
    )
    does_nothing = not (
        one.logit_bias
        or one.repetition_penalty
        or one.presence_penalty
        or one.frequency_penalty
    )
    return [] if does_nothing else [one]


def to_params(
    sampler: Sampler | None, penalties: Penalties | None
) -> _native.SamplingParams:
    params = _native.SamplingParams()
    if sampler is not None:
        sampler._fill(params)
    if penalties is not None:
        penalties._fill(params)
    return params


def call_sampler(sampler: SamplerFunction, logprobs: Floats) -> int:
    """What it chooses. logprobs: [vocab_size]."""
    chosen = sampler(logprobs[None])
    if not isinstance(chosen, int):
        array = np.asarray(chosen)
        if array.size != 1:
            raise ValueError(
                f"a sampler must return one token, not {array.size}"
            )
        chosen = array.reshape(-1)[0]
    return _arguments.token("the sampler's token", chosen)


def call_processors(
    processors: Iterable[LogitsProcessor], tokens: Tokens, logits: Floats
) -> None:
    """Changes logits, [vocab_size], in place."""
    row = logits[None]
    current: Any = row
    for processor in processors:
        current = processor(tokens, current)
        if current is None:
            raise TypeError("a logits processor must return the logits")
    if current is row:
        return
    result = np.asarray(current, dtype=np.float32).reshape(-1)
    if result.shape != logits.shape:
        raise ValueError(
            f"a logits processor returned {result.size} logits, not "
            f"{logits.size}"
        )
    logits[:] = result
