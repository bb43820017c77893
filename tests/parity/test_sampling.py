"""Which tokens may be drawn, with which weights, is what mlx_lm's own samplers
and logits processors decide on the same logits, but for the differences that
we want. Each of those has a test that names it."""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm import sample_utils

ROOT = Path(__file__).resolve().parent.parent.parent
DRIVER = Path(os.environ.get("AFTERGLOW_PROGRAM", ROOT / "build" / "afterglow"))
DRIVER = DRIVER.parent / "tests" / "parity" / "sampling"

TOP = 20
# mlx_lm rounds log-probabilities and sums of 50,000 to float.
LOG_SUM_ERROR = 4e-4
MASS_ERROR = 2e-4
DEPTH_ERROR = 2e-5
PROCESSORS = [
    "logit_bias",
    "repetition_penalty",
    "repetition_context_size",
    "presence_penalty",
    "presence_context_size",
    "frequency_penalty",
    "frequency_context_size",
]


@pytest.fixture(scope="module", autouse=True)
def uncompiled():
    """The functions as written: compiling each for each value takes long."""
    mx.disable_compile()
    yield
    mx.enable_compile()


@dataclass
class Case:
    logits: np.ndarray
    params: dict = field(default_factory=dict)
    history: list = field(default_factory=list)


@dataclass
class Choice:
    """What is left to be drawn, and what it was chosen from."""

    logits: np.ndarray  # processed
    weights: dict  # token: logarithm of its weight, up to a common addend
    log_sum: float
    top: list  # of (token, logprob), most likely first
    greedy: int


# Ours and theirs.


def play(cases) -> list[bytes]:
    with tempfile.TemporaryFile() as file:
        for case in cases:
            head = {
                "vocab": len(case.logits),
                "history": case.history,
                "params": {
                    name: sorted(value.items())
                    if name == "logit_bias"
                    else value
                    for name, value in case.params.items()
                },
                "top": TOP,
            }
            file.write(json.dumps(head).encode() + b"\n")
            file.write(case.logits.astype(np.float32).tobytes())
        file.seek(0)
        return subprocess.run(
            [DRIVER], stdin=file, capture_output=True, timeout=300, check=True
        ).stdout


def ours(cases) -> list:
    """A Choice for each case, or the refusal as a dict."""
    out, at, results = play(cases), 0, []

    def take(count, dtype):
        nonlocal at
        values = np.frombuffer(out, dtype, count, at)
        at += values.nbytes
        return values

    for case in cases:
        end = out.index(b"\n", at)
        head = json.loads(out[at:end])
        at = end + 1
        if "error" in head:
            results.append(head)
            continue
        logits = take(len(case.logits), np.float32)
        tokens = take(head["candidates"], np.int32)
        depths = take(head["candidates"], np.float32)
        weights = dict(zip(tokens.tolist(), depths.tolist()))
        assert len(weights) == len(tokens)
        results.append(
            Choice(
                logits, weights, head["log_sum"], head["top"], head["greedy"]
            )
        )
    assert at == len(out)
    return results


def theirs(case) -> Choice:
    """As generate_step does it, up to the draw."""
    params = dict(case.params)
    processors = sample_utils.make_logits_processors(
        **{name: params.pop(name) for name in PROCESSORS if name in params}
    )
    logits = mx.array(case.logits.astype(np.float32))[None]
    for processor in processors:
        logits = processor(mx.array(case.history), logits)
    log_sum = mx.logsumexp(logits, keepdims=True)
    logprobs = logits - log_sum
    params["temp"] = params.pop("temperature", 1.0)
    left = []
    draw = sample_utils.categorical_sampling
    sample_utils.categorical_sampling = lambda x, temp: left.append(x)
    try:
        sample_utils.make_sampler(**params)(logprobs)
    finally:
        sample_utils.categorical_sampling = draw
    (kept,) = np.array(left[0])
    tokens = np.flatnonzero(kept > -np.inf)
    order = np.argsort(-np.array(logprobs[0]), kind="stable")[:TOP]
    return Choice(
        np.array(logits[0]),
        dict(zip(tokens.tolist(), kept[tokens].tolist())),
        log_sum.item(),
        [(int(t), logprobs[0, int(t)].item()) for t in order],
        sample_utils.greedy_sampler(logprobs).item(),
    )


# What rounding may decide.


class Hinges(Exception):
    """Rounding decides about more than single tokens."""


