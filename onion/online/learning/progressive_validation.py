"""`ProgressiveValidation`: test on new data, then train on them; `DelayedLabels`: when their labels arrive."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from onion.data import batch_parts
from onion.data.batching import collate as stack
from onion.device import paddle, to_tensors
from onion.engine.item import HookIterator
from onion.engine.periodic import Interval, Periodic
from onion.engine.placement import BEHIND_DATA, UNREPEATED, NotInside, Rule
from onion.engine.state import State
from onion.errors import CompositionError, DataError, HookError
from onion.items.forward import evaluating
from onion.online.learning.array_rows import as_arrays, from_arrays, own
from onion.validation import is_whole

if TYPE_CHECKING:
    from onion.distributed.group import Group

Measure: TypeAlias = Callable[[Any, Any], Any]
"""(outputs as numpy arrays, batch) -> a number for each sample, ``[n]``."""


def right(outputs: NDArray[Any], batch: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Return for each sample whether its largest output, ``[n, classes]``, is that of its ``batch["labels"]``."""
    return np.asarray(outputs.argmax(-1) == np.asarray(batch["labels"]))


UNMIXED = NotInside("mixes_batches", "mixes old samples into the batch that it would test")
"""Placement of an item that tests each sample once."""


class ProgressiveValidation(Periodic):
    """Test the network on each batch before it is trained on it (prequential evaluation; Gama et al. 2013, Dawid 1984).

        Runner(Saver("out"), StreamProvider(spool), ProgressiveValidation(network), ReplayBuffer(10_000), ...)

    On the way in the network is run forward, in evaluation mode and without gradients, and each sample is measured.
    Two means are reported periodically: ``progressive.<measure>`` over the latest samples, and
    ``progressive.overall_<measure>`` over all samples since the beginning. A resumed run continues with its window.

    Place it outside of items that change the batch (ReplayBuffer) or repeat the inside (Repeat): a sample counts each
    time it passes. In several processes each measures its pieces, and all have the values of the whole batch. The
    network must accept the batch, by default a dict of numpy arrays ``[n, ...]``. A forward pass
    costs about a third of a training step. For labels that arrive later see DelayedLabels.

    Args:
        network: a ``paddle.nn.Layer`` that is called with the batch (its numpy arrays converted to tensors).
        measures: by name; each returns ``[n]`` numbers for ``(outputs, batch)``. Default: ``accuracy``, the fraction
            of the samples that are ``right``.
        window: number of latest samples in the mean. Default 1000.
        every: steps between two reports, a ``timedelta``, or ``"pass"``. Default 100.

    Raises:
        CompositionError: ``window`` is not an integer >= 1, or there is no measure.
        HookError: a measure does not return a number for each sample.
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
        """Measured values of the current batch, ``[n]`` by measure; empty if there are none."""
        self.reset()

    def reset(self) -> None:
        """Start with nothing measured."""
        super().reset()
        self._values = {name: deque[float](maxlen=self.window) for name in self.measures}
        self._sums = dict.fromkeys(self.measures, 0.0)
        self._samples = 0

    def on_batch(self, state: State) -> HookIterator:
        """Predict and measure on the way in; report on the way out, if it is due."""
        self.latest = {}
        if self.group is None:
            self.measure(self.predict(state.batch), state.batch)
        else:
            self._measure_together(state, self.group)
        yield
        if self.due(state):
            self.act(state)

    def _measure_together(self, state: State, group: Group) -> None:
        """Predict and measure the pieces of this rank, and count those of all ranks, in order."""
        here = {
            piece.number: self._found(self.predict(state.batch), state.batch)
            for piece in group.each_piece(state)
            if piece.weight
        }
        pieces = {number: found for each in group.gathered(here) for number, found in each.items()}
        self._count(
            {name: np.concatenate([pieces[number][name] for number in sorted(pieces)]) for name in self.measures}
        )

    def act(self, state: State) -> None:
        """Report the means, if anything was measured."""
        if self._samples:
            state.report({f"{self.name}.{name}": float(np.mean(each)) for name, each in self._values.items()})
            state.report({f"{self.name}.overall_{name}": sum_ / self._samples for name, sum_ in self._sums.items()})

    def predict(self, batch: Any) -> Any:
        """Return the current outputs of the network for a batch, as numpy arrays."""
        with evaluating(self.network), paddle().no_grad():
            return in_numpy(self.network(to_tensors(batch)))

    def measure(self, outputs: Any, batch: Any) -> None:
        """Measure outputs against a batch."""
        self._count(self._found(outputs, batch))

    def _found(self, outputs: Any, batch: Any) -> dict[str, NDArray[np.float64]]:
        return {name: self._numbers(name, measure(outputs, batch)) for name, measure in self.measures.items()}

    def _count(self, found: dict[str, NDArray[np.float64]]) -> None:
        """Add the measured values of a batch."""
        for name, values in found.items():
            self._values[name].extend(values.tolist())
            self._sums[name] += float(values.sum())
        self._samples += max(map(len, found.values()))
        self.latest = found

    def of(self, measure: str) -> Callable[[State], NDArray[np.float64] | None]:
        """Return a function of the state that returns the values of the current batch, for a DriftDetector.

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
                f"{self.name}: the measure {name!r} returned an array of shape {list(values.shape)}; it must return a "
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
    """Return a tensor, or those in a dict or tuple, as numpy arrays; bfloat16, which numpy lacks, as float32."""
    if isinstance(outputs, dict):
        return {name: in_numpy(each) for name, each in outputs.items()}
    if isinstance(outputs, tuple | list):
        return tuple(map(in_numpy, outputs))
    if not hasattr(outputs, "numpy"):
        return outputs
    return (outputs.astype("float32") if outputs.dtype == paddle().bfloat16 else outputs).numpy()


