"""Request bodies within their limits, and JSON: stricter than Python's, which accepts NaN, and numbers of any size."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from starlette.requests import Request
from starlette.responses import Response

from onion.http.refused import Refused

MAX_DEPTH = 64  # greatest depth of nested lists and objects

LOW, HIGH = -(2**63), 2**63 - 1
"""Range of integers: 64 bits."""

_DIGITS = 20  # of such an integer; the time to read a very long one grows with its square
_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)  # strings, and brackets outside of them
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonError(ValueError):
    """The text is not acceptable JSON; the message says why."""


def loads(text: bytes) -> Any:
    """Read a JSON value.

    Raises:
        JsonError: It is not JSON; or it contains NaN, Infinity, a number outside of 64 bits, a name twice in one
            object, half a surrogate pair, or more than 64 nested lists and objects.
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
    """Write a JSON value in ASCII; NaN and infinities, which JSON does not have, become null."""
    return json.dumps(_finite(value), allow_nan=False, separators=(",", ":"), default=_number).encode()


def _number(value: Any) -> Any:
    """Convert a numpy scalar, such as a metric."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"a {type(value).__name__} is not a JSON value")
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
    """Check before reading: the reader's own guard is the interpreter's stack, whose size can be changed."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for mark in _MARKS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark.group(), 0)
        if depth > MAX_DEPTH:
            raise JsonError(f"more than {MAX_DEPTH} nested lists and objects")


def _refuse_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise JsonError("a string contains half a surrogate pair, which is no character") from None


def _whole(digits: str) -> int:
    if len(digits) <= _DIGITS and LOW <= (number := int(digits)) <= HIGH:
        return number
    raise JsonError(f"the number {_short(digits)} does not fit into 64 bits")


def _real(digits: str) -> float:
    if math.isfinite(number := float(digits)):
        return number
    raise JsonError(f"the number {_short(digits)} does not fit into 64 bits")


def _constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise JsonError("an object has the same name twice")
    return value


def _short(digits: str) -> str:
    return digits if len(digits) <= 2 * _DIGITS else f"{digits[:_DIGITS]}..."


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_real, parse_constant=_constant, object_pairs_hook=_object)


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body, as starlette has no limit of its own.

    Raises:
        Refused: It is larger than the limit (413), or compressed (415), so that its size is unknown.
    """
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused("Send the body without a Content-Encoding.", 415)
    too_large = Refused(f"The body has more than {limit:,} bytes.", 413)
    length = request.headers.get("content-length", "0")
    if len(length) > 15 or int(length) > limit:  # the server has checked that these are digits
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


async def read_object(request: Request, limit: int) -> dict[str, Any]:
    """Return a body that is one JSON object; raise Refused if it is not, or too large."""
    try:
        value = loads(await read_body(request, limit))
    except JsonError as error:
        raise Refused(f"The body: {error}.") from None
    if not isinstance(value, dict):
        raise Refused("The body is not a JSON object.")
    return value


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response; starlette's JSONResponse fails on NaN and numpy's numbers, which metrics may be."""
    return Response(dumps(value), status, headers, media_type="application/json")


def refuse(refused: Refused) -> Response:
    """Return the response to a refused request."""
    headers = {401: {"www-authenticate": "Bearer"}, 503: retry_after(1)}.get(refused.status)
    return reply({"error": str(refused)}, refused.status, headers)


def retry_after(seconds: float) -> dict[str, str]:
    """Return the header that states when to try again, in whole seconds."""
    return {"retry-after": str(max(0, math.ceil(seconds)))}