def on_the_edge(logits, params) -> np.ndarray:
    """The tokens that may stay or go as float rounds, computed in double."""
    depth = logits.astype(np.float64) - float(logits.max())
    edge = np.zeros(len(depth), bool)
    kept = np.ones(len(depth), bool)

    def near(value):
        return np.abs(depth - value) <= DEPTH_ERROR * (1 + abs(value))

    top_p = params.get("top_p", 0)
    if 0 < top_p < 1:
        order = np.argsort(-depth, kind="stable")
        p = np.exp(depth[order])
        # Equal ones stay or go together: by the mass above the first of them.
        first = np.searchsorted(-depth[order], -depth[order])
        above = np.empty(len(p))
        above[order] = (np.cumsum(p) - p)[first] / p.sum()
        kept &= above < top_p
        edge |= np.abs(above - top_p) <= MASS_ERROR
    min_p = params.get("min_p", 0)
    if min_p > 0:
        keep = params.get("min_tokens_to_keep", 1)
        bar = np.log(min_p)
        least = np.sort(np.where(kept, depth, -np.inf))[-keep]
        edge |= near(bar)
        if keep > 1 and least < bar:
            edge |= near(least)
        kept &= (depth >= bar) | (depth >= least)
    if params.get("xtc_probability", 0) > 0:
        threshold = params["xtc_threshold"]
        p = np.where(kept, np.exp(depth), 0)
        p /= p.sum()
        if np.any(np.abs(p - threshold) < 2 * MASS_ERROR * threshold):
            raise Hinges
        if np.any(p > threshold):
            least = depth[p > threshold].min()
            edge |= near(least) & (depth != least)
            special = np.isin(
                np.arange(len(depth)), params.get("xtc_special_tokens", [])
            )
            kept &= (depth <= least) | special
    top_k = params.get("top_k", 0)
    if 0 < top_k < kept.sum():
        # A token more or less above moves the end by one.
        ordered = np.sort(depth[kept])
        for k in {top_k, min(top_k + 1, len(ordered)), max(top_k - 1, 1)}:
            edge |= near(ordered[-k])
    return edge


def check(case, us: Choice, them: Choice) -> None:
    scale = 1 + np.abs(them.logits).max()
    np.testing.assert_allclose(us.logits, them.logits, rtol=1e-6, atol=1e-6)
    largest = us.logits.max().astype(np.float64)
    exact = largest + np.log(np.exp(us.logits - largest).sum())
    assert abs(us.log_sum - exact) <= 3e-5
    # MLX adds 50,000 of them up in float.
    error = LOG_SUM_ERROR + 1e-6 * scale
    assert abs(us.log_sum - them.log_sum) <= error
    for (_, mine), (_, other) in zip(us.top, them.top, strict=True):
        assert abs(mine - other) <= error + 1e-6 * abs(other)
    assert us.logits[us.greedy] == us.logits.max()
    # Their rounding of log-probabilities may make two equal.
    near_top = us.logits.max() - us.logits[them.greedy]
    assert near_top <= 2e-6 * scale

    edge = on_the_edge(us.logits, case.params)
    different = us.weights.keys() ^ them.weights.keys()
    unexplained = [token for token in different if not edge[token]]
    assert not unexplained, (case.params, unexplained[:10])
    both = sorted(us.weights.keys() & them.weights.keys())
    mine = np.array([us.weights[token] for token in both])
    other = np.array([them.weights[token] for token in both], np.float64)
    # Of equal ones each may have taken others, but as many.
    assert both or len(us.weights) == len(them.weights)
    if both:
        assert np.ptp(other - mine) <= 1e-6 * (1 + np.abs(other).max())


# The cases.


def plain(rng, vocab):
    return rng.normal(0, 3, vocab)


def flat(rng, vocab):
    return rng.normal(0, 0.01, vocab)


def equal(rng, vocab):
    return np.full(vocab, rng.normal())


def peaked(rng, vocab):
    logits = rng.normal(0, 2, vocab)
    logits[rng.integers(0, vocab, 3)] += rng.uniform(8, 20, 3)
    return logits


def tied(rng, vocab):
    return np.round(rng.normal(0, 3, vocab) * 2) / 2


def far(rng, vocab):
    return rng.normal(0, 3, vocab) + rng.choice([-1e4, 1e4])


def wide(rng, vocab):
    return rng.normal(0, 1e4, vocab)


SHAPES = [plain, flat, equal, peaked, tied, far, wide]


