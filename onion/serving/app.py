"""The ASGI application of a service of models: all routes behind the guard."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from onion import __version__
from onion.http.auth import Access
from onion.http.guard import CLIENT_GONE, POLICY, Guard, add_error_handlers, check_parameters
from onion.http.messages import reply, retry_after
from onion.http.page_files import MEDIA_TYPES, page_routes
from onion.http.refused import Refused
from onion.serving.call_log import log_call
from onion.serving.calls import Calls, GoneError, OverloadedError
from onion.serving.metrics import ServingMetrics
from onion.serving.protocols.hugging_face import hugging_face_routes
from onion.serving.protocols.native import native_routes
from onion.serving.protocols.open_inference import open_inference_routes
from onion.serving.protocols.openai import openai_routes
from onion.serving.protocols.text_embeddings import text_embeddings_routes
from onion.serving.served_models import ServedModel, ServedModels

PAGE = Path(__file__).parent / "page"

WITH_IMAGES = f"{POLICY}; img-src 'self' data:"
"""The policy of the page of the interface: that of every page, and the images in its style sheet."""

WITHOUT_LIBRARY = "This page needs Swagger UI, which “make web-assets” fetches; /openapi.json is there without it."


def make_app(calls: Calls, metrics: ServingMetrics, access: Access, ready: Callable[[], bool]) -> ASGIApp:
    """Return the ASGI application.

    Args:
        calls: answers.
        metrics: counts.
        access: the access rule.
        ready: returns whether calls are taken.
    """
    app = FastAPI(
        title="onion",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(check_parameters)],
    )
    app.include_router(_state_routes(metrics, ready))
    app.include_router(page_routes(PAGE), include_in_schema=False)
    app.include_router(_interface_page(), include_in_schema=False)
    app.include_router(native_routes(calls, metrics))
    app.include_router(openai_routes(calls))
    app.include_router(open_inference_routes(calls, ready))
    app.include_router(text_embeddings_routes(calls, calls.models.first))
    app.include_router(hugging_face_routes(calls, calls.models.first, "/"))
    for model in calls.models.all:
        own = hugging_face_routes(calls, partial(_only, calls.models, model.name), f"/{model.name}")
        app.include_router(own, include_in_schema=False)
        routes = text_embeddings_routes(calls, partial(_only, calls.models, model.name))
        app.include_router(routes, prefix=f"/{model.name}", include_in_schema=False)
    add_error_handlers(app)
    _add_error_handlers(app)
    return Watch(Guard(app, access, calls.limits.header, lambda method, path, status: None), metrics)


def _only(models: ServedModels, name: str, *kinds: str) -> ServedModel:
    """Return the model of a name, if it is of one of these kinds."""
    model = models[name]
    return model if not kinds or model.servable.kind in kinds else ServedModels([]).first(*kinds)


def _interface_page() -> APIRouter:
    """Return the route of the page that shows the interface, by Swagger UI."""
    router, content = APIRouter(), (PAGE / "docs.html").read_bytes()
    there = (PAGE / "vendor" / "swagger-ui-bundle.js").is_file()

    @router.get("/docs")
    async def interface() -> Response:
        if not there:
            raise Refused(WITHOUT_LIBRARY, 404)
        return Response(content, media_type=MEDIA_TYPES[".html"], headers={"content-security-policy": WITH_IMAGES})

    return router


def _state_routes(metrics: ServingMetrics, ready: Callable[[], bool]) -> APIRouter:
    router = APIRouter(tags=["state"])

    @router.get("/health")
    async def health() -> Response:
        return reply({"status": "live"})

    @router.get("/ready")
    async def is_ready() -> Response:
        return reply({"ready": ready()}, 200 if ready() else 503)

    @router.get("/metrics")
    async def prometheus() -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return router


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(OverloadedError)
    async def overloaded(request: Request, error: OverloadedError) -> Response:
        told = {"error": str(error), "error_type": "overloaded"}
        return reply(told, error.status, retry_after(max(1.0, error.seconds)))

    @app.exception_handler(GoneError)
    async def gone(request: Request, error: GoneError) -> Response:
        return Response(status_code=CLIENT_GONE)


class Watch:
    """Counts and logs each call with its time.

    Args:
        app: answers.
        metrics: counts.
    """

    def __init__(self, app: ASGIApp, metrics: ServingMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        begin, status = time.perf_counter(), 0

        async def say(message: dict[str, object]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(str(message["status"]))
            await send(message)

        try:
            await self._app(scope, receive, say)  # type: ignore[arg-type]
        finally:
            seconds, path = time.perf_counter() - begin, getattr(scope.get("route"), "path", "other")
            status = status or CLIENT_GONE  # nobody was answered: the client had gone, or the service ended
            self._metrics.count(scope["method"], path, status, seconds)
            told = scope.get("state", {}).get("told", {})
            log_call(method=scope["method"], path=path, status=status, ms=round(seconds * 1000, 3), **told)
