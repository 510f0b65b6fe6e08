"""`ControlServer`: watch and control a run over HTTP."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import Queue
from typing import TYPE_CHECKING, Any

import attrs

from onion.checkpointing.checkpoint import plain
from onion.data.batch_iterator import POLL_INTERVAL, BatchBoundary
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError, DataError, HookError
from onion.items.saver import Saver
from onion.online.control.commands import COMMANDS, CommandQueue, Pause, QueuedCommand, settle
from onion.online.control.gateway import Event, EventBus, Gateway, StatusView
from onion.online.control.run_api import Answer, Refused
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

    alone_because = "its commands reach one process"

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
        """Serve during the run; at its end, refuse the commands that are still queued."""
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

    def _look(self, state: State) -> None:
        """Carry out the commands that are due between two batches; wait while the run is paused."""
        journal = self._journal
        assert journal is not None
        self._gateway.run_pending()
        batch = self._drawn()
        arrived, self._at = batch != self._at, batch
        self._pause.drawn = batch
        while state.pass_stopped is None and (row := journal.due(batch, "command")) is not None:
            self._carry_out(state, row, journal.answers.of(row["key"]))
        if journal.is_replayed(batch):
            state.stop("the whole journal has been replayed")
        elif not journal.follows(batch):
            self._read(state, journal)
        if self._status.is_due():
            self._show(state, "running" if arrived else "waiting")

    def _read(self, state: State, journal: Journal) -> None:
        """Take the queued commands, and those that arrive while the run is paused."""
        there = self._queue.count()
        while state.pass_stopped is None and (there > 0 or self._pause.holds):
            self._gateway.run_pending()
            if self._pause.holds and self._status.is_due():
                self._show(state, "paused")
            if (queued := self._queue.take(POLL_INTERVAL)) is not None:
                self._carry_out(state, self._journaled(state, journal, queued), queued.answer)
            there -= 1

    def _journaled(self, state: State, journal: Journal, queued: QueuedCommand) -> JournalRow:
        try:
            return journal.command(self._drawn(), state.step, queued.command, queued.arguments, queued.key)
        except BaseException:
            why = "the command could not be written to the disk, and was not carried out"
            hint = "a run that resumes from here may find it in its journal"  # where only the sync has failed
            settle(queued.answer, Refused(f"{why}; {hint}.", 503))
            raise

    def _carry_out(self, state: State, row: JournalRow, future: Future[Answer] | None) -> None:
        """Carry out a command and answer it. An error in it is reported and does not affect the run."""
        assert self._journal is not None
        if row["command"] not in COMMANDS:
            raise DataError(f"{self.name}: the journal has a command {row['command']!r}, which is unknown.")
        result, error = None, None
        try:
            result = COMMANDS[row["command"]].act(state, self._pause, row["arguments"])
            result = json.loads(json.dumps(result, default=plain))  # metrics may be numpy scalars
        except Exception as failure:
            log.exception("%s: the command %s failed; the run continues", self.name, row["command"])
            error = describe(failure)
        except BaseException:  # Ctrl-C, which is intended for the run
            settle(future, Refused("the run was interrupted.", 409))
            raise
        answer = self._journal.answer(row, result, error)
        for saver in state.runner.all(Saver) if state.runner is not None else ():
            saver.note_change()  # or a run that was stopped just after a checkpoint would stop again when it resumes
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
        """Queue a command; see ``RunAPI.ask``."""
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
