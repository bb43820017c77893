"""Checks of arguments, and what they are for the extension."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np


def integer(name: str, value: Any, least: int = 0) -> int:
    """Raises: TypeError for what is no integer, ValueError below `least`."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not a bool")
    try:
        number = operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{name} must be an integer, not {kind}") from None
    if not least <= number < 1 << 63:
        raise ValueError(f"{name} must be {least} or more, not {number}")
    return number


def token(name: str, value: Any) -> int:
    number = integer(name, value)
    if number >= 1 << 31:
        raise ValueError(f"{name}: {number} is no token")
    return number


def number(name: str, value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not a bool")
    try:
        return float(operator.index(value))
    except TypeError:
        pass
    try:
        return value.__float__()  # type: ignore[no-any-return]
    except AttributeError:
        kind = type(value).__name__
        raise TypeError(f"{name} must be a number, not {kind}") from None


def tokens(name: str, value: Any) -> list[int]:
    """Tokens from a sequence of integers, or a one-dimensional array of any
    library that speaks __array__, the buffer protocol or DLPack."""
    if isinstance(value, (str, bytes, bytearray)):
        kind = type(value).__name__
        raise TypeError(f"{name} must be tokens, not {kind}")
    if isinstance(value, np.ndarray):
        return _from_array(name, value)
    if isinstance(value, (list, tuple, range)):
        return [token(name, one) for one in value]
    if hasattr(value, "__array__"):
        return _from_array(name, np.asarray(value))
    if hasattr(value, "__dlpack__"):
        return _from_array(name, np.from_dlpack(value))
    if isinstance(value, Iterable) and not isinstance(value, (dict, set)):
        return [token(name, one) for one in value]
    kind = type(value).__name__
    raise TypeError(f"{name} must be text, integers or an array, not {kind}")


def _from_array(name: str, array: np.ndarray[Any, Any]) -> list[int]:
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, not {array.dtype}")
    if array.ndim != 1:
        raise ValueError(
            f"{name} must have one dimension, not the shape {array.shape}"
        )
    if array.size and (array.min() < 0 or array.max() >= 1 << 31):
        raise ValueError(f"{name} holds numbers that are no tokens")
    return array.astype(np.int32).tolist()  # type: ignore[no-any-return]


def texts(name: str, value: str | Iterable[str] | None) -> list[str]:
    if value is None:
        return []
    all_ = [value] if isinstance(value, str) else list(value)
    for one in all_:
        if not isinstance(one, str):
            kind = type(one).__name__
            raise TypeError(f"{name} must be text, not {kind}")
    return all_
