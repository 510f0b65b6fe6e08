"""What other threads exchange with a run without waiting for its loop: samples, predictions, status and events."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeAlias

from onion.engine.state import State
from onion.errors import DataError
from onion.http.refused import Refused
from onion.monitoring.log_values import log_values, loss_of
from onion.online.control.commands import settings_of, switches_of
from onion.online.learning.publish import Publish
from onion.online.stream.batch_assembler import describe
from onion.online.stream.stream_provider import StreamProvider
from onion.training.adjustable import Adjustable

if TYPE_CHECKING:
    from onion.engine.runner import Runner

STATUS_SECONDS = 1.0
"""Between two updates of what is expensive to read: the loss, which synchronizes the device, and log values."""

MAX_EVENTS = 1000  # events queued for one subscriber

Event: TypeAlias = "tuple[str, dict[str, Any]]"
"""Kind and content; the content is JSON."""


class Gateway:
    """Passes samples and inputs to the items of a run that handle them; any thread may call it."""

    def __init__(self) -> None:
        self._provider: StreamProvider | None = None
        self._publish: Publish | None = None
        self._writing = Lock()

    def begin(self, runner: Runner) -> None:
        """Find the items of a run."""
        self._provider = next(iter(runner.all(StreamProvider)), None)
        self._publish = next(iter(runner.all(Publish)), None)

    def run_pending(self) -> None:
        """Make the predictions that wait for a batch boundary; see Publish."""
        if self._publish is not None:
            self._publish.run_pending()

    def end(self) -> None:
        """Make all pending predictions; later ones are made immediately, as the run has ended."""
        if self._publish is not None:
            self._publish.end()

    def put(self, samples: Sequence[Any], producer: str, cursor: str | None) -> int:
        """Put samples into the stream and return their number; 0 if the cursor is the producer's last one.

        Raises:
            Refused: The run has no stream that accepts samples, or it rejects these.
            Full: There is no room.
        """
        source: Any = None if self._provider is None else self._provider.source
        make_writer = getattr(source, "writer", None)
        if make_writer is None:
            raise Refused("the run has no stream that takes samples over HTTP; use a Spool or a RedisStream.", 404)
        if len(samples) > getattr(source, "capacity", len(samples)):
            raise Refused(f"{len(samples)} samples at once exceed the capacity; send fewer.", 413)
        with self._writing, make_writer(producer) as writer:  # serialized: a producer's cursor is for one writer
            try:
                return int(writer.write(list(samples), cursor))
            except DataError as error:
                raise Refused(str(error), 503) from error

    def predict(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Return predictions of the newest snapshot, and its step.

        Raises:
            Refused: Nothing is published, or an input is invalid.
        """
        if self._publish is None:
            raise Refused("the run publishes nothing; it has no Publish.", 404)
        try:
            return dict(self._publish.predict(list(inputs)))
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"the network cannot process these inputs ({describe(error)}).") from error


