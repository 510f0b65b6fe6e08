"""What each ring costs on its own: the same hooks, composed with a clock between each two.

There is a probe at every border between two rings. Going in, the time since the last border belongs to the way in of
the ring just outside; coming out, to the way out of the ring just inside.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, TypeAlias

import attrs

if TYPE_CHECKING:
    from onion.engine.item import HookIterator
    from onion.engine.rings import Hook
    from onion.engine.state import State

Slot: TypeAlias = "tuple[str, str]"
"""An item's name and the hook's, such as ``("saver", "on_batch")``."""

KEPT = 200_000
"""How many of the latest events the Chrome trace holds; the sums count all."""


@attrs.define
class RingTime:
    """What one hook of one ring cost, without the rings inside it.

    Attributes:
        calls: how often it was entered; the loop's own slots: how often it went in.
        way_in: nanoseconds up to its yields, or of the whole hook if it has none.
        way_out: nanoseconds after its last yield.
    """

    calls: int = 0
    way_in: int = 0
    way_out: int = 0


class Timing:
    """The clock of one runner, and the table it fills. ``print(timing)`` shows the table."""

    def __init__(self) -> None:
        self.costs: dict[Slot, RingTime] = {}
        self._events: deque[tuple[Slot, str, int, int]] = deque(maxlen=KEPT)
        self.start()

    def start(self) -> None:
        """Begin to count now: what happened since the last border was not the loop's."""
        self._last = perf_counter_ns()

    def between(self, hooks: Sequence[Hook], names: Sequence[str], hook: str, owner: str | None) -> list[Hook]:
        """Return one hook of several items with a probe at every border.

        Args:
            hooks: the items' hooks, the outermost first.
            names: the items' names.
            hook: the hook's name.
            owner: the nested runner to charge with what runs outside of them all and at the center; None: the loop.
        """
        if not hooks:
            return []
        outside = owner or ("next batch" if hook == "on_batch" else "the loop")
        slots = [(outside, hook), *((name, hook) for name in names), (outside, "center")]
        probed: list[Hook] = []
        for place, each in enumerate(hooks):
            probed += [self._probe(slots[place], slots[place + 1], counted=place == 0 and owner is None), each]
        return [*probed, self._probe(slots[-2], slots[-1])]

    def _probe(self, outside: Slot, inside: Slot, counted: bool = False) -> Hook:
        def probe(state: State) -> HookIterator:
            self._tick(outside, "way_in")
            self._cost(outside).calls += counted
            self._cost(inside).calls += 1
            try:
                yield
            finally:
                self._tick(inside, "way_out")

        return probe

    def _tick(self, slot: Slot, way: str) -> None:
        """Charge the time since the last border to one way of one ring."""
        now = perf_counter_ns()
        cost = self._cost(slot)
        if way == "way_in":
            cost.way_in += now - self._last
        else:
            cost.way_out += now - self._last
        self._events.append((slot, way, self._last, now))
        self._last = perf_counter_ns()

    def _cost(self, slot: Slot) -> RingTime:
        return self.costs.setdefault(slot, RingTime())

    def __str__(self) -> str:
        rows = [("ring", "hook", "calls", "way in us", "way out us", "total ms")]
        for (name, hook), cost in self.costs.items():
            each = [cost.way_in / 1e3 / max(cost.calls, 1), cost.way_out / 1e3 / max(cost.calls, 1)]
            total = (cost.way_in + cost.way_out) / 1e6
            rows.append((name, hook, f"{cost.calls}", f"{each[0]:.2f}", f"{each[1]:.2f}", f"{total:.2f}"))
        widths = [max(len(row[place]) for row in rows) for place in (0, 1)]
        lines = []
        for name, hook, *cells in rows:
            lines.append(f"{name:<{widths[0]}}  {hook:<{widths[1]}}" + "".join(f"{cell:>12}" for cell in cells))
        return "\n".join(lines)

    def chrome_trace(self, path: str | Path) -> None:
        """Write the latest events in the Trace Event Format, for chrome://tracing or ui.perfetto.dev."""
        events = [
            {
                "name": f"{name} {way.replace('_', ' ')}",
                "cat": hook,
                "ph": "X",
                "ts": start / 1e3,
                "dur": (end - start) / 1e3,
                "pid": 0,
                "tid": 0,
            }
            for (name, hook), way, start, end in self._events
        ]
        Path(path).write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
