"""onion's own protocol: what ``onion predict`` writes for a row, for any task."""

# No ``from __future__ import annotations``: FastAPI reads the annotations of functions that are defined in functions.
import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from onion.errors import OnionError
from onion.http.messages import reply
from onion.http.refused import Refused
from onion.serving.calls import Calls
from onion.serving.metrics import ServingMetrics
from onion.serving.protocols.described import FLAG, ROWS, SAMPLE, body
from onion.serving.protocols.rows import as_json, flag, input_names, row_of
from onion.serving.served_models import ServedModel


def native_routes(calls: Calls, metrics: ServingMetrics) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/models", tags=["onion"])

    @router.get("")
    async def models() -> Response:
        return reply({"models": [_told(model) for model in calls.models.all]})

    @router.get("/{name}")
    async def model(name: str) -> Response:
        return reply(_told(calls.models[name]))

    @router.post("/{name}/predict", openapi_extra=body({"inputs": [SAMPLE]}, inputs=ROWS, truncate=FLAG))
    async def predict(name: str, request: Request) -> Response:
        chosen, given = calls.models[name], await calls.body(request)
        inputs = given.get("inputs")
        if not isinstance(inputs, list) or not inputs:
            raise Refused('The body must be like {"inputs": ["a text", {"text_a": "another"}]}.', 422)
        rows = [row_of(each, f"inputs[{number}]") for number, each in enumerate(inputs)]
        found = await calls.answer(request, chosen, rows, flag(given, "truncate", True))
        answers = [as_json(each) for each in found.answers]
        return reply({"model": name, "version": found.by.version, "tokens": found.tokens, "predictions": answers})

    @router.post("/{name}/reload")
    async def reload(name: str) -> Response:
        chosen = calls.models[name]
        try:
            await _in_daemon(chosen.reload, metrics.reloading(name))
        except OnionError as error:
            raise Refused(f"The model was not exchanged: {error}", 409) from None
        return reply(_told(chosen))

    return router


async def _in_daemon(work: Callable[[], None], counted: AbstractContextManager[None]) -> None:
    """Wait for work in a thread for which the end of the process does not wait, as it would for those of a pool."""
    done: Future[None] = Future()
    done.set_running_or_notify_cancel()  # whoever waits may be cancelled, the work may not

    def run() -> None:
        try:
            with counted:
                work()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=run, name="onion-reload", daemon=True).start()
    await asyncio.wrap_future(done)


def _told(model: ServedModel) -> dict[str, Any]:
    loaded = model.now
    servable = loaded.servable
    labels = list(getattr(getattr(servable, "of", None), "labels", ()))
    about = {"name": model.name, "task": servable.task, "version": loaded.version, "max_length": servable.max_length}
    return {**about, "inputs": input_names(servable), "labels": labels}
