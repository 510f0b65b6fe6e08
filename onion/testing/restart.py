"""A run as a user starts it, ends it and starts it again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from onion.engine.runner import Runner
from onion.engine.state import State
from onion.errors import OnionError
from onion.items.observer import Observer
from onion.items.saver import Saver
from onion.testing.capture import checkpoints

WATCH = "assert_resumes_exactly"
"""The name of the item that is put around an onion."""


class _Killed(BaseException):
    """No error of the run: what only an Exception sets in motion stays undone, as in a process that is killed."""


@attrs.frozen
class Script:
    """What a user starts, and starts again."""

    make: Callable[[Path], Runner]
    folder: Path
    passes: int | None
    steps: int | None

    def begin(self, name: str) -> Runner:
        """Build the onion for a folder."""
        place = self.folder / name
        runner = self.make(place)
        savers = runner.all(Saver)
        if not savers:
            raise OnionError(f"make gave an onion without a Saver, which cannot be resumed:\n\n{runner}")
        for saver in savers:
            if not saver.folder.resolve().is_relative_to(place.resolve()):
                raise OnionError(
                    f"{saver.name} saves in {saver.folder}, whichever folder make is given; put it in that one, "
                    "so that the runs do not meet."
                )
        return runner

    def run(self, runner: Runner, steps: int | None = None, **calls: Callable[[State], object]) -> State:
        """Run it to its end, or so many steps, with calls outermost around it."""
        watch = Observer(**calls)
        watch.name = WATCH
        limits = [limit for limit in (steps, self.steps) if limit is not None]
        return runner.insert_before(runner.items[0], watch).run(passes=self.passes, steps=min(limits, default=None))


def stop(script: Script, runner: Runner, cut: int) -> str:
    """Run so many steps; return how that is told."""
    script.run(runner, steps=cut)
    return f"cut after step {cut}"


def kill(script: Script, runner: Runner, cut: int) -> str:
    """Run until after a step, where the run is left at once; return how that is told."""

    def leave(state: State) -> None:
        if state.step == cut:
            raise _Killed

    try:
        script.run(runner, on_batch_end=leave)
    except _Killed:
        for saver in runner.all(Saver):
            saver.wait()  # its thread outlives the run here, which in a process that is killed it does not
        saved = max((step for saver in runner.all(Saver) for step in checkpoints(saver)), default=None)
        went_on = "begun anew" if saved is None else f"resumed from step {saved}"
        return f"killed after step {cut} and {went_on}"
    raise AssertionError(f"the run ended before step {cut}, where it was to be killed, and had not before.")
