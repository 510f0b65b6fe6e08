"""What flows through the rings: one typed, slotted object per run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, SupportsFloat

import attrs

if TYPE_CHECKING:
    from onion.engine.runner import Runner


@attrs.define(eq=False)
class State:
    """Where a run is and what it holds just now; every hook receives it.

    To carry more, subclass it (with ``@attrs.define(eq=False)``) and pass the class to the Runner:
    ``Runner(..., state=MyState)``. Printed, it shows counters, metrics and why it ended, and none of what flows.
    """

    pass_id: int = 0
    """Passes finished, resumed runs included; so the first pass is number 0."""

    batch_id: int = 0
    """Batches finished in this pass; so it is 0 during the first batch of every pass."""

    step: int = 0
    """Batches finished over the whole run, resumed runs included. A batch counts when it has reached the innermost
    point of the onion: on the way in it is not yet counted, on the way out it is. A batch that an item skips
    never counts, one that an item runs twice counts once."""

    batch: Any = attrs.field(default=None, repr=False)
    """The batch under way, as the data item gave it (numpy arrays from DataProvider)."""

    task: str | None = None
    """The task that the batch under way is of, where a TaskSampler brings the data of several; else None."""

    batches: Iterator[Any] | None = attrs.field(default=None, repr=False)
    """The batches of this pass; put here by a data item on the way into the pass, other items may wrap it."""

    before_batches: Callable[[], None] | None = attrs.field(default=None, repr=False)
    """What is to be done once, when the rings of a pass are open and before its first batch is drawn; set on the way
    into a pass, by a Saver that puts the random generators back."""

    data_error: BaseException | None = attrs.field(default=None, repr=False)
    """The error with which the data failed to give the next batch, while it is on its way out."""

    outputs: Any = attrs.field(default=None, repr=False)
    """What a network gave for the batch; None until one has."""

    loss: SupportsFloat | None = attrs.field(default=None, repr=False)
    """The batch's loss; None until it was computed. Reading it with ``float(state.loss)`` waits for the device, so read
    it only to print or log."""

    share: float = attrs.field(default=1.0, repr=False)
    """What part of an update the inside is working on. A gradient machine multiplies the loss by it before it goes
    backward, and leaves ``loss`` as it is; an item that makes one update of several batches sets it."""

    metrics: dict[str, float] = attrs.field(factory=dict)
    """The latest value of every metric, by name; write with ``report``."""

    reported: dict[str, int] = attrs.field(factory=dict, repr=False)
    """The step at which each metric was reported, so that readers tell a new value from an old one."""

    passes_asked: int | None = attrs.field(default=None, repr=False)
    """The number of passes given to ``run(passes=...)``; None: no limit."""

    steps_asked: int | None = attrs.field(default=None, repr=False)
    """The number of steps given to ``run(steps=...)``; None: no limit."""

    parent: State | None = attrs.field(default=None, repr=False)
    """The state of the run that started this one (a tester's inner run), or None."""

    runner: Runner | None = attrs.field(default=None, repr=False)
    """The runner that drives this state."""

    stopped: str | None = None
    """Why the run was asked to end, or None."""

    pass_stopped: str | None = None
    """Why this pass was asked to end, or None."""

    pass_cut: bool = attrs.field(default=False, repr=False)
    """On the way out of a pass: whether a stop of the run or ``run(steps=...)`` ended it before its data. Such a pass
    is not over; a resumed run goes on in it."""

    next_step: int = attrs.field(default=1, repr=False)
    """The value of ``step`` once the batch under way is finished; kept by the Runner."""

    def report(self, metrics: Mapping[str, float]) -> None:
        """Set metrics and remember that they are of this step."""
        self.metrics.update(metrics)
        self.reported.update(dict.fromkeys(metrics, self.step))

    def stop(self, why: str) -> None:
        """End the run after this batch; all rings leave normally. The first reason is kept."""
        self.stopped = self.stopped or why
        self.stop_pass(why)

    def stop_pass(self, why: str) -> None:
        """End this pass after this batch; all rings leave normally. The first reason is kept."""
        self.pass_stopped = self.pass_stopped or why
