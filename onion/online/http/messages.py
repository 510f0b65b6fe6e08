"""Request bodies within their limits, and JSON responses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from onion.online.control.run_api import Refused
from onion.online.http import strict_json


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body. Starlette itself has no limit.

    Raises:
        Refused: It has more bytes than the limit (413), or is compressed (415), so its real size is unknown.
    """
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused("Send the body as it is, without a Content-Encoding.", 415)
    too_large = Refused(f"The body has more than {limit:,} bytes.", 413)
    length = request.headers.get("content-length", "0")
    if len(length) > 15 or int(length) > limit:  # the server has checked that it is digits
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


async def read_object(request: Request, limit: int) -> dict[str, Any]:
    """Return a body that is one JSON object.

    Raises:
        Refused: It is none, or too large.
    """
    try:
        value = strict_json.loads(await read_body(request, limit))
    except strict_json.JsonError as error:
        raise Refused(f"The body: {error}.") from None
    if not isinstance(value, dict):
        raise Refused("The body is no JSON object.")
    return value


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response; starlette's JSONResponse fails on NaN and numpy's numbers, which metrics may be."""
    return Response(strict_json.dumps(value), status, headers, media_type="application/json")


def refuse(refused: Refused) -> Response:
    """Return the response to what cannot be done."""
    headers = {401: {"www-authenticate": "Bearer"}, 503: retry_after(1)}.get(refused.status)
    return reply({"error": str(refused)}, refused.status, headers)


def retry_after(seconds: float) -> dict[str, str]:
    """Return the header that says when to try again, in whole seconds."""
    return {"retry-after": str(max(0, math.ceil(seconds)))}
