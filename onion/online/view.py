"""What other threads may see of a run: copies, made by the thread of the run between two batches."""

from __future__ import annotations

from time import monotonic, time
from typing import TYPE_CHECKING, Any

from onion.engine.state import State
from onion.monitoring.log_values import log_values, loss_of
from onion.online import commands
from onion.online.stream_provider import StreamProvider
from onion.training.adjustable import Adjustable

if TYPE_CHECKING:
    from onion.engine.runner import Runner

PERIOD = 1.0
"""Seconds between two looks at what costs something to be seen: the loss, which waits for the device, and readings."""


class View:
    """The latest look at a run. ``look`` is for its thread; what returns something is for every thread."""

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
        """See a run from its beginning."""
        runner = state.runner
        assert runner is not None
        self._state, self._runner, self._drawing = state, runner, str(runner)
        self._since, self._reported, self._next = time(), {}, 0.0
        self._before = (monotonic(), state.step)
        self._provider = next(iter(runner.all(StreamProvider)), None)
        self.look(state, "running", 0)

    def is_due(self) -> bool:
        """Tell whether it is time for another look."""
        return monotonic() >= self._next

    def look(self, state: State, what: str, drawn: int, commands_given: int = 0) -> dict[str, float]:
        """Take a look; return the metrics that were reported since the last one.

        Args:
            state: of the run.
            what: it does: ``running``, ``paused``, ``waiting`` (for data).
            drawn: batches drawn over the whole run.
            commands_given: commands that took effect, over the whole run.
        """
        assert self._runner is not None
        now, (then, step) = monotonic(), self._before
        self._next = now + PERIOD
        self._before = (now, state.step)
        settings = commands.settings_of(self._runner)
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
            "settings": {name: _range(each) for name, each in settings.items()},
            "rings": {name: switch.on for name, switch in commands.switches_of(self._runner).items()},
            "commands": commands_given,
        }
        news = {name: state.metrics[name] for name, at in state.reported.items() if at > self._reported.get(name, -1)}
        self._reported = dict(state.reported)
        return news

    def end(self, state: State) -> None:
        """See that the run has ended."""
        self._seen = {**self._seen, "state": "ended", "step": state.step}
        self._state = None

    def status(self) -> dict[str, Any]:
        """Return the latest look, with the step of this moment."""
        seen, state = self._seen, self._state
        return {**seen} if state is None else {**seen, "step": state.step, "pass": state.pass_id}

    def onion(self) -> dict[str, Any]:
        """Return the drawing of the onion, and what each ring has cost so far if there is a clock."""
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
