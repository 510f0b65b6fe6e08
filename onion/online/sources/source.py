"""Providers of samples that arrive one after the other, without an end: `Source`, and writers.

A position is a place between two samples, a string that only its source interprets; ``""`` is the beginning. It is
saved in the same checkpoint as the weights, and so identifies exactly which samples are in them. Samples stay in their
source until the checkpoints have advanced past them (``commit``): what was read, but is not in a checkpoint, is read
again after a crash.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import timedelta
from time import monotonic, sleep
from typing import Any, Protocol, TypeAlias

import attrs

from onion.errors import CompositionError, DataError
from onion.validation import is_whole

Position: TypeAlias = str

Retention: TypeAlias = timedelta | int
"""How long samples are kept after training on them: a time, or a size in bytes."""


@attrs.frozen
class Sample:
    """One sample.

    Attributes:
        data: A JSON value, usually a dict.
        position: The place just behind it.
    """

    data: Any
    position: Position


class Source(Protocol):
    """Samples in an order that never changes, however often they are read.

    It is opened by the first read, and only one thread uses it at a time. A source that ``onion replay`` can read has a
    method ``replay_reader()``, which returns a source of the same samples from the first one on; reading that one
    removes and changes nothing.
    """

    @property
    def position(self) -> Position:
        """The place behind the last sample that was read."""

    @position.setter
    def position(self, position: Position) -> None:
        """Continue reading at another place."""

    def read(self, n: int, timeout: float) -> list[Sample]:
        """Return the next samples, at most ``n``; wait for the first of them.

        Args:
            n: At least 1.
            timeout: Seconds to wait at most; 0: not at all. Then the list is empty.

        Raises:
            DataError: The source is gone or damaged, or no longer has the samples at this place. A source that is
                only away for a while (a server that restarts) is waited for, as an empty one is.
        """

    def commit(self, position: Position) -> None:
        """Allow the removal of the samples before a position: they will not be read again."""

    def waiting(self) -> int | None:
        """Return how many samples have not been read yet; None: unknown."""

    def close(self) -> None:
        """Release files and connections; a later read opens them again."""


class ReplayReader(Source):
    """Reads all samples of a source from the first one on, to replay its run.

    Args:
        source: A source that was opened for reading only: it removes, moves and acknowledges nothing.
        first: Its position before the very first sample. If samples were removed, reading from there raises DataError,
            whereas ``""`` is the oldest sample that is still present.
    """

    def __init__(self, source: Source, first: Position) -> None:
        self._source, self._first = source, first
        self.position = ""

    @property
    def position(self) -> Position:
        """The place behind the last sample that was read."""
        return self._source.position

    @position.setter
    def position(self, position: Position) -> None:
        self._source.position = position or self._first

    def read(self, n: int, timeout: float) -> list[Sample]:
        """Return the next samples; see ``Source.read``."""
        return self._source.read(n, timeout)

    def commit(self, position: Position) -> None:
        """Remove nothing."""

    def waiting(self) -> None:
        """Return None: no sample waits to be replayed."""

    def close(self) -> None:
        """Release the source."""
        self._source.close()


# -- writing -----------------------------------------------------------------------------------------------------------


class SampleWriter(ABC):
    """Puts samples into a source; a context manager, which closes it.

    Attributes:
        producer: Owner of the cursor. One process at a time writes for a producer that has cursors.
        block: Seconds to wait for room; ``math.inf``: without limit; None: not at all.
    """

    POLL_SECONDS = 0.02
    """Time between two attempts, in seconds."""

    producer: str
    block: float | None

    def write(self, samples: list[Any], cursor: str | None = None) -> int:
        """Put samples at the end, all of them or none; they are on disk when this returns.

        Args:
            samples: JSON values.
            cursor: The producer's progress, stored in the same transaction as the samples, so that a producer that
                was killed can continue where it was. None leaves the cursor unchanged.

        Returns:
            The number of samples taken; 0 if this cursor is already stored.

        Raises:
            Full: There is no room.
            DataError: A sample is not a JSON value, or there are more than the capacity.
        """
        texts = to_json_lines(samples)
        if not texts and cursor is None:
            return 0
        deadline = monotonic() + (self.block or 0.0)
        while (taken := self._try_write(texts, cursor)) is None:
            left = deadline - monotonic()
            if left <= 0:
                raise Full
            sleep(min(self.POLL_SECONDS, left))
        return taken

    @abstractmethod
    def _try_write(self, texts: list[str], cursor: str | None) -> int | None:
        """Return how many samples were taken; None: there is no room for them."""

    @property
    @abstractmethod
    def cursor(self) -> str | None:
        """The cursor of the last write of this producer that had one; None before its first."""

    @abstractmethod
    def close(self) -> None:
        """Release the file or connection; a later write opens it again."""

    def __enter__(self) -> SampleWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Full(Exception):  # noqa: N818  not an error of the program
    """There is no room for more samples.

    Args:
        seconds: After how long it is worth trying again.
    """

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__(f"no room for more samples; try again in {seconds:g} s")
        self.seconds = seconds


def check_retention(owner: str, retention: object) -> None:
    """Require a duration or a number of bytes; otherwise raise CompositionError."""
    if isinstance(retention, timedelta) and retention >= timedelta(0):
        return
    if not (is_whole(retention) and retention >= 0):
        raise CompositionError(f"{owner}: retention must be a timedelta or a number of bytes, >= 0, got {retention!r}.")


# -- samples as sources store them: a line of JSON each ----------------------------------------------------------------


def to_json_lines(samples: Iterable[Any]) -> list[str]:
    """Return each sample as one line of JSON that UTF-8 can encode.

    Raises:
        DataError: One of them is not a JSON value; NaN and infinities are not.
    """
    return [_to_json(number, sample) for number, sample in enumerate(samples, 1)]


def from_json(text: str, where: str) -> Any:
    """Return the sample in a line of JSON; if it is damaged, raise DataError, whose message begins with ``where``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{where}: the stored text is not JSON ({error}); it is damaged, restore the original."
        ) from None


def _to_json(number: int, sample: Any) -> str:
    try:
        text = json.dumps(sample, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        if not _fits_utf8(text):
            text = json.dumps(sample, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"sample {number} of this write is not a JSON value ({error}); use dicts, lists, texts, finite numbers, "
            "true, false and null. No sample was taken."
        ) from None
    return text


def _fits_utf8(text: str) -> bool:
    """Return whether a text contains no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
