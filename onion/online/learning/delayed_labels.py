"""Labels that come later than the samples they belong to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from onion.data import batch_parts
from onion.data.batching import collate as stack
from onion.engine.item import HookIterator
from onion.engine.periodic import Interval
from onion.engine.placement import BEHIND_DATA
from onion.engine.state import State
from onion.errors import CompositionError, DataError, HookError
from onion.online.learning.array_rows import as_arrays, from_arrays, own
from onion.online.learning.progressive_validation import UNMIXED, Measure, ProgressiveValidation
from onion.validation import is_whole

Sample: TypeAlias = dict[str, Any]


class DelayedLabels(ProgressiveValidation):
    """Progressive validation where labels come later: predict now, measure and train when the label comes.

        Runner(..., StreamProvider(spool, prepare=fields_of, collate=list), DelayedLabels(network), ...)

    A batch that comes in is a list of samples, each a dict, of three forms that may be mixed:

        {"id": "a", "x": ...}                  is predicted and kept; it is not trained on
        {"id": "a", "labels": 1}               is joined with the kept sample: measured by its old prediction, trained
        {"id": "b", "x": ..., "labels": 0}     is predicted, measured and trained at once; needs no id

    The rings inside get one batch of all that can be trained on, made by ``collate`` and without the ids. Where there
    is nothing, the inside is skipped: such a batch makes no step. A label that finds no sample is left out and counted,
    also if its sample comes later. Of two samples with one id the later one is kept.

    Args:
        network: see ProgressiveValidation, as for ``measures``, ``window`` and ``every``.
        measures: by name. Default: ``accuracy``.
        window: in samples. Default 1000.
        every: between two reports. Default 100 steps.
        collate: makes a batch of a list of samples without ids, all with labels or none. Default: stack field by field.
        id: the field that identifies the sample: a text or a whole number. Default ``id``.
        label: the field of the label. Default ``labels``.
        pending: how many samples wait for their labels at most; then the oldest go, and are counted. Default 10,000.

    Raises:
        CompositionError: ``pending`` is no integer >= 1; see also ProgressiveValidation.
        HookError: a batch is no list of dicts.
        DataError: an id is neither a text nor a whole number.
    """

    name = "progressive"
    place_rules = (BEHIND_DATA, UNMIXED)  # and inside a Repeat if need be: what a batch has is joined once
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
        """Begin with no sample that waits."""
        super().reset()
        self._kept: OrderedDict[str | int, tuple[Sample, Any]] = OrderedDict()
        self._dropped = self._unmatched = 0
        self._ready: Any = None

    def on_batch(self, state: State) -> HookIterator:
        """Predict, join and measure on the way in; run the inside with what has its label by now, if anything has."""
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
                f"{self.name}: the batch is no list of dicts; let the item that brings the data give one, with "
                "collate=list."
            )
        return batch

    def _arrived(self, samples: list[Sample]) -> Any:
        """Take samples in; return the batch to be trained on, or None."""
        predicted = self._predicted(samples)
        found = [pair for pair in (self._joined(sample, predicted) for sample in samples) if pair is not None]
        if not found:
            return None
        batch = self.collate([sample for sample, _ in found])
        self.measure(batch_parts.join([outputs for _, outputs in found]), batch)
        return batch

    def _predicted(self, samples: list[Sample]) -> Iterator[Any]:
        """Give the outputs of the samples that have inputs, in their order."""
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
        raise DataError(f"{self.name}: the id {key!r} is neither a text nor a whole number; see 'prepare' of the data.")

    def _keep(self, key: str | int | None, pair: tuple[Sample, Any]) -> None:
        if key is None:  # no label can ever find it
            self._dropped += 1
            return
        self._kept.pop(key, None)
        self._kept[key] = pair
        if len(self._kept) > self.pending:
            self._kept.popitem(last=False)
            self._dropped += 1

    def log_values(self) -> dict[str, float]:
        """Return how many samples wait for labels, were dropped without one, and labels found no sample."""
        return {"pending": len(self._kept), "dropped": self._dropped, "unmatched": self._unmatched}

    def state_dict(self) -> dict[str, Any]:
        """Return what ProgressiveValidation does, and the samples that wait, with their predictions."""
        kept = as_arrays([(key, *pair) for key, pair in self._kept.items()])
        counts = {"dropped": self._dropped, "unmatched": self._unmatched}
        return {**super().state_dict(), **counts, **{f"kept.{name}": value for name, value in kept.items()}}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state."""
        super().load_state_dict(saved)
        kept = {name.removeprefix("kept."): value for name, value in saved.items() if name.startswith("kept.")}
        self._kept.update({key: (sample, outputs) for key, sample, outputs in from_arrays(kept)})
        self._dropped, self._unmatched = int(saved["dropped"]), int(saved["unmatched"])
