"""`BatchDecisions`: where a stream is cut, as far as this depends on when samples arrive."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from time import monotonic

from onion.online.journal.journal import Journal, JournalRow


class BatchDecisions:
    """Where a batch is cut short, rejected samples are skipped, and a pass by time ends.

    Decisions are written to the journal; while a run follows its journal, the rows decide. In all methods ``batch`` is
    the number of batches that the run has drawn.
    """

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal = journal
        self._rows: dict[str, int] = {}  # taken from the journal, and not applied yet
        self._pass_ends = inf
        self._over = False

    def close(self) -> None:
        """Release the journal at the end of the run."""
        self._journal = None

    # -- batches ------------------------------------------------------------------------------------------------------

    def size(self, batch: int) -> int | None:
        """Return the size to which the next batch was cut; None: the journal has no such row."""
        return self._decided(batch, "samples")

    def waits(self, batch: int) -> bool:
        """Return whether the next batch waits for its samples without a time limit, as the followed run had them."""
        return "samples" in self._rows or self._follows(batch)

    def given(self, batch: int, samples: int, wanted: int) -> None:
        """Record the size of the next batch, if it is below the wanted one."""
        if samples < wanted:
            self._note(batch, "samples", samples)
        self._rows.pop("samples", None)

    def passed_by(self, batch: int, rejected: int, limit: int) -> int:
        """Return how many of the rejected samples at the front to skip: all from ``limit`` on; 0: none yet."""
        skipped = self._decided(batch, "skipped")
        if skipped is not None:
            return self._rows.pop("skipped") if rejected >= skipped else 0
        if rejected < limit or self._follows(batch):
            return 0
        self._note(batch, "skipped", rejected)
        return rejected

    # -- passes by time -----------------------------------------------------------------------------------------------

    def begin_pass(self, lasts: timedelta) -> None:
        """Start a pass by time."""
        self._pass_ends, self._over = monotonic() + lasts.total_seconds(), False

    def ends_pass(self, batch: int, begun: bool) -> bool:
        """Return whether the time of the pass is up; once True, it stays so. A pass has at least one batch."""
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

    # -- the journal ---------------------------------------------------------------------------------------------------

    def _follows(self, batch: int) -> bool:
        return self._journal is not None and self._journal.follows(batch)

    def _due(self, batch: int, kind: str) -> JournalRow | None:
        return None if self._journal is None else self._journal.due(batch, kind)

    def _decided(self, batch: int, kind: str) -> int | None:
        """Return a number of the journal, kept until it is applied, as the journal returns a row once."""
        if kind not in self._rows and (row := self._due(batch, kind)) is not None:
            self._rows[kind] = int(row[kind])
        return self._rows.get(kind)

    def _note(self, batch: int, kind: str, value: int) -> None:
        if self._journal is not None:
            self._journal.note({"batch": batch, kind: value})
