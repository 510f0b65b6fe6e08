"""What brings samples one after the other, from outside and without an end: the protocol of all sources.

A position is a place between two samples, written as a string that only its source reads; ``""`` is the beginning. It
is saved in the same checkpoint as the weights, and so tells exactly which samples are in them. Samples stay at their
source until the checkpoints have gone past them (``commit``): what was read, and is not in a checkpoint, is read again
after a crash.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import attrs

Position: TypeAlias = str


@attrs.frozen
class Sample:
    """One sample as it was put in.

    Attributes:
        data: A JSON value, most often a dict.
        position: The place just behind it.
    """

    data: Any
    position: Position


class Source(Protocol):
    """Samples in an order that never changes, whoever reads them and as often as they are read.

    It is opened at the first read, and only one thread uses it at a time.
    """

    @property
    def position(self) -> Position:
        """The place behind the last sample that was read."""

    @position.setter
    def position(self, position: Position) -> None:
        """Read on from another place."""

    def read(self, n: int, timeout: float) -> list[Sample]:
        """Return the next samples, at most ``n``; wait for the first of them.

        Args:
            n: From 1.
            timeout: Seconds to wait at most; 0: not at all. Then the list is empty.

        Raises:
            DataError: The source is gone or broken, or has no longer what comes at this place. A source that is only
                away for a while (a server that is started anew) is waited for, as an empty one is.
        """

    def commit(self, position: Position) -> None:
        """Take notice that samples before a position will not be asked for again, so that they may be removed."""

    def waiting(self) -> int | None:
        """Return how many samples have not been read yet; None where that is not known."""

    def close(self) -> None:
        """Let go of files and connections; a later read opens them again."""


@runtime_checkable
class Intake(Protocol):
    """What takes samples in for a source: a writer."""

    def write(self, samples: list[Any], mark: str | None = None) -> int:
        """Put samples at the end, all of them or none; they are on disk when this returns.

        Args:
            samples: JSON values.
            mark: How far the producer has got, kept in the same transaction as the samples. It lets a producer that was
                killed go on where it stood.

        Returns:
            How many were taken.

        Raises:
            Full: There is no room.
        """

    @property
    def mark(self) -> str | None:
        """The mark of the last write of this producer; None before its first."""


class Full(Exception):  # noqa: N818  it is no fault of the program's
    """There is no room for more samples.

    Args:
        seconds: After how long it is worth trying again.
    """

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__(f"no room for more samples; try again in {seconds:g} s")
        self.seconds = seconds