class StatusView:
    """The latest status of a run. ``begin``, ``update`` and ``end`` are for its thread, the rest for any thread.

    Other threads see copies, which the thread of the run makes between two batches.
    """

    def __init__(self) -> None:
        self._seen: dict[str, Any] = {"state": "ended", "step": 0}
        self._state: State | None = None
        self._runner: Runner | None = None
        self._drawing = ""
        self._next = 0.0
        self._reported: dict[str, int] = {}
        self._before = (0.0, 0)
        self._since = 0.0
        self._provider: StreamProvider | None = None

    def begin(self, state: State) -> None:
        """Start with a run."""
        runner = state.runner
        assert runner is not None
        self._state, self._runner, self._drawing = state, runner, str(runner)
        self._since, self._reported, self._next = time(), {}, 0.0
        self._before = (monotonic(), state.step)
        self._provider = next(iter(runner.all(StreamProvider)), None)
        self.update(state, "running", 0)

    def is_due(self) -> bool:
        """Return whether it is time for an update."""
        return monotonic() >= self._next

    def update(self, state: State, what: str, drawn: int, commands_given: int = 0) -> dict[str, float]:
        """Update the status; return the metrics reported since the last update.

        Args:
            state: of the run.
            what: ``running``, ``paused``, or ``waiting`` (for data).
            drawn: batches drawn over the whole run.
            commands_given: commands carried out over the whole run.
        """
        assert self._runner is not None
        now, (then, step) = monotonic(), self._before
        self._next = now + STATUS_SECONDS
        self._before = (now, state.step)
        self._seen = {
            "state": what,
            "step": state.step,
            "pass": state.pass_id,
            "batch": drawn,
            "loss": loss_of(state).get("loss"),
            "metrics": dict(state.metrics),
            "log_values": log_values(state),
            "queue": None if self._provider is None else self._provider.waiting(),
            "rejected": 0 if self._provider is None else self._provider.rejected_count,
            "steps_per_second": (state.step - step) / (now - then) if now > then else 0.0,
            "since": self._since,
            "settings": {name: _range(each) for name, each in settings_of(self._runner).items()},
            "rings": {name: switch.on for name, switch in switches_of(self._runner).items()},
            "commands": commands_given,
        }
        new = {name: state.metrics[name] for name, at in state.reported.items() if at > self._reported.get(name, -1)}
        self._reported = dict(state.reported)
        return new

    def end(self, state: State) -> None:
        """Mark the run as ended."""
        self._seen = {**self._seen, "state": "ended", "step": state.step}
        self._state = None

    def status(self) -> dict[str, Any]:
        """Return the latest status, with the current step."""
        seen, state = self._seen, self._state
        return {**seen} if state is None else {**seen, "step": state.step, "pass": state.pass_id}

    def onion(self) -> dict[str, Any]:
        """Return the drawing of the runner, and the cost of each item so far if the runner is timed."""
        clock = None if self._runner is None else self._runner.clock
        costs = [] if clock is None else list(clock.costs.items())
        rings = [
            {
                "name": name,
                "hook": hook,
                "calls": cost.calls,
                "way_in_us": cost.way_in / 1e3 / max(cost.calls, 1),
                "way_out_us": cost.way_out / 1e3 / max(cost.calls, 1),
                "total_ms": (cost.way_in + cost.way_out) / 1e6,
            }
            for (name, hook), cost in costs
        ]
        return {"drawing": self._drawing, "timed": clock is not None, "rings": rings}


def _range(setting: Adjustable) -> dict[str, float]:
    return {"value": setting.get(), "low": setting.low, "high": setting.high}


class EventBus:
    """Sends every event to every subscriber; a slow subscriber loses the oldest events and blocks none."""

    def __init__(self) -> None:
        self._queues: list[Queue[Event | None]] = []
        self._lock = Lock()
        self._over = False

    def begin(self) -> None:
        """Start with a run."""
        self._over = False

    def subscribe(self) -> Queue[Event | None]:
        """Return a queue of the events to come."""
        queue: Queue[Event | None] = Queue(MAX_EVENTS)
        with self._lock:
            self._queues.append(queue)
            if self._over:
                queue.put_nowait(None)
        return queue

    def unsubscribe(self, queue: Queue[Event | None]) -> None:
        """Remove a queue, if it is still subscribed."""
        with self._lock, suppress(ValueError):
            self._queues.remove(queue)

    def publish(self, kind: str, event: dict[str, Any]) -> None:
        """Send an event to all subscribers."""
        self._put((kind, event))

    def end(self) -> None:
        """Send the end, None, to all subscribers, and to later ones when they subscribe."""
        self._over = True
        self._put(None)

    def _put(self, event: Event | None) -> None:
        with self._lock:
            for queue in self._queues:
                while True:
                    try:
                        queue.put_nowait(event)
                        break
                    except Full:
                        with suppress(Empty):
                            queue.get_nowait()
