"""The commands of a run: the check and the action of each, and the queue in which they wait for a batch boundary."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from threading import Lock
from typing import TYPE_CHECKING, Any

import attrs

from onion.checkpointing.checkpoint import plain
from onion.engine.item import RunnerItem
from onion.engine.state import State
from onion.errors import OnionError
from onion.http.refused import Refused
from onion.items.saver import Saver
from onion.items.tester import Tester
from onion.online.control.run_api import Answer
from onion.online.learning.switch import Switch
from onion.peek_queue import PeekQueue
from onion.training.adjustable import Adjustable
from onion.validation import is_whole

if TYPE_CHECKING:
    from onion.engine.runner import Runner
    from onion.online.journal.journal import Journal

Arguments = Mapping[str, Any]

MAX_REASON = 1000  # maximum length of a reason to stop


@attrs.define
class Pause:
    """Whether the run is paused, and from which batch.

    Attributes:
        on: Whether it waits once it has drawn ``until`` batches.
        until: Counted over the whole run.
        drawn: Batches drawn so far.
    """

    on: bool = False
    until: int = 0
    drawn: int = 0

    @property
    def holds(self) -> bool:
        """Whether the run waits now."""
        return self.on and self.drawn >= self.until


@attrs.frozen
class Command:
    """One kind of command.

    Attributes:
        act: Executes it between two batches; returns a JSON value.
        names: Of its arguments; None: they are names of settings.
        validate: Raises Refused for invalid arguments, before anything is changed.
    """

    act: Callable[[State, Pause, Arguments], Any]
    names: tuple[str, ...] | None = ()
    validate: Callable[[Runner, Arguments], None] = lambda runner, arguments: None

    def check(self, runner: Runner, arguments: Arguments) -> None:
        """Raise Refused if a run cannot execute the command with these arguments."""
        unknown = [] if self.names is None else sorted(map(str, arguments.keys() - set(self.names)))
        if unknown:
            raise Refused(f"unknown argument {unknown[0]!r} of this command; it has {_listed(self.names or ())}.")
        self.validate(runner, arguments)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def settings_of(runner: Runner) -> dict[str, Adjustable]:
    """Return the adjustable settings, by ``<item>.<setting>``."""
    return {
        f"{item.name}.{name}": adjustable for item in runner.walk() for name, adjustable in item.adjustable().items()
    }


def switches_of(runner: Runner) -> dict[str, Switch]:
    """Return the switches, by the name of the item in each."""
    return {switch.items[0].name: switch for switch in runner.all(Switch)}


# -- the run -----------------------------------------------------------------------------------------------------------


def _set_pause(on: bool) -> Callable[[State, Pause, Arguments], None]:
    def act(state: State, pause: Pause, arguments: Arguments) -> None:
        pause.on, pause.until = on, 0

    return act


def _check_step(runner: Runner, arguments: Arguments) -> None:
    n = arguments.get("n", 1)
    if not (is_whole(n) and 1 <= n <= 10**9):
        raise Refused(f"n must be an integer between 1 and 1,000,000,000, got {n!r}.")


def _step(state: State, pause: Pause, arguments: Arguments) -> None:
    pause.on, pause.until = True, pause.drawn + int(arguments.get("n", 1))


def _check_stop(runner: Runner, arguments: Arguments) -> None:
    why = arguments.get("why", "")
    if not isinstance(why, str) or len(why) > MAX_REASON:
        raise Refused(f"why must be a text of at most {MAX_REASON} characters.")


def _stop(state: State, pause: Pause, arguments: Arguments) -> None:
    state.stop(arguments.get("why") or "stopped by a command")


# -- savers and testers ------------------------------------------------------------------------------------------------


def _require(kind: type[RunnerItem]) -> Callable[[Runner, Arguments], None]:
    def check(runner: Runner, arguments: Arguments) -> None:
        if not runner.all(kind):
            raise Refused(f"the run has no {kind.__name__}.", 404)

    return check


def _save(state: State, pause: Pause, arguments: Arguments) -> dict[str, Any]:
    savers = [] if state.runner is None else state.runner.all(Saver)
    saved = [saver.save(state) for saver in savers]
    return {"saved": True} if all(saved) else {"saved": False, "when": "once the next batch, or the pass, is finished"}


def _test(state: State, pause: Pause, arguments: Arguments) -> dict[str, float]:
    testers = [] if state.runner is None else state.runner.all(Tester)
    for tester in testers:
        tester.act(state)
    names = tuple(f"{tester.name}." for tester in testers)
    return {name: value for name, value in state.metrics.items() if name.startswith(names)}


# -- settings and rings ------------------------------------------------------------------------------------------------


def _check_set(runner: Runner, arguments: Arguments) -> None:
    known = settings_of(runner)
    if not arguments:
        raise Refused("no setting was given.", 404)
    for name, value in arguments.items():
        try:
            known[_full_name(known, name)].refuse(name, value)
        except OnionError as error:
            raise Refused(str(error)) from None


def _set(state: State, pause: Pause, arguments: Arguments) -> dict[str, float]:
    known = {} if state.runner is None else settings_of(state.runner)
    names = {_full_name(known, name): value for name, value in arguments.items()}
    for name, value in names.items():
        known[name].set(int(value) if known[name].whole else float(value))
    return {name: known[name].get() for name in names}


def _full_name(known: Mapping[str, Adjustable], name: str) -> str:
    """Return ``<item>.<setting>`` for a name that may lack the item."""
    fits = [full for full in known if name == full or full.partition(".")[2] == name]
    if len(fits) != 1:
        what = "several settings" if fits else "no setting"
        raise Refused(f"{name!r} is {what}; there are {_listed(fits or known)}.")
    return fits[0]


def _check_ring(runner: Runner, arguments: Arguments) -> None:
    _switch(runner, arguments.get("ring"))


def _switch(runner: Runner, name: object) -> Switch:
    known = switches_of(runner)
    fits = [switch for inner, switch in known.items() if name in (inner, switch.name)]
    if not fits:
        raise Refused(f"{name!r} is no item with a Switch; there are {_listed(known)}.", 404)
    return fits[0]


def _turn(on: bool) -> Callable[[State, Pause, Arguments], None]:
    def turn(state: State, pause: Pause, arguments: Arguments) -> None:
        assert state.runner is not None
        _switch(state.runner, arguments["ring"]).on = on

    return turn


# -- all of them -------------------------------------------------------------------------------------------------------

COMMANDS: dict[str, Command] = {
    "pause": Command(_set_pause(True)),
    "resume": Command(_set_pause(False)),
    "step": Command(_step, ("n",), _check_step),
    "stop": Command(_stop, ("why",), _check_stop),
    "save": Command(_save, validate=_require(Saver)),
    "test": Command(_test, validate=_require(Tester)),
    "set": Command(_set, None, _check_set),
    "enable": Command(_turn(True), ("ring",), _check_ring),
    "disable": Command(_turn(False), ("ring",), _check_ring),
}

MAX_QUEUED = 1000  # maximum number of commands that wait for the next batch boundary


@attrs.frozen
class QueuedCommand:
    """A command, and the future of its answer."""

    command: str
    arguments: dict[str, Any]
    key: str | None
    answer: Future[Answer]


class CommandQueue:
    """Accepts commands from all threads during a run, and keeps them in order.

    ``ask`` is for every thread, the rest for that of the run.
    """

    def __init__(self) -> None:
        self._waiting: PeekQueue[QueuedCommand] = PeekQueue()
        self._lock = Lock()
        self._run: tuple[Runner, Journal] | None = None

    def begin(self, runner: Runner, journal: Journal) -> None:
        """Accept the commands of this run."""
        self._run = runner, journal

    def end(self) -> None:
        """Accept no more commands, and refuse those that were not carried out."""
        with self._lock:
            self._run = None
        for queued in self._waiting.drain():
            settle(queued.answer, Refused("the run has ended; the command was not carried out.", 409))

    def ask(self, command: str, arguments: Mapping[str, Any], key: str | None = None) -> Future[Answer]:
        """Queue a command; return the future of its answer.

        Raises:
            Refused: There is no run or no such command, its arguments are invalid, another command had this key, or
                too many are queued.
        """
        with self._lock:
            if self._run is None:
                raise Refused("there is no run.", 409)
            runner, journal = self._run
            if (known := journal.answers.of(key)) is not None:
                if not journal.answers.is_same(key, command, arguments):
                    raise Refused("another command had this key; use a new key for each command.", 409)
                return known
            if command not in COMMANDS:
                raise Refused(f"unknown command {command!r}; there are {', '.join(COMMANDS)}.", 404)
            COMMANDS[command].check(runner, arguments)
            values = _as_json(arguments)
            if self.count() >= MAX_QUEUED:
                raise Refused(f"{MAX_QUEUED} commands are queued already; try again.", 503)
            queued = QueuedCommand(command, values, key, journal.answers.expect(key, command, arguments))
            self._waiting.put(queued)
            return queued.answer

    def count(self) -> int:
        """Return the length of the queue."""
        return len(self._waiting)

    def peek(self, timeout: float = 0.0) -> QueuedCommand | None:
        """Return the next command, and leave it there; wait for it up to this many seconds. None: there is none."""
        return self._waiting.peek(timeout)

    def take(self) -> QueuedCommand | None:
        """Remove the next command and return it."""
        return self._waiting.take()


def _as_json(arguments: Arguments) -> dict[str, Any]:
    """Return the arguments as a journal and other processes get them, or raise Refused."""
    try:
        return dict(json.loads(json.dumps(dict(arguments), default=plain)))
    except (TypeError, ValueError) as error:
        raise Refused(f"the arguments must be JSON values: {error}.") from None


def settle(future: Future[Answer] | None, outcome: Answer | Refused) -> None:
    """Set the outcome of a command, unless it has one."""
    if future is None or future.done():
        return
    if isinstance(outcome, Answer):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)
