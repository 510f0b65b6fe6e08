"""For the tests of your own items: a recorder of every way in and out, an item that fails on demand, a toy network.

A test puts recorders around and inside the item:

    trace = []
    Runner(Recorder("a", trace), Batches(3), MyItem(), Recorder("b", trace)).run(passes=1)
    assert trace[:2] == ["a.initialize:in", "b.initialize:in"]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from onion.device import paddle
from onion.item import RunnerItem, Way
from onion.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence


class Recorder(RunnerItem):
    """Write down every way in (``name.hook:in``), way out (``:out``) and leaving by an error (``:error``).

    Args:
        name: its name, the beginning of its entries.
        trace: the list to write to; share one between recorders. Default: a list of its own.
    """

    def __init__(self, name: str, trace: list[str] | None = None) -> None:
        self.name = name
        self.trace: list[str] = [] if trace is None else trace

    def initialize(self, state: State) -> Way:
        """Record the run."""
        yield from self._record("initialize")

    def on_pass(self, state: State) -> Way:
        """Record the pass."""
        yield from self._record("on_pass")

    def on_batch(self, state: State) -> Way:
        """Record the batch."""
        yield from self._record("on_batch")

    def _record(self, hook: str) -> Way:
        self.trace.append(f"{self.name}.{hook}:in")
        try:
            yield
        except BaseException:
            self.trace.append(f"{self.name}.{hook}:error")
            raise
        self.trace.append(f"{self.name}.{hook}:out")


class PlannedError(Exception):
    """The error that Failing raises; it is never mistaken for a real one."""


class Failing(RunnerItem):
    """Raise PlannedError at one moment, and do nothing else.

    Args:
        hook: ``initialize``, ``on_pass`` or ``on_batch``.
        way: ``in`` or ``out``.
        step: fail when ``state.step`` is this on the way in (so 0 is the first batch). Default 0.
        times: how often to fail, then work. Default: always.
    """

    def __init__(self, hook: str, way: str = "in", step: int = 0, times: int | None = None) -> None:
        if hook not in ("initialize", "on_pass", "on_batch") or way not in ("in", "out"):
            raise ValueError(f"no such moment: {hook} {way}")
        self.hook, self.way, self.step, self.times = hook, way, step, times

    def initialize(self, state: State) -> Way:
        """Fail around the run, if told to."""
        yield from self._fail("initialize", state)

    def on_pass(self, state: State) -> Way:
        """Fail around the pass, if told to."""
        yield from self._fail("on_pass", state)

    def on_batch(self, state: State) -> Way:
        """Fail around the batch, if told to."""
        yield from self._fail("on_batch", state)

    def _fail(self, hook: str, state: State) -> Way:
        due = hook == self.hook and state.step == self.step and self.times != 0
        if due and self.times is not None:
            self.times -= 1
        if due and self.way == "in":
            raise PlannedError(f"{hook} in")
        yield
        if due and self.way == "out":
            raise PlannedError(f"{hook} out")


class Batches(RunnerItem):
    """Give ready batches every pass: those of an iterable that can be read again, or the numbers below n."""

    brings_data = True

    def __init__(self, batches: Iterable[Any] | int) -> None:
        self.batches = range(batches) if isinstance(batches, int) else batches

    def on_pass(self, state: State) -> None:
        """Put the batches of this pass on the state."""
        state.batches = iter(self.batches)


def toy_network(inputs: int = 8, seed: int = 0) -> Any:
    """Return a linear regression: a Paddle Layer for batches ``{"x": [n, inputs], "y": [n, 1]}`` of float32.

    ``network(batch)`` gives the predictions ``[n, 1]``, ``network.cost(outputs, batch)`` the mean squared error.
    """
    framework = paddle()

    class ToyNetwork(framework.nn.Layer):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.linear = framework.nn.Linear(inputs, 1)

        def forward(self, batch: dict[str, Any]) -> Any:
            return self.linear(batch["x"])

        def cost(self, outputs: Any, batch: dict[str, Any]) -> Any:
            return framework.nn.functional.mse_loss(outputs, batch["y"])

    framework.seed(seed)
    return ToyNetwork()


def toy_examples(count: int = 32, inputs: int = 8, seed: int = 0) -> Sequence[dict[str, Any]]:
    """Return examples ``{"x": [inputs], "y": [1]}`` of a noisy line for the toy network, always the same for a seed."""
    import numpy as np

    random = np.random.default_rng(seed)
    slope = random.normal(size=inputs)
    x = random.normal(size=(count, inputs))
    y = x @ slope + 0.1 * random.normal(size=count)
    return [{"x": a.astype("float32"), "y": b.astype("float32").reshape(1)} for a, b in zip(x, y, strict=True)]
