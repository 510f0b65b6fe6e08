"""A call: its rows become futures in the queue; they are dropped if its caller goes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import attrs
from starlette.requests import Request

from onion.errors import DataError
from onion.http.messages import read_object
from onion.http.refused import Refused
from onion.serving.batcher import Batcher, ClosedError, QueueFullError
from onion.serving.limits import ServingLimits
from onion.serving.servable import Prepared, Servable
from onion.serving.served_models import Loaded, ServedModel, ServedModels
from onion.tasks.data.texts import CUT
from onion.tasks.loading import Given

AT_ONCE = 20_000
"""Characters that are tokenized in the event loop, some milliseconds; more of them in a thread."""


class OverloadedError(Refused):
    """There is no room in the queue.

    Args:
        seconds: after which there should be.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__("Too many texts wait already; try again later.", 429)
        self.seconds = seconds


class GoneError(Exception):
    """The caller has gone; there is nobody to answer."""


@attrs.frozen
class Answered:
    """What came of a call.

    Attributes:
        answers: one for each row.
        tokens: of all rows.
        by: what answered; it may have been exchanged since.
    """

    answers: list[Any]
    tokens: int
    by: Loaded


@attrs.frozen
class Calls:
    """What the routes of all protocols call.

    Attributes:
        models: that are served.
        batcher: computes.
        limits: of the service.
    """

    models: ServedModels
    batcher: Batcher
    limits: ServingLimits
    _long: set[object] = attrs.field(init=False, factory=set)
    """Long calls that are tokenized in threads: they hold locks that the event loop must not wait for."""

    async def body(self, request: Request) -> dict[str, Any]:
        """Return the body of a call, a JSON object.

        Raises:
            Refused: it is none (400), or too large (413).
        """
        return await read_object(request, self.limits.body)

    async def answer(
        self, request: Request, model: ServedModel, rows: Sequence[Given], truncate: bool = True
    ) -> Answered:
        """Return the answers of a model to rows, in their order.

        Args:
            request: the call.
            model: answers.
            rows: what it answers.
            truncate: whether texts that are too long may be cut.

        Raises:
            Refused: there are too many rows or tokens, or a text is too long and may not be cut (413); a row is not
                what the model reads (422); there is no room (429), or the service ends (503).
            GoneError: the caller has gone.
        """
        if len(rows) > self.limits.texts_of_a_call:
            raise Refused(f"{len(rows)} texts are more than {self.limits.texts_of_a_call}, the most of one call.", 413)
        loaded = model.now  # a reload in between exchanges it for the next call
        servable = loaded.servable
        prepared = await self._prepared(servable, rows)
        for number, each in enumerate(prepared, start=1):
            if each.cut and not truncate:
                raise Refused(f"Text {number}: {each.cut.removesuffix(CUT)} would be cut; truncate is false.", 413)
        tokens = sum(each.tokens for each in prepared)
        if tokens > self.limits.tokens:
            raise Refused(f"{tokens:,} tokens are more than {self.limits.tokens:,}, the most of one call.", 413)
        request.state.told = {"model": model.name, "rows": len(rows), "tokens": tokens}
        try:
            futures = self.batcher.put(servable, prepared)
        except QueueFullError as error:
            raise OverloadedError(error.seconds) from None
        except ClosedError:
            raise Refused("The service is shutting down; send the call to another replica.", 503) from None
        return Answered(await _until_gone(request, futures), tokens, loaded)

    async def _prepared(self, servable: Servable, rows: Sequence[Given]) -> list[Prepared]:
        characters = sum(map(_characters, rows))
        if characters > self.limits.body:  # a query stands in the body once, and beside each of its texts here
            raise Refused(f"{characters:,} characters are more than {self.limits.body:,}, the most of one call.", 413)
        if characters <= AT_ONCE:
            return await asyncio.to_thread(_prepare, servable, rows) if self._long else _prepare(servable, rows)
        self._long.add(call := object())
        try:
            return await asyncio.to_thread(_prepare, servable, rows)
        finally:
            self._long.remove(call)


def _prepare(servable: Servable, rows: Sequence[Given]) -> list[Prepared]:
    found = []
    for number, row in enumerate(rows, start=1):
        try:
            found.append(servable.prepare(row))
        except DataError as error:
            raise Refused(f"Text {number}: {str(error).removeprefix('standard input:1: ')}", 422) from None
    return found


def _characters(row: Given) -> int:
    if isinstance(row, str):
        return len(row)
    parts = row if isinstance(row, tuple) else row.values()
    return sum(_length(part) for part in parts)


def _length(cell: Any) -> int:
    """Return the characters of a text, or of a list of words."""
    if isinstance(cell, str):
        return len(cell)
    return sum(1 + len(word) for word in cell if isinstance(word, str)) if isinstance(cell, list) else 0


def _heard(answers: asyncio.Future[Any]) -> None:
    """Take the error of answers that nobody waits for any more; asyncio would log that nobody has."""
    if not answers.cancelled():
        answers.exception()


async def _until_gone(request: Request, futures: Sequence[Future[Any]]) -> list[Any]:
    """Wait for all futures; cancel them if the caller goes, or an answer fails."""
    answers = asyncio.gather(*map(asyncio.wrap_future, futures))
    answers.add_done_callback(_heard)
    gone = asyncio.ensure_future(_gone(request))
    either: list[asyncio.Future[Any]] = [answers, gone]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not answers.done():
            raise GoneError
        return list(await answers)
    finally:
        gone.cancel()
        answers.cancel()
        for future in futures:
            future.cancel()


async def _gone(request: Request) -> None:
    """Return when the caller has closed the connection; its body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
