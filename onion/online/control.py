"""A hand on the loop over the network."""

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
from onion.data.batch_boundary import PATIENCE, BatchBoundary
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError, DataError, HookError
from onion.items.saver import Saver
from onion.online.commands import COMMANDS, Pause
from onion.online.desk import Answer, Refused
from onion.online.events import Event, Events
from onion.online.exchange import Exchange
from onion.online.gathering import told
from onion.online.letters import Letter, Letters, settle
from onion.online.record import Record
from onion.online.rows import Row
from onion.online.view import View

if TYPE_CHECKING:
    from onion.engine.runner import Runner
    from onion.online.service.limits import Limits

log = logging.getLogger("onion")


class Control(RunnerItem):
    """Let a run be watched and steered over HTTP while it goes on.

        Runner(Saver("run"), Record(), StreamProvider(spool), Control(port=8765), ParameterUpdater(...), ...)

    What can be asked: ``docs/online.md``, or ``onion ctl --help``. A command takes effect between two batches, in the
    thread of the run, and is answered with the step after which it did. Commands come one after the other, each once: a
    key that was there before brings the first one's answer. A command is in the Record, on the disk, before it takes
    effect: a run that crashes after it and goes on from an older checkpoint does it again at the same place.

    It stands further in than the item that brings the data and than the Record. Where Accumulate takes several batches
    for one, commands wait until it is done with them. A run inside this one that shares the item leaves it alone. It is
    also a desk for other threads of the same process: ``control.ask("pause", {}).result()``.

    Args:
        host: the address to listen at. Default ``127.0.0.1``: this machine only. Any other needs a token.
        port: 0: any that is free (see ``url``). None: no service, the desk only. Default 8765.
        token: what a caller has to show. Default: the environment's ``ONION_TOKEN``; none there: no token.
        token_file: a file with the token, which only its owner can read.
        limits: of the service; see ``onion.online.service.Limits``.

    Raises:
        CompositionError: there is no Record outside, or the data are brought further in.
        OnionError: at the run's start: the address is in use, or open to others without a token; the extra is missing.
    """

    keep_for_inference = False
    outermost_only = True
    transient = ("_border", "_view", "_exchange", "_messages", "events", "_at", "_record", "url")

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
        self._token = token  # not under the argument's name: drawings and checkpoints tell those
        self.events = Events()
        self.url: str | None = None
        """Where the service listens during a run."""
        self._messages, self._exchange, self._view = Letters(), Exchange(), View()
        self._record: Record | None = None
        self.reset()

    def reset(self) -> None:
        """Begin unpaused, with no batch drawn."""
        self._border: BatchBoundary | None = None
        self._pause = Pause()
        self._batches = 0
        self._at: int | None = None

    def check(self, runner: Runner) -> None:
        """Insist on standing inside the Record, and inside the item that brings the data, as far as can be told."""
        inside = runner.inside(self)
        records = runner.all(Record)
        if not records or any(record is item for item in inside for record in records):
            raise CompositionError(
                f"{self.name} has no Record outside, in which commands are kept; put a Record() just inside the Saver."
            )
        for item in inside:
            if item.provides_data:
                raise CompositionError(f"{self.name} stands outside {item.name}, which brings the data; move it in.")

    def identity(self) -> dict[str, Any]:
        """Return nothing: where it listens makes no other run of it."""
        return {}

    # -- in the run ---------------------------------------------------------------------------------------------------

    def initialize(self, state: State) -> HookIterator:
        """Serve during the run; refuse what was not carried out when it ends."""
        assert state.runner is not None
        self._record = state.runner[Record]
        self._view.begin(state)
        self._exchange.begin(state.runner)
        self.events.begin()
        self._messages.begin(state.runner, self._record)
        service = None
        try:
            service = self._service()
            yield
        finally:
            self.url = None
            self._messages.end()
            self._exchange.end()
            self._view.end(state)
            self.events.tell("status", self._view.status())
            self.events.end()
            if service is not None:
                service.stop()

    def _service(self) -> Any:
        if self.port is None:
            return None
        from onion.online.service import Service

        service = Service(self, self.host, self.port, token=self._token, token_file=self.token_file, limits=self.limits)
        service.start()
        self.url = service.url
        log.info("%s listens at %s", self.name, self.url)
        return service

    def on_pass(self, state: State) -> HookIterator:
        """Stand between the data and the batches."""
        if state.batches is None:
            raise HookError(f"{self.name} stands outside the item that brings the data; put it further in (after it).")
        state.batches = self._border = BatchBoundary(iter(state.batches), state, self._look)
        try:
            yield
        finally:
            self._batches, self._border = self._drawn(), None

    def _drawn(self) -> int:
        return self._batches + (0 if self._border is None else self._border.given)

    def _look(self, state: State) -> None:
        """Carry out what there is to be carried out, between two batches; wait while the run is paused."""
        record = self._record
        assert record is not None
        self._exchange.let_in()
        batch = self._drawn()
        arrived, self._at = batch != self._at, batch
        self._pause.drawn = batch
        while state.pass_stopped is None and (row := record.due(batch, "command")) is not None:
            self._carry_out(state, row, record.known(row["key"]))
        if record.is_done_again(batch):
            state.stop("all of the record has been done again")
        elif not record.follows(batch):
            self._read(state, record)
        if self._view.is_due():
            self._show(state, "running" if arrived else "waiting")

    def _read(self, state: State, record: Record) -> None:
        """Take the commands that are there; those that come while the run is paused, too."""
        there = self._messages.count()
        while state.pass_stopped is None and (there > 0 or self._pause.holds):
            self._exchange.let_in()
            if self._pause.holds and self._view.is_due():
                self._show(state, "paused")
            if (letter := self._messages.take(PATIENCE)) is not None:
                self._carry_out(state, self._recorded(state, record, letter), letter.answer)
            there -= 1

    def _recorded(self, state: State, record: Record, letter: Letter) -> Row:
        try:
            return record.command(self._drawn(), state.step, letter.command, letter.arguments, letter.key)
        except BaseException:
            why = "the command could not be brought to the disk, and was not carried out"
            hint = "a run that goes on from here may find it in its record"  # where only the sync has failed
            settle(letter.answer, Refused(f"{why}; {hint}.", 503))
            raise

    def _carry_out(self, state: State, row: Row, future: Future[Answer] | None) -> None:
        """Let a command take effect, and answer. What goes wrong in it is told, and does not touch the run."""
        assert self._record is not None
        if row["command"] not in COMMANDS:
            raise DataError(f"{self.name}: the record has a command {row['command']!r}, which is unknown here.")
        result, error = None, None
        try:
            result = COMMANDS[row["command"]].act(state, self._pause, row["arguments"])
            result = json.loads(json.dumps(result, default=plain))  # figures may be numpy's
        except Exception as failure:
            log.exception("%s: the command %s failed; the run goes on", self.name, row["command"])
            error = told(failure)
        except BaseException:  # Ctrl-C, which is meant for the run
            settle(future, Refused("the run was interrupted.", 409))
            raise
        answer = self._record.answer(row, result, error)
        for saver in state.runner.all(Saver) if state.runner is not None else ():
            saver.note_change()  # else a run that was stopped just after a checkpoint would be stopped at once again
        log.info("command %d, %s, took effect after step %d", answer.number, answer.command, state.step)
        self._show(state, "paused" if self._pause.holds else "running")
        self.events.tell("command", {**attrs.asdict(answer), "arguments": row["arguments"]})
        settle(future, answer)

    def _show(self, state: State, what: str) -> None:
        news = self._view.look(state, what, self._drawn(), 0 if self._record is None else self._record.commands)
        self.events.tell("status", self._view.status())
        if news:
            self.events.tell("metrics", {"step": state.step, "metrics": news})

    # -- a desk, for other threads ------------------------------------------------------------------------------------

    def ask(self, command: str, arguments: Mapping[str, Any], key: str | None = None) -> Future[Answer]:
        """Put a command in line; see ``onion.online.desk.Desk.ask``."""
        return self._messages.ask(command, arguments, key)

    def status(self) -> dict[str, Any]:
        """Return where the run is."""
        return self._view.status()

    def onion(self) -> dict[str, Any]:
        """Return the drawing, and what each ring costs if the runner is timed."""
        return self._view.onion()

    def put(self, samples: Sequence[Any], producer: str, mark: str | None) -> int:
        """Put samples into the stream; see ``Desk.put``."""
        return self._exchange.put(samples, producer, mark)

    def predict(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Return predictions of the newest snapshot; see ``Desk.predict``."""
        return self._exchange.predict(inputs)

    def subscribe(self) -> Queue[Event | None]:
        """Return a queue of the events to come."""
        return self.events.subscribe()

    def unsubscribe(self, events: Queue[Event | None]) -> None:
        """Send no more."""
        self.events.unsubscribe(events)

    # -- saving -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return where in the record the run is, and whether it is paused."""
        return {"batches": self._drawn(), "paused": self._pause.on, "until": self._pause.until}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on from there; a run that was paused is paused again."""
        self._batches, self._pause = int(saved["batches"]), Pause(bool(saved["paused"]), int(saved["until"]))
