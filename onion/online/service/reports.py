"""The calls that only look."""

# Annotations are no strings here: see commands.py.
from typing import TYPE_CHECKING

from onion.online.desk import Desk
from onion.online.service.metrics import Metrics
from onion.online.service.replies import reply

if TYPE_CHECKING:
    from fastapi import APIRouter


def reports(desk: Desk, metrics: Metrics) -> "APIRouter":
    """Return the routes ``/status``, ``/onion`` and ``/metrics``."""
    from fastapi import APIRouter
    from prometheus_client import CONTENT_TYPE_LATEST
    from starlette.responses import Response

    router = APIRouter()

    @router.get("/status")
    async def status() -> Response:
        return reply(desk.status())

    @router.get("/onion")
    async def onion() -> Response:
        return reply(desk.onion())

    @router.get("/metrics")
    async def figures() -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return router