Sample: TypeAlias = dict[str, Any]


class DelayedLabels(ProgressiveValidation):
    """Progressive validation with delayed labels: predict now, measure and train when the label arrives.

        Runner(..., StreamProvider(spool, prepare=fields_of, collate=list), DelayedLabels(network), ...)

    A batch is a list of samples, each a dict, of three forms that may be mixed:

        {"id": "a", "x": ...}                  is predicted and kept; it is not trained on
        {"id": "a", "labels": 1}               is joined with the kept sample: measured by its old prediction, trained
        {"id": "b", "x": ..., "labels": 0}     is predicted, measured and trained at once; needs no id

    The items inside get one batch of all samples that can be trained on, made by ``collate``, without the ids. If there
    are none, the inside is skipped: such a batch is no step. A label without a kept sample is dropped and counted, even
    if its sample arrives later. Of two samples with the same id the later one is kept.

    Args:
        network: see ProgressiveValidation, as for ``measures``, ``window`` and ``every``.
        measures: by name. Default: ``accuracy``.
        window: in samples. Default 1000.
        every: between two reports. Default 100 steps.
        collate: makes a batch of a list of samples without ids, all with labels or none. Default: stack field by field.
        id: the field that identifies the sample, a text or an integer. Default ``id``.
        label: the field of the label. Default ``labels``.
        pending: greatest number of samples that wait for labels; beyond it, the oldest are dropped. Default 10,000.

    Raises:
        CompositionError: ``pending`` is not an integer >= 1; see also ProgressiveValidation.
        HookError: a batch is not a list of dicts.
        DataError: an id is neither a text nor an integer.
    """

    alone_because = (
        "it makes new batches of the samples whose labels have come, and those are not cut into pieces; join samples "
        "and labels before they reach the source, or run it in one process"
    )

    name = "progressive"
    place_rules = (BEHIND_DATA, UNMIXED)  # also inside a Repeat: the samples of a batch are joined once
    transient = ("_ready",)  # the batch under way

    def __init__(
        self,
        network: Any,
        measures: Mapping[str, Measure] | None = None,
        window: int = 1000,
        every: Interval = 100,
        *,
        collate: Callable[[list[Any]], Any] = stack,
        id: str = "id",
        label: str = "labels",
        pending: int = 10_000,
    ) -> None:
        if not (is_whole(pending) and pending >= 1):
            raise CompositionError(f"DelayedLabels: pending must be an integer >= 1, got {pending!r}.")
        self.collate, self.id, self.label, self.pending = collate, id, label, pending
        super().__init__(network, measures, window, every)

    def reset(self) -> None:
        """Start with no pending samples."""
        super().reset()
        self._kept: OrderedDict[str | int, tuple[Sample, Any]] = OrderedDict()
        self._dropped = self._unmatched = 0
        self._ready: Any = None

    def on_batch(self, state: State) -> HookIterator:
        """Predict, join and measure on the way in; run the inside with the samples that have labels, if any."""
        self.latest = {}
        if state.batch is not self._ready:  # else it is run again
            self._ready = self._arrived(self._samples_of(state.batch))
        if self._ready is not None:
            state.batch = self._ready
            yield
            if self.due(state):
                self.act(state)

    def _samples_of(self, batch: Any) -> list[Sample]:
        if not (isinstance(batch, list) and all(isinstance(sample, dict) for sample in batch)):
            raise HookError(
                f"{self.name}: the batch is not a list of dicts; give the item that provides the data collate=list."
            )
        return batch

    def _arrived(self, samples: list[Sample]) -> Any:
        """Add samples; return the batch to train on, or None."""
        predicted = self._predicted(samples)
        found = [pair for pair in (self._joined(sample, predicted) for sample in samples) if pair is not None]
        if not found:
            return None
        batch = self.collate([sample for sample, _ in found])
        self.measure(batch_parts.join([outputs for _, outputs in found]), batch)
        return batch

    def _predicted(self, samples: list[Sample]) -> Iterator[Any]:
        """Return the outputs of the samples that have inputs, in their order."""
        inputs = [inputs for inputs in map(self._inputs, samples) if inputs]
        return map(own, batch_parts.split(self.predict(self.collate(inputs)), 1) if inputs else [])

    def _inputs(self, sample: Sample) -> Sample:
        return {name: value for name, value in sample.items() if name not in (self.id, self.label)}

    def _joined(self, sample: Sample, predicted: Iterator[Any]) -> tuple[Sample, Any] | None:
        """Return a sample with its label, and its prediction; None: one of them is missing."""
        inputs, labelled, key = self._inputs(sample), self.label in sample, self._key(sample)
        pair = (inputs, next(predicted)) if inputs else None
        if pair is not None and not labelled:
            self._keep(key, pair)
            return None
        if pair is None and key is not None:
            pair = self._kept.pop(key, None)
        if pair is None:
            self._unmatched += 1
            return None
        return {**pair[0], self.label: sample[self.label]}, pair[1]

    def _key(self, sample: Sample) -> str | int | None:
        key = sample.get(self.id)
        if key is None or isinstance(key, str) or is_whole(key):
            return key
        raise DataError(f"{self.name}: the id {key!r} is neither a text nor an integer; see 'prepare' of the data.")

    def _keep(self, key: str | int | None, pair: tuple[Sample, Any]) -> None:
        if key is None:  # no label can refer to it
            self._dropped += 1
            return
        self._kept.pop(key, None)
        self._kept[key] = pair
        if len(self._kept) > self.pending:
            self._kept.popitem(last=False)
            self._dropped += 1

    def log_values(self) -> dict[str, float]:
        """Return how many samples are pending, were dropped without a label, and labels found no sample."""
        return {"pending": len(self._kept), "dropped": self._dropped, "unmatched": self._unmatched}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of ProgressiveValidation, and the pending samples with their predictions."""
        kept = as_arrays([(key, *pair) for key, pair in self._kept.items()])
        counts = {"dropped": self._dropped, "unmatched": self._unmatched}
        return {**super().state_dict(), **counts, **{f"kept.{name}": value for name, value in kept.items()}}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state."""
        super().load_state_dict(saved)
        kept = {name.removeprefix("kept."): value for name, value in saved.items() if name.startswith("kept.")}
        self._kept.update({key: (sample, outputs) for key, sample, outputs in from_arrays(kept)})
        self._dropped, self._unmatched = int(saved["dropped"]), int(saved["unmatched"])
