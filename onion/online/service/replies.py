"""Answers of the service."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onion.online.desk import Refused
from onion.online.service import wire

if TYPE_CHECKING:
    from starlette.responses import Response


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON answer."""
    from starlette.responses import Response

    return Response(wire.dumps(value), status, headers, media_type="application/json")


def refuse(refused: Refused) -> Response:
    """Return the answer to what cannot be done."""
    headers = {401: {"www-authenticate": "Bearer"}, 503: later(1)}.get(refused.status)
    return reply({"error": str(refused)}, refused.status, headers)


def later(seconds: float) -> dict[str, str]:
    """Return the header that says when to try again, in whole seconds."""
    return {"retry-after": str(max(0, math.ceil(seconds)))}
