"""What a counting run has counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from onion.checkpointing import checkpoint


def counts_in(folder: Path) -> Counter[float]:
    """Return how many parameters of the newest checkpoint have which value."""
    newest = checkpoint.newest(folder)
    if newest is None:
        raise SystemExit(f"{folder} holds no checkpoint")
    [table] = newest.items["counts"].values()
    return Counter(float(count) for count in table.ravel())
