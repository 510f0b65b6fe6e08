"""What flows through the rings: one typed, slotted object per run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, SupportsFloat

import attrs

if TYPE_CHECKING:
    from onion.engine.runner import Runner
    from onion.monitoring.records import Records


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

    weight: float | None = attrs.field(default=None, repr=False)
    """What ``loss`` is a mean over, such as the number of the batch's labelled tokens; None: its examples. A gradient
    machine sets it beside ``loss`` where a batch is shared by several processes."""

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

    records: Records | None = attrs.field(repr=False)
    """What ``record_scalar``, ``record_histogram`` and ``record_image`` have recorded; None: no item writes it down."""

    @records.default
    def _records_of_inner_run(self) -> Records | None:
        return None if self.parent is None or self.parent.records is None else self.parent.records.empty()

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

    def record_scalar(self, name: str, value: SupportsFloat) -> None:
        """Let Logger and Trackers write a number, at the step of the batch under way.

        This call and the next two cost next to nothing where no item writes such a value down. Of several values of one
        name in a batch the last is written. Unlike what ``report`` sets, a recorded value selects no checkpoint, and is
        not shown by Progress. What an inner run records, a Tester passes on as ``<its name>.<name>``.

            state.record_scalar("temperature", 0.7)
            state.record_histogram("gradients/fc", network.fc.weight.grad)

        Args:
            name: of the curve; parts are separated by ``/`` where a viewer groups them.
            value: a number, or a tensor or array of one; it is read at once, which waits for the device.
        """
        if self.records is not None:
            self.records.scalar(name, value)

    def record_histogram(self, name: str, values: Any) -> None:
        """Let Trackers write how values are distributed, at the step of the batch under way.

        Args:
            name: of the histogram.
            values: a tensor or an array of numbers, of any shape and dtype; it is counted at once in 64 bins of equal
                width. Values that are not finite are left out. None, such as the gradient of a frozen parameter, and
                an array without a finite value are ignored.
        """
        if self.records is not None:
            self.records.histogram(name, values)

    def record_image(self, name: str, pixels: Any) -> None:
        """Let Trackers write a picture, at the step of the batch under way.

        Args:
            name: of the picture.
            pixels: a tensor, an array or a PIL image, [height, width] or [height, width, 1, 3 or 4 channels], as uint8
                from 0 to 255, or as floats from 0 to 1. Of a matplotlib figure: ``figure.canvas.buffer_rgba()``.

        Raises:
            OnionError: it has another shape or dtype.
        """
        if self.records is not None:
            self.records.image(name, pixels)

    def stop(self, why: str) -> None:
        """End the run after this batch; all rings leave normally. The first reason is kept."""
        self.stopped = self.stopped or why
        self.stop_pass(why)

    def stop_pass(self, why: str) -> None:
        """End this pass after this batch; all rings leave normally. The first reason is kept."""
        self.pass_stopped = self.pass_stopped or why
