"""What can be asked of a run from outside: each command looks at its arguments, and then takes effect at a border."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from onion.engine.runner import Runner
from onion.engine.state import State
from onion.errors import OnionError
from onion.items.saver import Saver
from onion.items.tester import Tester
from onion.online.desk import Refused
from onion.online.switch import Switch
from onion.training.adjustable import Adjustable
from onion.validation import is_whole

Arguments = Mapping[str, Any]

LONGEST = 1000
"""Of a reason to stop, in characters."""


@attrs.define
class Pause:
    """Whether the run waits, and from where on.

    Attributes:
        on: Whether it waits once it has drawn ``until`` batches.
        until: Counted over the whole run.
        drawn: Batches drawn by now.
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
        check: Raises Refused for arguments that do not do; nothing has been changed.
        act: Carries it out between two batches; returns a JSON value.
    """

    check: Callable[[Runner, Arguments], None]
    act: Callable[[State, Pause, Arguments], Any]


def settings_of(runner: Runner) -> dict[str, Adjustable]:
    """Return what can be adjusted, by ``<item>.<setting>``."""
    return {
        f"{item.name}.{name}": adjustable for item in runner.walk() for name, adjustable in item.adjustable().items()
    }


def switches_of(runner: Runner) -> dict[str, Switch]:
    """Return the switches by the name of the item in each."""
    return {switch.items[0].name: switch for switch in runner.all(Switch)}


# -- the run -----------------------------------------------------------------------------------------------------------


def _nothing(runner: Runner, arguments: Arguments) -> None:
    _only(arguments)


def _check_step(runner: Runner, arguments: Arguments) -> None:
    _only(arguments, "n")
    n = arguments.get("n", 1)
    if not (is_whole(n) and 1 <= n <= 10**9):
        raise Refused(f"n={n!r} is no number of batches from 1 to 1,000,000,000.")


def _check_stop(runner: Runner, arguments: Arguments) -> None:
    _only(arguments, "why")
    why = arguments.get("why", "")
    if not isinstance(why, str) or len(why) > LONGEST:
        raise Refused(f"why is no text of {LONGEST} characters at most.")


def _pause(state: State, pause: Pause, arguments: Arguments) -> None:
    pause.on, pause.until = True, 0


def _resume(state: State, pause: Pause, arguments: Arguments) -> None:
    pause.on, pause.until = False, 0


def _step(state: State, pause: Pause, arguments: Arguments) -> None:
    pause.on, pause.until = True, pause.drawn + int(arguments.get("n", 1))


def _stop(state: State, pause: Pause, arguments: Arguments) -> None:
    state.stop(arguments.get("why") or "stopped by a command")


# -- savers and testers ------------------------------------------------------------------------------------------------


def _check_save(runner: Runner, arguments: Arguments) -> None:
    _only(arguments)
    _insist(runner.all(Saver), "the run has no Saver.")


def _check_test(runner: Runner, arguments: Arguments) -> None:
    _only(arguments)
    _insist(runner.all(Tester), "the run has no Tester.")


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
    _insist(arguments, "no setting was given.")
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
    """Return ``<item>.<setting>`` of a name that may lack the item."""
    fits = [full for full in known if name == full or full.partition(".")[2] == name]
    if len(fits) != 1:
        what = "several settings" if fits else "no setting"
        raise Refused(f"{name!r} is {what}; there are {', '.join(fits or known) or 'none'}.")
    return fits[0]


def _check_ring(runner: Runner, arguments: Arguments) -> None:
    _only(arguments, "ring")
    _switch(runner, arguments.get("ring"))


def _switch(runner: Runner, name: object) -> Switch:
    known = switches_of(runner)
    fits = [switch for inner, switch in known.items() if name in (inner, switch.name)]
    if not fits:
        raise Refused(f"{name!r} is no ring with a Switch; there are {', '.join(known) or 'none'}.", 404)
    return fits[0]


def _turn(on: bool) -> Callable[[State, Pause, Arguments], None]:
    def turn(state: State, pause: Pause, arguments: Arguments) -> None:
        assert state.runner is not None
        _switch(state.runner, arguments["ring"]).on = on

    return turn


# -- all of them -------------------------------------------------------------------------------------------------------

COMMANDS: dict[str, Command] = {
    "pause": Command(_nothing, _pause),
    "resume": Command(_nothing, _resume),
    "step": Command(_check_step, _step),
    "stop": Command(_check_stop, _stop),
    "save": Command(_check_save, _save),
    "test": Command(_check_test, _test),
    "set": Command(_check_set, _set),
    "enable": Command(_check_ring, _turn(True)),
    "disable": Command(_check_ring, _turn(False)),
}


def _only(arguments: Arguments, *names: str) -> None:
    unknown = sorted(map(str, arguments.keys() - set(names)))
    if unknown:
        raise Refused(f"{unknown[0]!r} is no argument of this command; it has {', '.join(names) or 'none'}.")


def _insist(there: object, why: str) -> None:
    if not there:
        raise Refused(why, 404)
