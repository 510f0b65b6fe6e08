"""The calls that steer a run. Each waits a while for the border between two batches where it takes effect."""

# FastAPI reads the annotations of the functions here, and they name what is imported in them: so they are no strings,
# as ``from __future__ import annotations`` would make them.
import asyncio
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from onion.online.desk import Answer, Desk, Refused
from onion.online.service import bodies
from onion.online.service.limits import WAIT, Limits
from onion.online.service.replies import reply

if TYPE_CHECKING:
    from fastapi import APIRouter
    from starlette.responses import Response

PRINTABLE = r"^[\x20-\x7e]+$"
MOST_STEPS = 10**9


def commands(desk: Desk, limits: Limits, closing: asyncio.Event) -> "APIRouter":
    """Return the routes of all commands."""
    from fastapi import APIRouter, Header, Path, Query
    from starlette.requests import Request
    from starlette.responses import Response

    InterruptibleWait = Annotated[float, Query(ge=0, le=WAIT, description="Seconds to wait for the answer.")]  # noqa: N806
    Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200, pattern=PRINTABLE)]  # noqa: N806
    Steps = Annotated[int, Query(ge=1, le=MOST_STEPS)]  # noqa: N806
    Why = Annotated[str, Query(min_length=1, max_length=200)]  # noqa: N806
    Name = Annotated[str, Path(max_length=200)]  # noqa: N806
    router = APIRouter()

    async def ask(command: str, arguments: dict[str, Any], timeout: float, key: str | None) -> Response:
        return _reply(await outcome(desk.ask(command, arguments, key), closing, timeout))

    def add(command: str) -> None:
        @router.post(f"/{command}", name=command)
        async def _(timeout: InterruptibleWait = 30.0, key: Key = None) -> Response:
            return await ask(command, {}, timeout, key)

    for command in ("pause", "resume", "save", "test"):
        add(command)

    @router.post("/step")
    async def step(n: Steps = 1, timeout: InterruptibleWait = 30.0, key: Key = None) -> Response:
        return await ask("step", {"n": n}, timeout, key)

    @router.post("/stop")
    async def stop(why: Why = "asked over the network", timeout: InterruptibleWait = 30.0, key: Key = None) -> Response:
        return await ask("stop", {"why": why}, timeout, key)

    @router.patch("/settings")
    async def settings(request: Request, timeout: InterruptibleWait = 30.0, key: Key = None) -> Response:
        values = await bodies.read_object(request, limits.body)
        if not values:
            raise Refused("The body names no setting.")
        return await ask("set", values, timeout, key)

    @router.post("/rings/{name:path}/enable")
    async def enable(name: Name, timeout: InterruptibleWait = 30.0, key: Key = None) -> Response:
        return await ask("enable", {"ring": name}, timeout, key)

    @router.post("/rings/{name:path}/disable")
    async def disable(name: Name, timeout: InterruptibleWait = 30.0, key: Key = None) -> Response:
        return await ask("disable", {"ring": name}, timeout, key)

    return router


async def outcome(future: Future[Answer], closing: asyncio.Event, timeout: float) -> Answer | None:
    """Wait for an answer; None: it did not come in time, or the service closes. It may still come.

    The future is never cancelled: it is the desk's, and another call with the same key may wait for it.

    Raises:
        Refused: The run ended before the command (409), or that is what the answer says.
    """
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: Future[Answer]) -> None:
        with suppress(RuntimeError):  # the service is closed, and nobody waits any more
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(tell)
    waits = [asyncio.ensure_future(event.wait()) for event in (done, closing)]
    try:
        await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
    try:
        return future.result() if future.done() else None
    except CancelledError:
        raise Refused("The run ended before the command took effect.", 409) from None


def _reply(answer: Answer | None) -> "Response":
    if answer is None:
        return reply({"queued": True}, 202)
    value = {"number": answer.number, "command": answer.command, "step": answer.step, "result": answer.result}
    return reply(value) if answer.error is None else reply({**value, "error": answer.error}, 500)
