"""The bodies of requests, up to their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onion.online.desk import Refused
from onion.online.service import wire

if TYPE_CHECKING:
    from starlette.requests import Request


async def read(request: Request, limit: int) -> bytes:
    """Return the body.

    Raises:
        Refused: It has more bytes than the limit (413), or is packed (415): what comes out could be of any size.
    """
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused("Send the body as it is, without a Content-Encoding.", 415)
    too_large = Refused(f"The body has more than {limit:,} bytes.", 413)
    length = request.headers.get("content-length", "0")
    if len(length) > 15 or int(length) > limit:  # the server has seen to it that it is digits
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
        value = wire.loads(await read(request, limit))
    except wire.JsonError as error:
        raise Refused(f"The body: {error}.") from None
    if not isinstance(value, dict):
        raise Refused("The body is no JSON object.")
    return value
