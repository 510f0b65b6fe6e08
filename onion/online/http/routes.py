"""All calls: status, Prometheus metrics, commands, samples, predictions, events."""

# No ``from __future__ import annotations``: FastAPI reads the annotations of functions that are defined in functions.
import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import asynccontextmanager, suppress
from queue import Empty, Queue
from typing import Annotated, Any, TypeAlias, TypeVar

from fastapi import APIRouter, Header, Path, Query
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from onion.http.messages import JsonError, dumps, lines, loads, read_body, read_object, reply, retry_after
from onion.http.refused import Refused
from onion.online.control.run_api import Answer, RunAPI
from onion.online.http.limits import MAX_WAIT_SECONDS, Limits
from onion.online.sources.source import Full

MAX_STEPS = 10**9
POLL_SECONDS = 0.1  # for events: polling costs less than a thread for each subscriber
HEARTBEAT_SECONDS = 15.0  # proxies close connections that are silent for longer, often after 60

Result = TypeVar("Result")
Events: TypeAlias = "Queue[tuple[str, dict[str, Any]] | None]"
InterruptibleWait = Annotated[float, Query(ge=0, le=MAX_WAIT_SECONDS, description="Seconds to wait for the answer.")]
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200, pattern=r"^[\x20-\x7e]+$")]
Steps = Annotated[int, Query(ge=1, le=MAX_STEPS)]
Reason = Annotated[str, Query(min_length=1, max_length=200)]
Name = Annotated[str, Path(max_length=200)]
Label = Annotated[str | None, Query(min_length=1, max_length=200)]


# -- status and metrics ------------------------------------------------------------------------------------------------

METHODS = ("GET", "POST", "PATCH")
SINGLE = {
    "step": "Batches finished over the whole run.",
    "pass": "Passes finished.",
    "loss": "Loss of the last batch.",
    "queue": "Samples waiting.",
    "rejected": "Samples rejected.",
}
NAMES = {"queue": "queue_samples", "rejected": "rejected_samples"}


class Metrics:
    """The values of one service, in a registry of its own, apart from those of other code in the process."""

    def __init__(self, run: RunAPI) -> None:
        self._run = run
        self._registry = CollectorRegistry(auto_describe=False)
        labels = ["method", "path", "status"]
        self._requests = Counter("onion_http_requests", "Calls of the service.", labels, registry=self._registry)
        self._registry.register(self)

    def count(self, method: str, path: str, status: int) -> None:
        """Count a call by the path of its route: of the paths that are requested, there may be any number."""
        self._requests.labels(method if method in METHODS else "other", path, str(status)).inc()

    def text(self) -> bytes:
        """Return all values."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the values of the run."""
        status = self._run.status()
        for key, text in SINGLE.items():
            if (value := status.get(key)) is not None:
                yield GaugeMetricFamily(f"onion_{NAMES.get(key, key)}", text, value=value)
        yield CounterMetricFamily("onion_commands", "Commands that took effect.", value=status.get("commands", 0))
        for key, text in (("metrics", "Metrics as last reported."), ("log_values", "Log values of items.")):
            family = GaugeMetricFamily(f"onion_{key[:-1]}", text, labels=["name"])
            for name, value in status.get(key, {}).items():
                if value is not None:
                    family.add_metric([name], value)
            yield family


def status_routes(run: RunAPI, metrics: Metrics) -> APIRouter:
    """Return the read-only routes: ``/status``, ``/onion`` and ``/metrics``."""
    router = APIRouter()

    @router.get("/status")
    async def status() -> Response:
        return reply(run.status())

    @router.get("/onion")
    async def onion() -> Response:
        return reply(run.onion())

    @router.get("/metrics")
    async def prometheus() -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return router


# -- commands: each waits for the batch boundary at which it takes effect ----------------------------------------------


def command_routes(run: RunAPI, limits: Limits, closing: asyncio.Event) -> APIRouter:
    """Return the routes of all commands."""
    router = APIRouter()

    async def ask(command: str, arguments: dict[str, Any], timeout: float, key: str | None) -> Response:
        answer = await outcome(run.ask(command, arguments, key), closing, timeout)
        if answer is None:
            return reply({"queued": True}, 202)
        value = {"number": answer.number, "command": answer.command, "step": answer.step, "result": answer.result}
        return reply(value) if answer.error is None else reply({**value, "error": answer.error}, 500)

    def add(command: str) -> None:
        @router.post(f"/{command}", name=command)
        async def _(timeout: InterruptibleWait = 30.0, key: Key = None) -> Response:
            return await ask(command, {}, timeout, key)

    def add_switch(command: str) -> None:
        @router.post(f"/rings/{{name:path}}/{command}", name=command)
        async def _(name: Name, timeout: InterruptibleWait = 30.0, key: Key = None) -> Response:
            return await ask(command, {"ring": name}, timeout, key)

    for command in ("pause", "resume", "save", "test"):
        add(command)
    for command in ("enable", "disable"):
        add_switch(command)

    @router.post("/step")
    async def step(n: Steps = 1, timeout: InterruptibleWait = 30.0, key: Key = None) -> Response:
        return await ask("step", {"n": n}, timeout, key)

    @router.post("/stop")
    async def stop(
        why: Reason = "requested over the network", timeout: InterruptibleWait = 30.0, key: Key = None
    ) -> Response:
        return await ask("stop", {"why": why}, timeout, key)

    @router.patch("/settings")
    async def settings(request: Request, timeout: InterruptibleWait = 30.0, key: Key = None) -> Response:
        values = await read_object(request, limits.body)
        if not values:
            raise Refused("The body contains no setting.")
        return await ask("set", values, timeout, key)

    return router


