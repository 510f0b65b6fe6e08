"""The files that a training reads: what its settings name, as files that a task can read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from onion.tasks.data.dev_split import part_of, split
from onion.tasks.data.features.hashing import digest_of_file
from onion.tasks.data.prepared import prepared


@attrs.frozen
class DataFiles:
    """The files of a task.

    Attributes:
        train: the training file.
        dev: the file to test on, or None.
    """

    train: Path
    dev: Path | None

    @classmethod
    def of(
        cls, train: str, dev: str | None, columns: Mapping[str, str], seed: int, together: str | None = None
    ) -> DataFiles:
        """Prepare what settings name.

        Args:
            train: as ``prepared`` takes it.
            dev: the same; or a share of the training file, such as ``0.1``, or a fold of it, such as ``2/5``; None:
                there is nothing to test on.
            columns: as ``prepared`` takes them.
            seed: of the share or the folds.
            together: the column whose rows stay together in a share or a fold. Default: none.

        Raises:
            OnionError: a file is not what it should be, or a library is missing.
        """
        train_file = prepared(train, columns)
        if dev is None:
            return cls(train_file, None)
        if part_of(dev) is not None:
            return cls(*split(train_file, dev, seed, together))
        return cls(train_file, prepared(dev, columns))

    def digests(self) -> dict[str, str | None]:
        """Return the digests of both files, as a run records them.

        Raises:
            DataError: a file cannot be read.
        """
        dev = None if self.dev is None else digest_of_file(self.dev)
        return {"train_sha256": digest_of_file(self.train), "dev_sha256": dev}


def tested_on(train: str, dev: str) -> str:
    """Return how messages name the rows that a training tests on: by their file, or as a part of the training file."""
    return dev if part_of(dev) is None else f"{train} ({dev})"
