"""Where a stream is cut, as far as that depends on when samples came."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from time import monotonic

from onion.online.record import Record
from onion.online.rows import Row


class Cuts:
    """Where a batch is cut short, bad samples are passed by, and a pass by time ends.

    What is decided now is noted in the record. As long as the run follows the record, all is as that tells. In all
    methods ``batch`` is how many batches the run has drawn.

    Args:
        record: of the run. Default None: it has none.
    """

    def __init__(self, record: Record | None = None) -> None:
        self._record = record
        self._told: dict[str, int] = {}  # taken from the record, and not done yet
        self._pass_ends = inf
        self._over = False

    def close(self) -> None:
        """Let go of the record: the run is over."""
        self._record = None

    # -- batches ------------------------------------------------------------------------------------------------------

    def size(self, batch: int) -> int | None:
        """Return how many samples the next batch was cut short to; None: the record does not tell."""
        return self._tells(batch, "samples")

    def waits(self, batch: int) -> bool:
        """Tell whether the next batch waits for its samples however late they are: it had them before."""
        return "samples" in self._told or self._follows(batch)

    def given(self, batch: int, samples: int, wanted: int) -> None:
        """Note how many samples the next batch has, if it wanted more."""
        if samples < wanted:
            self._note(batch, "samples", samples)
        self._told.pop("samples", None)

    def passed_by(self, batch: int, rejected: int, many: int) -> int:
        """Return how many of the rejected samples in front are passed by now: all once there are many; 0: none yet."""
        told = self._tells(batch, "skipped")
        if told is not None:
            return self._told.pop("skipped") if rejected >= told else 0
        if rejected < many or self._follows(batch):
            return 0
        self._note(batch, "skipped", rejected)
        return rejected

    # -- passes by time -----------------------------------------------------------------------------------------------

    def begin_pass(self, lasts: timedelta) -> None:
        """Let a pass by time begin."""
        self._pass_ends, self._over = monotonic() + lasts.total_seconds(), False

    def ends_pass(self, batch: int, begun: bool) -> bool:
        """Tell whether the time of the pass is up; once it has said so it is. One that has no batch yet goes on."""
        if not self._over:
            self._over = self._ended(batch) if self._follows(batch) else begun and self._ends(batch)
        return self._over

    def _ended(self, batch: int) -> bool:
        return self._due(batch, "pass_end") is not None

    def _ends(self, batch: int) -> bool:
        if monotonic() < self._pass_ends:
            return False
        self._note(batch, "pass_end", True)
        return True

    # -- the record ---------------------------------------------------------------------------------------------------

    def _follows(self, batch: int) -> bool:
        return self._record is not None and self._record.follows(batch)

    def _due(self, batch: int, kind: str) -> Row | None:
        return None if self._record is None else self._record.due(batch, kind)

    def _tells(self, batch: int, kind: str) -> int | None:
        """Return a number of the record's; it is kept until it is done, for the record tells it once."""
        if kind not in self._told and (row := self._due(batch, kind)) is not None:
            self._told[kind] = int(row[kind])
        return self._told.get(kind)

    def _note(self, batch: int, kind: str, value: int) -> None:
        if self._record is not None:
            self._record.note({"batch": batch, kind: value})
