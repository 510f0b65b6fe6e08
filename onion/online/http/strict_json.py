"""JSON as it comes in and goes out: stricter than Python's, which takes NaN, and numbers and depths of any size."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

MAX_DEPTH = 64
"""Lists and objects in each other, at most."""

LOW, HIGH = -(2**63), 2**63 - 1
"""Whole numbers: those of 64 bits."""

_DIGITS = 20  # of such a number; reading a very long one takes time that grows with its square
_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)  # strings, and brackets outside of them
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonError(ValueError):
    """It is not the JSON that we take; the message says why."""


def loads(text: bytes) -> Any:
    """Read a JSON value.

    Raises:
        JsonError: It is none; or it has NaN, Infinity, a number that fits into no 64 bits, a name twice in one object,
            half a surrogate pair, or more than 64 lists and objects in each other.
    """
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        raise JsonError(f"byte {error.start + 1} is not UTF-8") from None
    _refuse_depth(decoded)
    try:
        value = _DECODER.decode(decoded)
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.msg} at character {error.pos + 1}") from None
    if _SURROGATE.search(decoded):
        _refuse_surrogates(value)
    return value


def dumps(value: Any) -> bytes:
    """Write a JSON value in ASCII; NaN and infinities, which JSON does not have, are null."""
    return json.dumps(_finite(value), allow_nan=False, separators=(",", ":"), default=_number).encode()


def _number(value: Any) -> Any:
    """Write a number of numpy's, such as a metric may be."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"a {type(value).__name__} is no JSON value")
    return _finite(item())


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_finite, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def lines(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    for number, line in enumerate(body.split(b"\n"), 1):
        if stripped := line.strip():
            yield number, stripped


def _refuse_depth(text: str) -> None:
    """Look before reading: the reader's own guard is the interpreter's stack, whose size anyone may change."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for mark in _MARKS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark.group(), 0)
        if depth > MAX_DEPTH:
            raise JsonError(f"more than {MAX_DEPTH} lists and objects in each other")


def _refuse_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise JsonError("a string has half a surrogate pair, which is no character") from None


def _whole(digits: str) -> int:
    if len(digits) <= _DIGITS and LOW <= (number := int(digits)) <= HIGH:
        return number
    raise JsonError(f"the number {_short(digits)} does not fit into 64 bits")


def _real(digits: str) -> float:
    if math.isfinite(number := float(digits)):
        return number
    raise JsonError(f"the number {_short(digits)} does not fit into 64 bits")


def _constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is no JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise JsonError("an object has the same name twice")
    return value


def _short(digits: str) -> str:
    return digits if len(digits) <= 2 * _DIGITS else f"{digits[:_DIGITS]}..."


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_real, parse_constant=_constant, object_pairs_hook=_object)
