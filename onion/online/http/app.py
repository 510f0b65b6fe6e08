"""The ASGI application of a run: all routes, the form of errors, and the files of the page."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from onion.online.control.run_api import Refused, RunAPI
from onion.online.http.auth import Access
from onion.online.http.limits import Limits
from onion.online.http.messages import refuse, reply
from onion.online.http.metrics import Metrics
from onion.online.http.middleware import Guard
from onion.online.http.routes import command_routes, event_routes, sample_routes, status_routes

PAGE = Path(__file__).parent / "page"

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def make_app(run: RunAPI, access: Access, limits: Limits, closing: asyncio.Event) -> Guard:
    """Return the ASGI application of a run.

    Args:
        run: The run.
        access: Who may call.
        limits: Of bodies and subscribers.
        closing: Set when the service closes, so that no call keeps waiting.
    """
    metrics = Metrics(run)
    # No generated documentation, which loads scripts from other hosts. A superfluous slash is a mistake, no redirect.
    app = FastAPI(openapi_url=None, redirect_slashes=False, dependencies=[Depends(_check_parameters)])
    for router in (
        status_routes(run, metrics),
        command_routes(run, limits, closing),
        sample_routes(run, limits),
        event_routes(run, limits.subscribers, closing),
        page_routes(),
    ):
        app.include_router(router)
    _add_error_handlers(app)
    return Guard(app, access, limits.header, metrics.count)


async def _check_parameters(request: Request) -> None:
    """Refuse a parameter that would be ignored: ``/step?m=5`` does not ask for one step, nor does ``?n=1&n=2``."""
    known = {each.alias for each in request.scope["route"].dependant.query_params}
    for name, times in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known:
            raise Refused(f"{name[:50]!r} is no parameter of this call.")
        if times > 1:
            raise Refused(f"{name!r} is there {times} times; give it once.")


def _add_error_handlers(app: FastAPI) -> None:
    """Give every error the same form, ``{"error": words}``."""

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


def page_routes(folder: Path = PAGE) -> APIRouter:
    """Return the routes ``/`` and ``/static``.

    The files are read once, here, and not by starlette's StaticFiles: callers without a token open no file and use no
    thread of the training process.
    """
    router, files = APIRouter(), read_page(folder)

    def send(name: str) -> Response:
        if name not in files:
            raise Refused("There is no such file.", 404)
        content, media_type = files[name]
        return Response(content, media_type=media_type)

    @router.get("/")
    async def index() -> Response:
        return send("index.html")

    @router.get("/static/{name:path}")
    async def static(name: str) -> Response:
        return send(name)

    return router


def read_page(folder: Path) -> dict[str, tuple[bytes, str]]:
    """Return the files of a folder and its subfolders by name: content and media type."""
    found = sorted(file for file in folder.rglob("*") if file.suffix in MEDIA_TYPES and file.is_file())
    return {file.relative_to(folder).as_posix(): (file.read_bytes(), MEDIA_TYPES[file.suffix]) for file in found}
