"""`ProgressiveValidation`: predict, then train; a test on data that the network has not seen yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from onion.device import paddle, to_tensors
from onion.engine.item import HookIterator
from onion.engine.periodic import Interval, Periodic
from onion.engine.placement import BEHIND_DATA, UNREPEATED, NotInside, Rule
from onion.engine.state import State
from onion.errors import CompositionError, HookError
from onion.items.forward import evaluating
from onion.validation import is_whole

Measure: TypeAlias = Callable[[Any, Any], Any]
"""(outputs as numpy arrays, batch) -> a number for each sample, ``[n]``."""


def right(outputs: NDArray[Any], batch: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Return for each sample whether its largest output, ``[n, classes]``, is that of its ``batch["labels"]``."""
    return np.asarray(outputs.argmax(-1) == np.asarray(batch["labels"]))


UNMIXED = NotInside("mixes_batches", "mixes old samples into the batch that it would test")
"""The place of what tests each sample once."""


class ProgressiveValidation(Periodic):
    """Test the network on each batch before it is trained on it (prequential evaluation; Gama et al. 2013, Dawid 1984).

        Runner(Saver("out"), StreamProvider(spool), ProgressiveValidation(network), ReplayBuffer(10_000), ...)

    On the way in the network is run forward, in evaluation mode and without gradients, and each sample is measured.
    Periodically ``progressive.<measure>``, the mean over the latest samples, and ``progressive.overall_<measure>``,
    that over all samples since the beginning, are reported. A resumed run continues in the middle of the window.

    It goes outside of what changes the batch (ReplayBuffer) and of what runs the inside again (Repeat): samples count
    as often as it sees them. The batch is one that the network can be called with, by default a dict of numpy arrays
    ``[n, ...]``. A forward pass costs about a third of a training step. For labels that come later see DelayedLabels.

    Args:
        network: a ``paddle.nn.Layer`` that is called with the batch (its numpy arrays turned into tensors).
        measures: by name; each gives ``[n]`` numbers for ``(outputs, batch)``. Default: ``accuracy``, the share of the
            samples that are ``right``.
        window: over how many of the latest samples the mean is taken. Default 1000.
        every: steps between two reports, a ``timedelta``, or ``"pass"``. Default 100.

    Raises:
        CompositionError: ``window`` is no integer >= 1, or there is no measure.
        HookError: a measure does not give a number for each sample.
    """

    name = "progressive"
    reports = True
    place_rules: tuple[Rule, ...] = (BEHIND_DATA, UNREPEATED, UNMIXED)
    transient = ("latest",)

    def __init__(
        self, network: Any, measures: Mapping[str, Measure] | None = None, window: int = 1000, every: Interval = 100
    ) -> None:
        super().__init__(every)
        if not (is_whole(window) and window >= 1):
            raise CompositionError(f"{type(self).__name__}: window must be an integer >= 1, got {window!r}.")
        self.network, self.window = network, window
        self.measures: dict[str, Measure] = dict({"accuracy": right} if measures is None else measures)
        if not self.measures:
            raise CompositionError(f"{type(self).__name__}: measures is empty, so nothing would be measured.")
        self.latest: dict[str, NDArray[np.float64]] = {}
        """What was measured of the batch under way, ``[n]`` by measure; empty if there was nothing."""
        self.reset()

    def reset(self) -> None:
        """Begin with nothing measured."""
        super().reset()
        self._values = {name: deque[float](maxlen=self.window) for name in self.measures}
        self._sums = dict.fromkeys(self.measures, 0.0)
        self._samples = 0

    def on_batch(self, state: State) -> HookIterator:
        """Predict and measure on the way in; report on the way out, if it is time."""
        self.latest = {}
        self.measure(self.predict(state.batch), state.batch)
        yield
        if self.due(state):
            self.act(state)

    def act(self, state: State) -> None:
        """Report the means, if anything was measured."""
        if self._samples:
            state.report({f"{self.name}.{name}": float(np.mean(each)) for name, each in self._values.items()})
            state.report({f"{self.name}.overall_{name}": sum_ / self._samples for name, sum_ in self._sums.items()})

    def predict(self, batch: Any) -> Any:
        """Return what the network makes of a batch now, as numpy arrays."""
        with evaluating(self.network), paddle().no_grad():
            return in_numpy(self.network(to_tensors(batch)))

    def measure(self, outputs: Any, batch: Any) -> None:
        """Measure outputs against a batch."""
        found = {name: self._numbers(name, measure(outputs, batch)) for name, measure in self.measures.items()}
        for name, values in found.items():
            self._values[name].extend(values.tolist())
            self._sums[name] += float(values.sum())
        self._samples += max(map(len, found.values()))
        self.latest = found

    def of(self, measure: str) -> Callable[[State], NDArray[np.float64] | None]:
        """Return a function of the state that gives what was measured of the batch under way, for a DriftDetector.

        Raises:
            CompositionError: there is no such measure.
        """
        if measure not in self.measures:
            raise CompositionError(f"{self.name} has no measure {measure!r}; it has {', '.join(self.measures)}.")
        return lambda state: self.latest.get(measure)

    def _numbers(self, name: str, given: Any) -> NDArray[np.float64]:
        values = np.asarray(given, np.float64)
        if values.ndim != 1:
            raise HookError(
                f"{self.name}: the measure {name!r} gave an array of shape {list(values.shape)}; it has to give a "
                "number for each sample, [n]."
            )
        return values

    def state_dict(self) -> dict[str, Any]:
        """Return the values in the window, and the sums over all samples."""
        windows = {f"window.{name}": np.array(values, np.float64) for name, values in self._values.items()}
        return {**windows, **{f"sum.{name}": value for name, value in self._sums.items()}, "samples": self._samples}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state."""
        self.reset()
        for name, values in self._values.items():
            values.extend(saved[f"window.{name}"].tolist())
            self._sums[name] = float(saved[f"sum.{name}"])
        self._samples = int(saved["samples"])


def in_numpy(outputs: Any) -> Any:
    """Return a tensor, also in a dict or a tuple, as a numpy array; 16-bit floats, which numpy lacks, with 32 bits."""
    if isinstance(outputs, dict):
        return {name: in_numpy(each) for name, each in outputs.items()}
    if isinstance(outputs, tuple | list):
        return tuple(map(in_numpy, outputs))
    if not hasattr(outputs, "numpy"):
        return outputs
    return (outputs.astype("float32") if outputs.dtype == paddle().bfloat16 else outputs).numpy()
