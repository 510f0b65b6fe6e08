"""The base of items that write figures down: every so often, and whenever there is something new."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onion.engine.item import HookIterator
from onion.engine.periodic import Interval, Periodic
from onion.engine.placement import OUTSIDE_REPORTS, UNREPEATED
from onion.engine.state import State
from onion.monitoring.log_values import log_values, loss_of
from onion.monitoring.records import Kinds, Records, Value


class FigureWriter(Periodic):
    """Write the loss, the items' log values and what was reported or recorded since the last time.

    That is done periodically, and on the way out of each batch and pass that brought a new metric or record. A subclass
    calls ``listen`` on the way into the run, and overrides ``write``.

    Args:
        every: as of Periodic.
    """

    passive = outermost_only = first_rank_only = True
    place_rules = (UNREPEATED, OUTSIDE_REPORTS)
    transient: tuple[str, ...] = ("_read",)  # records of the run in this process

    kinds: Kinds = (float,)
    """Of the recorded values that are written."""

    def __init__(self, every: Interval) -> None:
        super().__init__(every)
        FigureWriter.reset(self)

    def reset(self) -> None:
        """Nothing is written yet."""
        super().reset()
        self._logged: dict[str, int] = {}
        self._read = 0

    def listen(self, state: State) -> None:
        """Have what is recorded kept; call it on the way into the run."""
        if state.records is None:
            state.records = Records()
        state.records.kinds |= set(self.kinds)

    def write(self, state: State, values: Mapping[str, Value]) -> None:
        """Write values; override this."""

    def on_pass(self, state: State) -> HookIterator:
        """Write if the period is a pass, or if there is something new on its way out."""
        yield
        if (self.every == "pass" and not state.pass_cut) or self._has_news(state):
            self.act(state)

    def on_batch(self, state: State) -> HookIterator:
        """Write if the batch completes a period, or brought something new."""
        yield
        if self.due(state) or self._has_news(state):
            self.act(state)

    def act(self, state: State) -> None:
        """Write a point of every figure."""
        metrics = self._metrics(state)
        self._logged.update({name: state.reported[name] for name in metrics})
        recorded = self._recorded(state)
        if state.records is not None:
            self._read = state.records.count
        self.write(state, {**loss_of(state), **log_values(state), **metrics, **recorded})

    def _has_news(self, state: State) -> bool:
        return bool((state.reported and self._metrics(state)) or self._recorded(state))

    def _metrics(self, state: State) -> dict[str, float]:
        """Return the metrics that were reported since the last time."""
        logged = self._logged
        return {name: state.metrics[name] for name, step in state.reported.items() if step > logged.get(name, -1)}

    def _recorded(self, state: State) -> dict[str, Value]:
        """Return what was recorded since the last time."""
        if state.records is None or state.records.count == self._read:
            return {}
        return state.records.since(self._read, self.kinds)

    def state_dict(self) -> dict[str, Any]:
        """Return which metrics were written, as of which step."""
        return {"logged": json.dumps(self._logged)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Write none of these again."""
        self._logged = dict(json.loads(saved["logged"]))
