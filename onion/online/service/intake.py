"""The calls that bring samples to learn from, and inputs to predict for."""

# Annotations are no strings here: see commands.py.
import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from onion.online.desk import Desk, Refused
from onion.online.service import bodies, wire
from onion.online.service.limits import Limits
from onion.online.service.replies import later, reply
from onion.online.source import Full

if TYPE_CHECKING:
    from fastapi import APIRouter

Given = TypeVar("Given")


def intake(desk: Desk, limits: Limits) -> "APIRouter":
    """Return the routes ``/samples`` and ``/predict``."""
    from fastapi import APIRouter, Query
    from starlette.requests import Request
    from starlette.responses import Response

    Name = Annotated[str | None, Query(min_length=1, max_length=200)]  # noqa: N806
    router = APIRouter()
    uploads, predictions = Turns(limits.uploads), Turns(limits.uploads)

    @router.post("/samples")
    async def samples(request: Request, producer: Name = None, mark: Name = None) -> Response:
        if mark is not None and producer is None:
            raise Refused("A mark needs a producer, whose it is.")
        async with uploads.place():
            body = await bodies.read(request, limits.samples_body)
            try:
                taken = await uploads.turn(lambda: desk.put(read_samples(body, limits), producer or "http", mark))
            except Full as full:
                return reply({"error": str(full)}, 429, later(full.seconds))
        return reply({"taken": taken})

    @router.post("/predict")
    async def predict(request: Request) -> Response:
        async with predictions.place():
            inputs = (await bodies.read_object(request, limits.body)).get("inputs")
            if not isinstance(inputs, list):
                raise Refused('The body is not like {"inputs": [...]}.')
            return reply(await predictions.turn(lambda: desk.predict(inputs)))

    return router


class Turns:
    """Few at once may be under way, and one at a time works.

    Args:
        places: How many may be under way.
    """

    def __init__(self, places: int) -> None:
        self._places, self._lock = asyncio.Semaphore(places), asyncio.Lock()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place.

        Raises:
            Refused: There is none (503).
        """
        if self._places.locked():
            raise Refused("Too many such calls are under way; try again.", 503)
        async with self._places:
            yield

    async def turn(self, work: Callable[[], Given]) -> Given:
        """Work in a thread, so that the other calls are answered meanwhile: a disk or a network may take its time."""
        async with self._lock:
            return await asyncio.to_thread(work)


def read_samples(body: bytes, limits: Limits) -> list[Any]:
    """Return the samples of a body, a JSON value a line.

    Raises:
        Refused: A line is not JSON, or too long (400), there are too many (413), or none (400).
    """
    samples: list[Any] = []
    for number, line in wire.lines(body):
        if len(samples) == limits.samples:
            raise Refused(f"The body has more than {limits.samples:,} samples; nothing was taken.", 413)
        if len(line) > limits.sample:
            raise Refused(f"Line {number} has more than {limits.sample:,} bytes; nothing was taken.")
        try:
            samples.append(wire.loads(line))
        except wire.JsonError as error:
            raise Refused(f"Line {number}: {error}; nothing was taken.") from None
    if not samples:
        raise Refused("The body has no line; send a JSON value a line.")
    return samples
