"""All calls of the service, put together."""

# Annotations are no strings here: see commands.py.
import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from onion.online.desk import Desk, Refused
from onion.online.service.access import Access
from onion.online.service.commands import commands
from onion.online.service.events import events
from onion.online.service.files import files
from onion.online.service.guard import Guard
from onion.online.service.intake import intake
from onion.online.service.limits import Limits
from onion.online.service.metrics import Metrics
from onion.online.service.replies import refuse, reply
from onion.online.service.reports import reports

if TYPE_CHECKING:
    from fastapi import FastAPI


def make_app(desk: Desk, access: Access, limits: Limits, closing: asyncio.Event) -> Guard:
    """Return the ASGI application of a run.

    Args:
        desk: The run.
        access: Who may call.
        limits: Of bodies and subscribers.
        closing: Set when the service closes, so that nobody is kept waiting.
    """
    from fastapi import Depends, FastAPI
    from starlette.requests import Request

    async def known(request: Request) -> None:
        """Refuse a parameter that would not be heeded: ``/step?m=5`` is no wish for one step, nor ``?n=1&n=2``."""
        heeded = {each.alias for each in request.scope["route"].dependant.query_params}
        for name, times in Counter(name for name, _ in request.query_params.multi_items()).items():
            if name not in heeded:
                raise Refused(f"{name[:50]!r} is no parameter of this call.")
            if times > 1:
                raise Refused(f"{name!r} is there {times} times; give it once.")

    metrics = Metrics(desk)
    # No pages of documentation: they load scripts from other hosts. A slash too much is a mistake, not a redirection.
    app = FastAPI(openapi_url=None, redirect_slashes=False, dependencies=[Depends(known)])
    for router in (
        reports(desk, metrics),
        commands(desk, limits, closing),
        intake(desk, limits),
        events(desk, limits.subscribers, closing),
        files(),
    ):
        app.include_router(router)
    _answer_errors(app)
    return Guard(app, access, limits.header, metrics.count)


def _answer_errors(app: "FastAPI") -> None:
    """Give every error the same form, ``{"error": words}``."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return refuse(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return reply({"error": "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())}, 400)

    @app.exception_handler(HTTPException)
    async def missing(request: Request, error: HTTPException) -> Response:
        return reply({"error": f"{error.detail}."}, error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return reply({"error": f"The service failed: {type(error).__name__}; its log has more."}, 500)
