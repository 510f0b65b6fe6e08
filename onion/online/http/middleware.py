"""What every request passes before the routes: size, one meaning, access; what every response carries.

None of it is in starlette, uvicorn or h11: h11 accepts Content-Length beside Transfer-Encoding, starlette replaces
%-codes that are no UTF-8, and its TrustedHostMiddleware knows neither IPv6 nor tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onion.online.control.run_api import Refused
from onion.online.http.auth import Access, is_open
from onion.online.http.messages import refuse

ALWAYS = [
    (
        b"content-security-policy",
        b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Guard:
    """An ASGI application around another one.

    Args:
        app: What answers the calls that pass.
        access: Who may call.
        header: Bytes that the line and the headers of a request may have.
        count: Called for every request: method, path of its route, status.
    """

    def __init__(self, app: ASGIApp, access: Access, header: int, count: Callable[[str, str, int], None]) -> None:
        self._app, self._access, self._header, self._count = app, access, header, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        status = 0
        always = [*ALWAYS, (b"cache-control", b"no-cache" if is_open(scope["path"]) else b"no-store")]

        async def say(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *always]
            await send(message)

        try:
            self._check(scope)
        except Refused as refused:
            if isinstance(refused, Ambiguous):
                always.append((b"connection", b"close"))
            await refuse(refused)(scope, receive, say)
        else:
            try:
                await self._app(scope, receive, say)
            except ClientDisconnect:
                status = 499  # nginx's code: the client left in the middle of its request
        finally:
            self._count(scope["method"], getattr(scope.get("route"), "path", "other"), status)

    def _check(self, scope: Scope) -> None:
        headers = scope["headers"]
        line = len(scope["raw_path"]) + len(scope["query_string"])
        if line + sum(len(name) + len(value) for name, value in headers) > self._header:
            raise Refused("The address and the headers are too long.", 431)
        refuse_ambiguous(scope)
        self._access.check(scope["path"], headers)


VERSIONS = ("1.0", "1.1")

ONCE = (b"content-encoding", b"idempotency-key", b"sec-fetch-site")
"""Headers that are used, and of which two would be ambiguous; h11 and starlette refuse the others themselves."""

_ENCODED = re.compile(rb"(?:[^%]|%[0-9A-Fa-f]{2})*")


class Ambiguous(Refused):
    """It is unclear what is asked, or where the request ends: its connection is closed, the rest is not read."""


def refuse_ambiguous(scope: Scope) -> None:
    """Refuse a request that has no meaning, or more than one.

    Raises:
        Ambiguous: It has.
    """
    names = Counter(name for name, _ in scope["headers"])
    if scope["http_version"] not in VERSIONS:
        raise Ambiguous(f"HTTP/{scope['http_version']} is not supported; send HTTP/1.1.")
    if b"transfer-encoding" in names and (b"content-length" in names or scope["http_version"] == "1.0"):
        # RFC 9112, 6.1 and 6.3: two readers may see different ends, and a second request in the body.
        raise Ambiguous("Transfer-Encoding goes with HTTP/1.1 alone, and not with Content-Length; send one of them.")
    for name in ONCE:
        if names[name] > 1:
            raise Ambiguous(f"The header {name.decode()} is there twice; send it once.")
    for part in (scope["raw_path"], scope["query_string"]):
        if not _is_text(part):
            raise Ambiguous("What is encoded with % in the address is no UTF-8 text.")


def _is_text(part: bytes) -> bool:
    try:
        unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return False
    return _ENCODED.fullmatch(part) is not None
