"""`Passes`: whatever makes the batches of a pass, from examples (`Loader`) or of a `DataLoader`'s (`PaddleBatches`)."""

from __future__ import annotations

from typing import Any, Protocol

from onion.data.interruptible_wait import InterruptibleWait
from onion.data.loader import Batches


class Passes(Protocol):
    """The batches of each pass; one object serves every pass."""

    @property
    def settings(self) -> dict[str, Any]:
        """Order and make of the batches, as plain data: a run that goes on from a checkpoint has the same."""

    @property
    def fingerprint(self) -> str | None:
        """What tells its data from others; see `onion.data.fingerprint`."""

    @property
    def batches_per_pass(self) -> int | None:
        """How many batches a pass has; None where only reading the source to its end would tell."""

    def batches(self, pass_id: int, start: int = 0, wait: InterruptibleWait | None = None) -> Batches:
        """The batches of one pass, from batch `start` on; see `Loader.batches`."""
