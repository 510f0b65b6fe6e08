"""`ReplayBuffer`: old samples mixed into new batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np

from onion.data import batch_parts
from onion.engine.item import RunnerItem
from onion.engine.placement import BEHIND_DATA, NETWORKS, Around
from onion.engine.state import State
from onion.errors import CompositionError, DataError
from onion.online.learning.array_rows import as_arrays, from_arrays, own
from onion.training.adjustable import Adjustable
from onion.validation import is_number, is_whole

MAX_RATIO = 16.0


class ReplayBuffer(RunnerItem):
    """Keep a uniform random sample of all samples so far, and mix some of it into each batch.

        Runner(..., StreamProvider(spool), ProgressiveValidation(network), ReplayBuffer(10_000, 0.5), updater, ...)

    Every sample so far is in the buffer with the same probability (reservoir sampling, algorithm R; Vitter 1985). On
    the way in, ``ratio * n`` samples, drawn from the buffer without replacement, are put before the ``n`` new ones;
    fractions are carried over to the next batch. The buffer takes the new samples after that, so no sample meets
    itself. The choice depends on ``seed`` only and draws from no global generator.

    A batch is anything that ``onion.data.batch_parts`` can split: arrays ``[n, ...]`` and lists of length n, also in
    dicts and tuples. The mixed batch stays on the state, so items outside see outputs of the mixed batch. A batch that
    is run again (Repeat outside) is not mixed again. The samples of the buffer are in the checkpoint, as arrays.

    Args:
        size: of the buffer, in samples.
        ratio: old samples per new one, from 0 to 16; adjustable during the run. Default 0.5.
        seed: of the choice. Default 0.
        join: makes a batch of a list of batches: the old samples (one each), and the new batch as the last. Default:
            concatenation along the first axis, which requires texts padded to one length.

    Raises:
        CompositionError: ``size`` or ``ratio`` is out of range.
        DataError: a batch cannot be split, contains tensors, or cannot be joined with older ones.
    """

    alone_because = (
        "it makes new batches, with the samples that it keeps, and those are not cut into pieces; send old samples "
        "through the source once more, or run it in one process"
    )

    keep_for_inference = False
    mixes_batches = True
    place_rules = (BEHIND_DATA, Around(NETWORKS, "mixes old samples into the batches of the networks inside it"))
    transient = ("_mixed",)  # the batch under way

    def __init__(
        self, size: int, ratio: float = 0.5, seed: int = 0, join: Callable[[list[Any]], Any] = batch_parts.join
    ) -> None:
        if not (is_whole(size) and size >= 1):
            raise CompositionError(f"ReplayBuffer: size must be an integer >= 1, got {size!r}.")
        if not (is_number(ratio) and 0 <= ratio <= MAX_RATIO):
            raise CompositionError(f"ReplayBuffer: ratio must be a number between 0 and 16, got {ratio!r}.")
        self.size, self.ratio, self.seed, self.join = size, float(ratio), seed, join
        self.reset()

    def reset(self) -> None:
        """Start with an empty buffer."""
        self._rows: list[Any] = []
        self._seen = 0
        self._owed = 0.0
        self._mixed: Any = None
        self._random = np.random.PCG64(self.seed)

    def on_batch(self, state: State) -> None:
        """Mix old samples in; keep the new ones."""
        if state.batch is not self._mixed:  # otherwise it is run again
            self._mixed = state.batch = self._with_old(state.batch)

    def _with_old(self, batch: Any) -> Any:
        new = [own(row) for row in batch_parts.split(batch, 1)]
        self._owed += self.ratio * len(new)
        count = int(self._owed)
        self._owed -= count
        old = [self._rows[place] for place in self._chosen(min(count, len(self._rows)))]
        for row in new:
            self._take(row)
        return self._joined([*old, batch]) if old else copy(batch)

    def _chosen(self, count: int) -> list[int]:
        """Choose places in the buffer, each set of them with the same probability (Floyd's algorithm)."""
        chosen: dict[int, None] = {}
        for last in range(len(self._rows) - count, len(self._rows)):
            place = self._below(last + 1)
            chosen[last if place in chosen else place] = None
        return list(chosen)

    def _take(self, row: Any) -> None:
        """Put a row into the buffer with the probability that all rows have."""
        self._seen += 1
        if len(self._rows) < self.size:
            self._rows.append(row)
        elif (place := self._below(self._seen)) < self.size:
            self._rows[place] = row

    def _below(self, bound: int) -> int:
        # Of raw bits, not by numpy's Generator, whose draws may differ in the version that resumes the run. The bias of
        # the remainder is below bound / 2**64.
        return int(self._random.random_raw()) % bound

    def _joined(self, parts: list[Any]) -> Any:
        try:
            return self.join(parts)
        except Exception as error:
            raise DataError(
                f"{self.name}: samples of earlier batches cannot be joined with this one ({error}); pad all to one "
                "length, or give join=, which makes a batch of a list of batches."
            ) from error

    def adjustable(self) -> dict[str, Adjustable]:
        """Return the ratio."""
        return {"ratio": Adjustable(0.0, MAX_RATIO, lambda: self.ratio, self._set_ratio)}

    def _set_ratio(self, ratio: float) -> None:
        self.ratio = float(ratio)

    def log_values(self) -> dict[str, float]:
        """Return how many samples are in the buffer."""
        return {"buffered": len(self._rows)}

    def state_dict(self) -> dict[str, Any]:
        """Return the samples, the state of the generator, and the ratio, which may have been adjusted."""
        counts = {"seen": self._seen, "owed": self._owed, "ratio": self.ratio}
        return {**as_arrays(self._rows), **counts, "generator": json.dumps(self._random.state)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state."""
        self.reset()
        self._rows = from_arrays(saved)
        self._seen, self._owed, self.ratio = int(saved["seen"]), float(saved["owed"]), float(saved["ratio"])
        self._random.state = json.loads(saved["generator"])
