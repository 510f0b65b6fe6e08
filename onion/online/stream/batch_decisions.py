"""`BatchDecisions`: where a stream is cut, as far as that depends on when samples came."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from time import monotonic

from onion.online.journal.journal import Journal, JournalRow


class BatchDecisions:
    """Where a batch is cut short, bad samples are passed by, and a pass by time ends.

    What is decided now is written to the journal. As long as the run follows the journal, its rows decide. In all
    methods ``batch`` is how many batches the run has drawn.

    Args:
        journal: of the run. Default None: it has none.
    """

    def __init__(self, journal: Journal | None = None) -> None:
        self._journal = journal
        self._rows: dict[str, int] = {}  # taken from the journal, and not done yet
        self._pass_ends = inf
        self._over = False

    def close(self) -> None:
        """Release the journal: the run is over."""
        self._journal = None

    # -- batches ------------------------------------------------------------------------------------------------------

    def size(self, batch: int) -> int | None:
        """Return how many samples the next batch was cut short to; None: the journal has no such row."""
        return self._decided(batch, "samples")

    def waits(self, batch: int) -> bool:
        """Return whether the next batch waits for its samples however late they are: it had them before."""
        return "samples" in self._rows or self._follows(batch)

    def given(self, batch: int, samples: int, wanted: int) -> None:
        """Note how many samples the next batch has, if it wanted more."""
        if samples < wanted:
            self._note(batch, "samples", samples)
        self._rows.pop("samples", None)

    def passed_by(self, batch: int, rejected: int, many: int) -> int:
        """Return how many of the rejected samples in front are passed by now: all once there are many; 0: none yet."""
        skipped = self._decided(batch, "skipped")
        if skipped is not None:
            return self._rows.pop("skipped") if rejected >= skipped else 0
        if rejected < many or self._follows(batch):
            return 0
        self._note(batch, "skipped", rejected)
        return rejected

    # -- passes by time -----------------------------------------------------------------------------------------------

    def begin_pass(self, lasts: timedelta) -> None:
        """Let a pass by time begin."""
        self._pass_ends, self._over = monotonic() + lasts.total_seconds(), False

    def ends_pass(self, batch: int, begun: bool) -> bool:
        """Return whether the time of the pass is up, and stays so. One that has no batch yet continues."""
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
        """Return a number of the journal's; it is kept until it is used, for the journal gives a row once."""
        if kind not in self._rows and (row := self._due(batch, kind)) is not None:
            self._rows[kind] = int(row[kind])
        return self._rows.get(kind)

    def _note(self, batch: int, kind: str, value: int) -> None:
        if self._journal is not None:
            self._journal.note({"batch": batch, kind: value})
