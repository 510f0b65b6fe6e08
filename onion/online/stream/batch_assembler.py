"""Samples on their way into the next batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from time import monotonic
from typing import Any, TypeAlias

import attrs

from onion.online.sources.source import Position, Sample, Source

Prepare: TypeAlias = Callable[[Any], Any]
Collate: TypeAlias = Callable[[list[Any]], Any]


@attrs.frozen
class RejectedSample:
    """A sample that cannot be used, and why."""

    sample: Sample
    reason: str


@attrs.define
class _Entry:
    sample: Sample
    example: Any = None
    reason: str | None = None


@attrs.frozen
class AssembledBatch:
    """The samples taken from the source for one batch.

    Attributes:
        batch: Made by ``collate``; None if there are no good samples.
        samples: Number of good samples in it.
        rejected: Those among them that cannot be used.
        position: Behind the last of all of them.
        data: Of the good samples, as the source has them.
        examples: What they were prepared to.
    """

    batch: Any
    samples: int
    rejected: Sequence[RejectedSample]
    position: Position
    data: Sequence[Any] = ()
    examples: Sequence[Any] = ()


class BatchAssembler:
    """Read samples ahead, as far as the next batch needs them, and separate those that cannot be used.

    A rejected sample belongs to the batch of the next good one. So what a batch takes from the source depends on the
    samples only, and not on when they arrive.

    Args:
        source: Of the samples.
        prepare: Makes an example of a sample's data; its error is the reason of a rejection.
        collate: Makes a batch of examples.
    """

    def __init__(self, source: Source, prepare: Prepare | None, collate: Collate) -> None:
        self._source, self._prepare, self._collate = source, prepare, collate
        self._entries: deque[_Entry] = deque()
        self._like: list[Any] = []
        self.like: Any = None
        """The data of a sample of the last batch; the next ones must collate with it."""
        self.good = 0
        self._came: float | None = None

    @property
    def age(self) -> float:
        """Seconds since the first good sample arrived; 0 if there is none."""
        return 0.0 if self._came is None else monotonic() - self._came

    @property
    def overdue(self) -> int:
        """Number of rejected samples at the front, which wait for a good one."""
        return sum(1 for _ in takewhile(lambda entry: entry.reason is not None, self._entries))

    def go_with(self, data: Any) -> None:
        """Require the next batch to collate with a sample of the last one, unless that can no longer be prepared."""
        with suppress(Exception):
            self._like, self.like = [data if self._prepare is None else self._prepare(data)], data

    def more(self, n: int, timeout: float) -> None:
        """Read up to ``n`` more samples; wait for the first of them."""
        for sample in self._source.read(n, timeout):
            entry = _Entry(sample)
            try:
                entry.example = sample.data if self._prepare is None else self._prepare(sample.data)
            except Exception as error:
                entry.reason = describe(error)
            else:
                self.good += 1
                self._came = self._came or monotonic()
            self._entries.append(entry)

    def take(self, n: int) -> AssembledBatch | None:
        """Take a batch of the first ``n`` good samples; None if some of them do not collate and were rejected."""
        assembled = self.look(n)
        if assembled is not None:
            self.remove(assembled)
        return assembled

    def look(self, n: int) -> AssembledBatch | None:
        """Return what ``take`` would, and leave it here, to be removed or looked at again."""
        chosen = self._first(n)
        good = [entry for entry in chosen if entry.reason is None]
        try:
            if self._like:  # all samples of a batch may be wrong in the same way
                self._collate([*self._like, good[0].example])
            batch = self._collate([entry.example for entry in good])
        except Exception:
            if not self._sift(good):
                raise  # each collates with the others and all do not: an error of collate, not of a sample
            return None
        return _assembled(chosen, batch)

    def skip(self, n: int) -> AssembledBatch:
        """Take the first ``n`` samples, all of which are rejected."""
        skipped = _assembled(list(islice(self._entries, n)), None)
        self.remove(skipped)
        return skipped

    def remove(self, assembled: AssembledBatch) -> None:
        """Remove the samples at the front of which a batch was assembled."""
        for _ in range(assembled.samples + len(assembled.rejected)):
            self._entries.popleft()
        if assembled.samples:
            self._like, self.like = [assembled.examples[0]], assembled.data[0]
        self.good -= assembled.samples
        self._came = monotonic() if self.good else None

    def _first(self, n: int) -> list[_Entry]:
        chosen: list[_Entry] = []
        for entry in self._entries:
            chosen.append(entry)
            n -= entry.reason is None
            if n == 0:
                break
        return chosen

    def _sift(self, entries: list[_Entry]) -> bool:
        """Reject those that do not collate with the last batch, or with most of this one; return whether any were."""
        like = self._like or self._usual(entries)
        reasons = [self._clash([*like, entry.example]) for entry in entries]
        for entry, reason in zip(entries, reasons, strict=True):
            if reason is not None:
                entry.reason = reason
                self.good -= 1
        return any(reason is not None for reason in reasons)

    def _usual(self, entries: list[_Entry]) -> list[Any]:
        """Return the first example that collates with most of the others; if none does, the first of all."""
        for entry in entries:
            clashes = sum(self._clash([entry.example, other.example]) is not None for other in entries)
            if 2 * clashes < len(entries):
                return [entry.example]
        return [entry.example for entry in entries[:1] if self._clash([entry.example]) is None]

    def _clash(self, examples: list[Any]) -> str | None:
        """Return why examples cannot be collated; None: they can."""
        try:
            self._collate(examples)
        except Exception as error:
            return describe(error)
        return None


def _assembled(chosen: list[_Entry], batch: Any) -> AssembledBatch:
    good = [entry for entry in chosen if entry.reason is None]
    rejected = [RejectedSample(entry.sample, entry.reason) for entry in chosen if entry.reason is not None]
    data, examples = [entry.sample.data for entry in good], [entry.example for entry in good]
    return AssembledBatch(batch, len(good), rejected, chosen[-1].sample.position, data, examples)


def describe(error: Exception) -> str:
    """Return the kind and the message of an error in one printable line; it may contain a stranger's sample."""
    words = f"{type(error).__name__}: {error}"[:500]
    return "".join(letter if letter.isprintable() else " " for letter in words)