async def outcome(future: Future[Answer], closing: asyncio.Event, timeout: float) -> Answer | None:
    """Wait for an answer; None: it did not arrive in time, or the service stops. It may still arrive.

    The future is never cancelled, as ``asyncio.wrap_future`` would: another call with the same key may wait for it.

    Raises:
        Refused: The run ended before the command (409), or refused it.
    """
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def wake(_: Future[Answer]) -> None:
        with suppress(RuntimeError):  # the service has stopped, and no call waits any more
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(wake)
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


# -- samples and predictions -------------------------------------------------------------------------------------------


def sample_routes(run: RunAPI, limits: Limits) -> APIRouter:
    """Return the routes ``/samples`` and ``/predict``."""
    router = APIRouter()
    uploads, predictions = Turns(limits.uploads), Turns(limits.uploads)

    @router.post("/samples")
    async def samples(request: Request, producer: Label = None, cursor: Label = None) -> Response:
        if cursor is not None and producer is None:
            raise Refused("A cursor needs a producer.")
        async with uploads.place():
            body = await read_body(request, limits.samples_body)
            try:
                taken = await uploads.turn(lambda: run.put(read_samples(body, limits), producer or "http", cursor))
            except Full as full:
                return reply({"error": str(full)}, 429, retry_after(full.seconds))
        return reply({"taken": taken})

    @router.post("/predict")
    async def predict(request: Request) -> Response:
        async with predictions.place():
            inputs = (await read_object(request, limits.body)).get("inputs")
            if not isinstance(inputs, list):
                raise Refused('The body must be like {"inputs": [...]}.')
            return reply(await predictions.turn(lambda: run.predict(inputs)))

    return router


class Turns:
    """Accepts a few calls at a time, and lets one at a time do its work."""

    def __init__(self, places: int) -> None:
        self._places, self._lock = asyncio.Semaphore(places), asyncio.Lock()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Occupy a place; raise Refused (503) if all are occupied."""
        if self._places.locked():
            raise Refused("Too many such calls are in progress; try again.", 503)
        async with self._places:
            yield

    async def turn(self, work: Callable[[], Result]) -> Result:
        """Work in a thread, so that other calls are answered meanwhile: disks and networks may be slow."""
        async with self._lock:
            return await asyncio.to_thread(work)


def read_samples(body: bytes, limits: Limits) -> list[Any]:
    """Return the samples of a body, one JSON value per line.

    Raises:
        Refused: A line is not JSON or too long (400), there are too many (413), or there are none (400).
    """
    samples: list[Any] = []
    for number, line in lines(body):
        if len(samples) == limits.samples:
            raise Refused(f"The body has more than {limits.samples:,} samples; no sample was accepted.", 413)
        if len(line) > limits.sample:
            raise Refused(f"Line {number} has more than {limits.sample:,} bytes; no sample was accepted.")
        try:
            samples.append(loads(line))
        except JsonError as error:
            raise Refused(f"Line {number}: {error}; no sample was accepted.") from None
    if not samples:
        raise Refused("The body is empty; send one JSON value per line.")
    return samples


# -- server-sent events (HTML standard, section 9.2) -------------------------------------------------------------------


def event_routes(run: RunAPI, subscribers: int, closing: asyncio.Event) -> APIRouter:
    """Return the route ``/events``, for at most that many concurrent subscribers."""
    router, subscribed = APIRouter(), set[int]()

    class Stream(StreamingResponse):
        """A stream that also unsubscribes if its reader disconnects, or never begins to read."""

        def __init__(self, queue: Events) -> None:
            super().__init__(stream(run, queue, closing), media_type="text/event-stream")
            self.queue = queue

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await super().__call__(scope, receive, send)
            finally:
                subscribed.discard(id(self.queue))
                run.unsubscribe(self.queue)

    @router.get("/events")
    async def subscribe() -> Response:
        if len(subscribed) >= subscribers:
            raise Refused(f"There are {subscribers} subscribers already.", 503)
        queue = run.subscribe()
        subscribed.add(id(queue))
        return Stream(queue)

    return router


async def stream(run: RunAPI, queue: Events, closing: asyncio.Event) -> AsyncIterator[bytes]:
    """Yield the status, the events as they arrive, and the final status; heartbeats while there is nothing to send."""
    yield _event("status", run.status())
    spoke = time.monotonic()
    while True:
        try:
            event = queue.get_nowait()
        except Empty:
            if closing.is_set():
                return
            if time.monotonic() - spoke >= HEARTBEAT_SECONDS:
                spoke = time.monotonic()
                yield b":\n\n"
            await asyncio.sleep(POLL_SECONDS)
            continue
        if event is None:
            yield _event("status", run.status())
            return
        spoke = time.monotonic()
        yield _event(*event)


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), dumps(data))
