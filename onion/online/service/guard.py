"""What stands before all calls: who may call, what every answer says, and how many calls there were."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from onion.online.desk import Refused
from onion.online.service.access import Access, is_open
from onion.online.service.ambiguous import Ambiguous, refuse_ambiguous
from onion.online.service.replies import refuse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
        count: Told of every call: method, path of its route, status.
    """

    def __init__(self, app: ASGIApp, access: Access, header: int, count: Callable[[str, str, int], None]) -> None:
        self._app, self._access, self._header, self._count = app, access, header, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        from starlette.requests import ClientDisconnect

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
                status = 499  # as nginx has it: the other side left in the middle of its request
        finally:
            self._count(scope["method"], getattr(scope.get("route"), "path", "other"), status)

    def _check(self, scope: Scope) -> None:
        headers = scope["headers"]
        line = len(scope["raw_path"]) + len(scope["query_string"])
        if line + sum(len(name) + len(value) for name, value in headers) > self._header:
            raise Refused("The address and the headers are too long.", 431)
        refuse_ambiguous(scope)
        self._access.check(scope["path"], headers)
