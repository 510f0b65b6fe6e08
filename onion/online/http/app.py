"""The ASGI application of a run: all routes behind a guard, the form of errors, and the files of the page."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fastapi import Depends, FastAPI

from onion.http.auth import Access
from onion.http.guard import Guard, add_error_handlers, check_parameters
from onion.http.page_files import page_routes
from onion.online.control.run_api import RunAPI
from onion.online.http.limits import Limits
from onion.online.http.routes import Metrics, command_routes, event_routes, sample_routes, status_routes

PAGE = Path(__file__).parent / "page"


def make_app(run: RunAPI, access: Access, limits: Limits, closing: asyncio.Event) -> Guard:
    """Return the ASGI application of a run; ``closing`` is set when the service stops, so that no call keeps waiting.

    It has no generated documentation, which loads scripts from other hosts, and no redirect for a superfluous slash.
    """
    metrics = Metrics(run)
    app = FastAPI(openapi_url=None, redirect_slashes=False, dependencies=[Depends(check_parameters)])
    for router in (
        status_routes(run, metrics),
        command_routes(run, limits, closing),
        sample_routes(run, limits),
        event_routes(run, limits.subscribers, closing),
        page_routes(PAGE),
    ):
        app.include_router(router)
    add_error_handlers(app)
    return Guard(app, access, limits.header, metrics.count)
