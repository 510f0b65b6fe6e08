"""``/events``: what happens in a run, as server-sent events (HTML standard, section 9.2)."""

# Annotations are no strings here: see commands.py.
import asyncio
import time
from collections.abc import AsyncIterator
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, TypeAlias

from onion.online.desk import Desk, Refused
from onion.online.service import wire

if TYPE_CHECKING:
    from fastapi import APIRouter

Events: TypeAlias = "Queue[tuple[str, dict[str, Any]] | None]"

LOOK = 0.1  # seconds between two looks: a look costs less than a thread for every subscriber
HEARTBEAT = 15.0  # seconds; proxies close what is silent for longer, commonly after 60


def events(desk: Desk, subscribers: int, closing: asyncio.Event) -> "APIRouter":
    """Return the route ``/events``, for so many subscribers at once."""
    from fastapi import APIRouter
    from starlette.responses import Response, StreamingResponse
    from starlette.types import Receive, Scope, Send

    router, subscribed = APIRouter(), set[int]()

    class Stream(StreamingResponse):
        """A stream that unsubscribes also when its reader has gone, or does not even begin to read."""

        def __init__(self, queue: Events) -> None:
            super().__init__(stream(desk, queue, closing), media_type="text/event-stream")
            self.queue = queue

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await super().__call__(scope, receive, send)
            finally:
                subscribed.discard(id(self.queue))
                desk.unsubscribe(self.queue)

    @router.get("/events")
    async def subscribe() -> Response:
        if len(subscribed) >= subscribers:
            raise Refused(f"There are {subscribers} subscribers already.", 503)
        queue = desk.subscribe()
        subscribed.add(id(queue))
        return Stream(queue)

    return router


async def stream(desk: Desk, queue: Events, closing: asyncio.Event) -> AsyncIterator[bytes]:
    """Yield the status, then the events as they come, then the last status; heartbeats where nothing happens."""
    yield _event("status", desk.status())
    spoke = time.monotonic()
    while True:
        try:
            event = queue.get_nowait()
        except Empty:
            if closing.is_set():
                return
            if time.monotonic() - spoke >= HEARTBEAT:
                spoke = time.monotonic()
                yield b":\n\n"
            await asyncio.sleep(LOOK)
            continue
        if event is None:
            yield _event("status", desk.status())
            return
        spoke = time.monotonic()
        yield _event(*event)


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), wire.dumps(data))
