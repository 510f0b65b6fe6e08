"""What every request passes before the routes, and the form of errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onion.http.auth import Access, is_open
from onion.http.messages import refuse, reply
from onion.http.refused import Refused


async def check_parameters(request: Request) -> None:
    """Refuse a parameter that would be ignored, as in ``/step?m=5`` and ``/step?n=1&n=2``."""
    known = {each.alias for each in request.scope["route"].dependant.query_params}
    for name, times in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known:
            raise Refused(f"Unknown parameter {name[:50]!r}.")
        if times > 1:
            raise Refused(f"The parameter {name!r} occurs {times} times; give it once.")


def add_error_handlers(app: FastAPI) -> None:
    """Give every error the same form, ``{"error": message}``."""

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return refuse(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return reply({"error": "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())}, 400)

    @app.exception_handler(HTTPException)
    async def missing(request: Request, error: HTTPException) -> Response:
        return reply({"error": f"{error.detail}."}, error.status_code, error.headers)

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=CLIENT_GONE)  # which nobody reads; it is counted, and not as a failure

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return reply({"error": f"The service failed: {type(error).__name__}; see its log."}, 500)


CLIENT_GONE = 499
"""nginx's code: the client disconnected during its request."""

POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The content security policy of every response that has none of its own."""

ALWAYS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Guard:
    """What every request passes before the routes (size, unambiguity, access), and the headers of every response.

    starlette, uvicorn and h11 do none of this: h11 accepts Content-Length beside Transfer-Encoding, starlette replaces
    %-encoded bytes that are not UTF-8, and its TrustedHostMiddleware knows neither IPv6 nor tokens.

    Args:
        app: Answers the requests that pass.
        access: The access rule.
        header: Bytes allowed for the request line and the headers.
        count: Called for every request with its method, the path of its route, and the status.
    """

    def __init__(self, app: ASGIApp, access: Access, header: int, count: Callable[[str, str, int], None]) -> None:
        self._app, self._access, self._header, self._count = app, access, header, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        status = 0
        always = [*ALWAYS, (b"cache-control", b"no-cache" if is_open(scope["method"], scope["path"]) else b"no-store")]

        async def say(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = message.get("headers", [])
                names = {name for name, _ in own}  # a page may have a policy of its own
                message["headers"] = [*own, *(each for each in always if each[0] not in names)]
            await send(message)

        try:
            self._check(scope)
        except Refused as refused:
            if isinstance(refused, Ambiguous) or refused.status == HEADERS_TOO_LONG:
                always.append((b"connection", b"close"))
            await refuse(refused)(scope, receive, say)
        else:
            await self._app(scope, receive, say)
        finally:
            self._count(scope["method"], getattr(scope.get("route"), "path", "other"), status)

    def _check(self, scope: Scope) -> None:
        headers = scope["headers"]
        line = len(scope["raw_path"]) + len(scope["query_string"])
        if line + sum(len(name) + len(value) for name, value in headers) > self._header:
            raise Refused("The address and the headers are too long.", HEADERS_TOO_LONG)
        refuse_ambiguous(scope)
        self._access.check(scope["method"], scope["path"], headers)


HEADERS_TOO_LONG = 431

VERSIONS = ("1.0", "1.1")

ONCE = (b"content-encoding", b"idempotency-key", b"sec-fetch-site")
"""Headers in use of which two would be ambiguous; h11 and starlette refuse the others themselves."""

_ENCODED = re.compile(rb"(?:[^%]|%[0-9A-Fa-f]{2})*")


class Ambiguous(Refused):
    """It is unclear what is requested, or where the request ends: the connection is closed, the rest not read."""


def refuse_ambiguous(scope: Scope) -> None:
    """Raise Ambiguous for a request that is malformed or can be read in more than one way."""
    names = Counter(name for name, _ in scope["headers"])
    if scope["http_version"] not in VERSIONS:
        raise Ambiguous(f"HTTP/{scope['http_version']} is not supported; send HTTP/1.1.")
    if b"transfer-encoding" in names and (b"content-length" in names or scope["http_version"] == "1.0"):
        # RFC 9112, 6.1 and 6.3: two readers may find different ends, and a second request in the body.
        raise Ambiguous("Transfer-Encoding requires HTTP/1.1 and excludes Content-Length; send one of them.")
    for name in ONCE:
        if names[name] > 1:
            raise Ambiguous(f"The header {name.decode()} occurs twice; send it once.")
    for part in (scope["raw_path"], scope["query_string"]):
        if not _is_text(part):
            raise Ambiguous("The %-encoded bytes of the address are not UTF-8 text.")


def _is_text(part: bytes) -> bool:
    try:
        unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return False
    return _ENCODED.fullmatch(part) is not None