def filters(rng, vocab) -> dict:
    """One filter, or several."""
    params = {}
    wanted = rng.random(4) < rng.choice([0.3, 0.6, 1.0])
    if wanted[0]:
        params["top_p"] = float(rng.choice([0.01, 0.3, 0.8, 0.95, 0.999]))
    if wanted[1]:
        params["min_p"] = float(rng.choice([1e-6, 0.01, 0.1, 0.5, 1.0]))
        params["min_tokens_to_keep"] = int(rng.choice([1, 2, 7, vocab]))
    if wanted[2]:
        params["xtc_probability"] = 1.0
        params["xtc_threshold"] = float(rng.choice([0.001, 0.01, 0.1, 0.5]))
        count = int(rng.choice([0, 3, vocab // 4]))
        params["xtc_special_tokens"] = rng.choice(vocab, count, False).tolist()
    if wanted[3]:
        params["top_k"] = int(rng.choice([1, 2, 10, vocab // 2, vocab - 1]))
    return params


def processors(rng, vocab) -> dict:
    params = {}
    wanted = rng.random(4) < rng.choice([0.3, 1.0])
    if wanted[0]:
        tokens = rng.choice(vocab, 10, False).tolist()
        params["logit_bias"] = {t: float(rng.normal(0, 5)) for t in tokens}
    for name, values, on in [
        ("repetition", [0.5, 1.0, 1.1, 2.0], wanted[1]),
        ("presence", [-1.0, 0.3, 2.0], wanted[2]),
        ("frequency", [-0.5, 0.1, 1.5], wanted[3]),
    ]:
        if on:
            params[f"{name}_penalty"] = float(rng.choice(values))
        if on and rng.random() < 0.7:
            sizes = [0, 1, 5, 20, 1000]
            params[f"{name}_context_size"] = int(rng.choice(sizes))
    return params


def compare(cases) -> None:
    hinging = 0
    for case, us in zip(cases, ours(cases), strict=True):
        try:
            check(case, us, theirs(case))
        except Hinges:
            hinging += 1
    assert hinging <= 0.1 * len(cases)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("vocab, count", [(50, 150), (50_000, 25)])
def test_filters(shape, vocab, count):
    rng = np.random.default_rng(1)
    compare(
        [Case(shape(rng, vocab), filters(rng, vocab)) for _ in range(count)]
    )


@pytest.mark.parametrize("vocab, count", [(50, 300), (50_000, 25)])
def test_processors(vocab, count):
    rng = np.random.default_rng(2)
    cases = []
    for _ in range(count):
        length = int(rng.choice([0, 1, 3, 19, 20, 21, 300]))
        history = rng.integers(0, min(vocab, 60), length) % vocab
        params = processors(rng, vocab)
        cases.append(Case(plain(rng, vocab), params, history.tolist()))
    compare(cases)


def test_processors_before_filters():
    rng = np.random.default_rng(3)
    cases = []
    for _ in range(200):
        history = rng.integers(0, 50, 40).tolist()
        params = {**processors(rng, 50), **filters(rng, 50)}
        cases.append(Case(peaked(rng, 50), params, history))
    compare(cases)


def test_a_threshold_of_nothing():
    """XTC at 0: all but the least likely token go."""
    rng = np.random.default_rng(4)
    params = {"xtc_probability": 1.0, "xtc_threshold": 0.0}
    cases = [Case(plain(rng, 50), params) for _ in range(20)]
    for case, us in zip(cases, ours(cases), strict=True):
        assert list(us.weights) == [int(np.argmin(case.logits))]
        assert us.weights.keys() == theirs(case).weights.keys()


def test_of_equal_tokens_top_k_keeps_the_lowest():
    """Which of them mlx_lm keeps is up to its partition."""
    case = Case(np.array([1.0, 2, 2, 2, 2, 0]), {"top_k": 3})
    (us,) = ours([case])
    assert sorted(us.weights) == [1, 2, 3]
    assert len(theirs(case).weights) == 3


@pytest.mark.parametrize(
    "field, params",
    [
        ("top_k", {"top_k": 50}),
        ("top_k", {"top_k": 1000}),
        ("min_p", {"min_p": 1.5}),
        ("min_p", {"min_p": -0.1}),
        ("min_tokens_to_keep", {"min_p": 0.1, "min_tokens_to_keep": 0}),
        ("min_tokens_to_keep", {"min_p": 0.1, "min_tokens_to_keep": 51}),
        ("xtc_probability", {"xtc_probability": 1.5}),
        ("xtc_threshold", {"xtc_probability": 0.5, "xtc_threshold": 0.6}),
        ("xtc_threshold", {"xtc_probability": 0.5, "xtc_threshold": -0.1}),
        ("repetition_penalty", {"repetition_penalty": -1.0}),
    ],
)
def test_what_both_refuse(field, params):
    case = Case(np.arange(50.0), params)
    with pytest.raises(ValueError):
        theirs(case)
    (refusal,) = ours([case])
    assert refusal["code"] == "invalid argument"
    assert refusal["error"].startswith(field + " must be ")


# The wanted differences.


@pytest.mark.parametrize(
    "field, params",
    [
        ("top_p", {"top_p": 1.5}),
        ("top_p", {"top_p": -0.1}),
        ("xtc_probability", {"xtc_probability": -0.1}),
        ("temperature", {"temperature": -1.0}),
        ("top_k", {"temperature": 0.0, "top_k": 50}),
        ("min_tokens_to_keep", {"min_tokens_to_keep": 0}),
        ("logit_bias", {"logit_bias": {50: 1.0}}),
    ],
)
def test_a_value_out_of_range_is_refused_also_where_it_has_no_effect(
    field, params
):
    """mlx_lm takes some for "off", and looks at others only when it gets to
    use them. Ours says so before anything is computed."""
    (refusal,) = ours([Case(np.arange(50.0), params)])
    assert refusal["code"] == "invalid argument"
    assert refusal["error"].startswith(field + " must be ")


def test_extreme_penalties_stay_finite():
    """mlx_lm's logits become infinite, and all else NaN."""
    history = list(range(50))
    cases = [
        Case(np.linspace(-5, 5, 50), params, history)
        for params in [
            {"repetition_penalty": 1e-300},
            {"repetition_penalty": 1e300},
            {"presence_penalty": 1e300},
            {"frequency_penalty": -1e300},
        ]
    ]
    for us in ours(cases):
        assert np.isfinite(us.logits).all()
        assert us.weights
