"""`ControlServer`: watch and control a run over HTTP."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

import attrs

from onion.checkpointing.checkpoint import plain
from onion.data.batch_iterator import POLL_INTERVAL, BatchBoundary
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError, DataError, HookError, RankError
from onion.host import launch
from onion.http.refused import Refused
from onion.items.mailbox import AGAIN
from onion.items.saver import Saver
from onion.online.control.commands import COMMANDS, Arguments, CommandQueue, Pause, settle
from onion.online.control.gateway import Event, EventBus, Gateway, StatusView
from onion.online.control.run_api import Answer
from onion.online.journal.journal import Journal, JournalRow
from onion.online.stream.batch_assembler import describe

if TYPE_CHECKING:
    from onion.engine.runner import Runner
    from onion.online.http.limits import Limits

log = logging.getLogger("onion")


class ControlServer(RunnerItem):
    """Watch and control a run over HTTP while it trains.

        Runner(Saver("run"), Journal(), StreamProvider(spool), ControlServer(port=8765), ParameterUpdater(...), ...)

    ``docs/online.md`` and ``onion ctl --help`` list the calls. A command takes effect between two batches, in the
    thread of the run; the answer names the step after which it did. Commands are carried out in the order of arrival,
    each once: a key that was used before returns the answer of the first command. A command is written to the Journal
    and synced before it takes effect, so a run that crashes and resumes from an older checkpoint repeats it at the same
    batch.

    Place it inside the Journal and inside the item that provides the data. With Accumulate, commands wait until the
    update is complete. An inner run that shares the item does not use it. Other threads of the process may call it as
    a ``RunAPI``: ``control.ask("pause", {}).result()``.

    Of several processes rank 0 serves, predicts and writes the journal; a command is carried out by all ranks after the
    same step, and answered once. An error of all ranks is the answer, and the run goes on; one that only some meet ends
    the run, since they are no longer alike, and names them. While the run is paused all ranks wait, however long it
    takes, and notice signals and the end of any of them.

    Args:
        host: the address to listen at. Default ``127.0.0.1``. Any other address requires a token.
        port: 0: any free port (see ``url``). None: no service, only calls of this process. Default 8765.
        token: required of callers. Default: the environment variable ``ONION_TOKEN``; if it is not set, no token.
        token_file: a file with the token, readable by its owner only.
        limits: of the service; see ``onion.online.Limits``.

    Raises:
        CompositionError: there is no Journal outside, or the item that provides the data is inside.
        OnionError: when the run starts: the address is in use, or open to others without a token; the extra is missing.
    """

    keep_for_inference = False
    outermost_only = True
    transient = ("_border", "_status", "_gateway", "_queue", "events", "_at", "_journal", "url")

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int | None = 8765,
        token: str | None = None,
        token_file: str | Path | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.host, self.port, self.token_file, self.limits = host, port, token_file, limits
        self._token = token  # not under the argument's name: drawings and checkpoints show those
        self.events = EventBus()
        self.url: str | None = None
        """Where the service listens during a run."""
        self._queue, self._gateway, self._status = CommandQueue(), Gateway(), StatusView()
        self._journal: Journal | None = None
        self.reset()

    def reset(self) -> None:
        """Start unpaused, with no batch drawn."""
        self._border: BatchBoundary | None = None
        self._pause = Pause()
        self._batches = 0
        self._at: int | None = None

    def check(self, runner: Runner) -> None:
        """Require a Journal and the item that provides the data outside, as far as the runner shows."""
        inside = runner.inside(self)
        journals = runner.all(Journal)
        if not journals or any(journal is item for item in inside for journal in journals):
            raise CompositionError(
                f"{self.name} has no Journal outside, which stores its commands; put a Journal() just inside the Saver."
            )
        for item in inside:
            if item.provides_data:
                raise CompositionError(
                    f"{self.name} is outside {item.name}, which provides the data; move it inside (after it)."
                )

    def identity(self) -> dict[str, Any]:
        """Return nothing: the address does not identify a run."""
        return {}

    # -- in the run ---------------------------------------------------------------------------------------------------

    def initialize(self, state: State) -> HookIterator:
        """Serve during the run; at its end, refuse the commands that are still queued. Of several processes, rank 0."""
        if not self._leads:
            yield
            return
        assert state.runner is not None
        self._journal = state.runner[Journal]
        self._status.begin(state)
        self._gateway.begin(state.runner)
        self.events.begin()
        self._queue.begin(state.runner, self._journal)
        service = None
        try:
            service = self._service()
            yield
        finally:
            self.url = None
            self._queue.end()
            self._gateway.end()
            self._status.end(state)
            self.events.publish("status", self._status.status())
            self.events.end()
            if service is not None:
                service.stop()

    def _service(self) -> Any:
        if self.port is None:
            return None
        from onion.online.http import Service

        service = Service(self, self.host, self.port, token=self._token, token_file=self.token_file, limits=self.limits)
        service.start()
        self.url = service.url
        log.info("%s listens at %s", self.name, self.url)
        return service

    def on_pass(self, state: State) -> HookIterator:
        """Look for commands between two batches."""
        if state.batches is None:
            raise HookError(f"{self.name} is outside the item that provides the data; move it inside (after it).")
        state.batches = self._border = BatchBoundary(iter(state.batches), state, self._look)
        try:
            yield
        finally:
            self._batches, self._border = self._drawn(), None

    def _drawn(self) -> int:
        return self._batches + (0 if self._border is None else self._border.given)

    @property
    def _leads(self) -> bool:
        """Whether this process takes the commands."""
        return self.group is None or self.group.rank == 0

    def _look(self, state: State) -> None:
        """Carry out the commands that are due between two batches; wait while the run is paused."""
        batch = self._drawn()
        arrived, self._at = batch != self._at, batch
        self._pause.drawn = batch
        waiting = self._queue.count()
        while state.pass_stopped is None:
            due = self._next(state, waiting) if self._leads else None
            if self.group is not None:
                due = self.group.broadcast(state, due)
            if due is None:
                break
            if due != AGAIN:
                self._carry_out(state, *due)
            waiting -= 1
        if self._leads and self._status.is_due():
            self._show(state, "running" if arrived else "waiting")

    def _next(self, state: State, waiting: int) -> Any:
        """Return the next command and its arguments, or AGAIN while the run is paused; None: the next batch.

        Args:
            state: of the run.
            waiting: whether a command is taken from the queue, though the run is not paused: more than 0.
        """
        journal, batch = self._journal, self._pause.drawn
        assert journal is not None
        self._gateway.run_pending()
        if (row := journal.ahead(batch, "command")) is not None:
            return [row["command"], row["arguments"]]
        if journal.is_replayed(batch):
            state.stop("the whole journal has been replayed")
            return None
        if journal.follows(batch):
            return None
        if self._pause.holds and self._status.is_due():
            self._show(state, "paused")
        if waiting > 0 or self._pause.holds:
            queued = self._queue.peek(POLL_INTERVAL)
            if queued is not None:
                return [queued.command, queued.arguments]
        return AGAIN if self._pause.holds else None

    def _carry_out(self, state: State, command: str, arguments: Arguments) -> None:
        """Carry out a command and answer it. An error in it is reported and does not affect the run."""
        row, future = self._taken(state) if self._leads else (None, None)
        result, error = None, None
        act = partial(_acted, state, self._pause, command, arguments)
        try:
            result = act() if self.group is None else self.group.carry_out(act)
        except RankError as failure:
            settle(future, Refused(f"the run ends: {failure}", 409))
            raise
        except Exception as failure:
            log.exception("%s: the command %s failed; the run continues", self.name, command)
            error = describe(failure)
        except BaseException:  # Ctrl-C, which is intended for the run
            settle(future, Refused("the run was interrupted.", 409))
            raise
        for saver in state.runner.all(Saver) if state.runner is not None else ():
            saver.note_change()  # or a run that was stopped just after a checkpoint would stop again when it resumes
        if row is not None:
            self._answer(state, row, future, result, error)

    def _taken(self, state: State) -> tuple[JournalRow, Future[Answer] | None]:
        """Take the next command; return its row in the journal, where it is by now, and the future of its answer."""
        journal = self._journal
        assert journal is not None
        if (row := journal.due(self._pause.drawn, "command")) is not None:
            if row["command"] not in COMMANDS:
                raise DataError(f"{self.name}: the journal has a command {row['command']!r}, which is unknown.")
            return row, journal.answers.of(row["key"])
        queued = self._queue.take()
        assert queued is not None
        try:
            row = journal.command(self._pause.drawn, state.step, queued.command, queued.arguments, queued.key)
        except BaseException:
            why = "the command could not be written to the disk, and was not carried out"
            hint = "a run that resumes from here may find it in its journal"  # where only the sync has failed
            settle(queued.answer, Refused(f"{why}; {hint}.", 503))
            raise
        return row, queued.answer

    def _answer(
        self, state: State, row: JournalRow, future: Future[Answer] | None, result: Any, error: str | None
    ) -> None:
        assert self._journal is not None
        answer = self._journal.answer(row, result, error)
        log.info("command %d, %s, took effect after step %d", answer.number, answer.command, state.step)
        self._show(state, "paused" if self._pause.holds else "running")
        self.events.publish("command", {**attrs.asdict(answer), "arguments": row["arguments"]})
        settle(future, answer)

    def _show(self, state: State, what: str) -> None:
        new = self._status.update(state, what, self._drawn(), 0 if self._journal is None else self._journal.commands)
        self.events.publish("status", self._status.status())
        if new:
            self.events.publish("metrics", {"step": state.step, "metrics": new})

    # -- RunAPI, for other threads ------------------------------------------------------------------------------------

    def ask(self, command: str, arguments: Mapping[str, Any], key: str | None = None) -> Future[Answer]:
        """Queue a command; see ``RunAPI.ask``. Of several processes rank 0 takes it."""
        if launch.rank() > 0:
            raise Refused(f"this is rank {launch.rank()}, and rank 0 takes the commands of all; ask it.", 409)
        return self._queue.ask(command, arguments, key)

    def status(self) -> dict[str, Any]:
        """Return the status of the run."""
        return self._status.status()

    def onion(self) -> dict[str, Any]:
        """Return the drawing, and the cost of each item if the runner is timed."""
        return self._status.onion()

    def put(self, samples: Sequence[Any], producer: str, cursor: str | None) -> int:
        """Put samples into the stream; see ``RunAPI.put``."""
        return self._gateway.put(samples, producer, cursor)

    def predict(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Return predictions of the newest snapshot; see ``RunAPI.predict``."""
        return self._gateway.predict(inputs)

    def subscribe(self) -> Queue[Event | None]:
        """Return a queue of the events to come."""
        return self.events.subscribe()

    def unsubscribe(self, events: Queue[Event | None]) -> None:
        """Unsubscribe the queue."""
        self.events.unsubscribe(events)

    # -- saving -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the place in the journal, and whether the run is paused."""
        return {"batches": self._drawn(), "paused": self._pause.on, "until": self._pause.until}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state; a run that was paused is paused again."""
        self._batches, self._pause = int(saved["batches"]), Pause(bool(saved["paused"]), int(saved["until"]))


def _acted(state: State, pause: Pause, command: str, arguments: Arguments) -> Any:
    """Carry out a command; return what it comes to as JSON values: metrics may be numpy scalars."""
    return json.loads(json.dumps(COMMANDS[command].act(state, pause, arguments), default=plain))
