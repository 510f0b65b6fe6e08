"""``answers.jsonl`` of an exported folder: rows, and what the original answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from onion.checkpointing.atomic_files import read_file, write_synced
from onion.errors import CheckpointError
from onion.tasks.export.names import ANSWERS


@attrs.frozen
class KeptAnswer:
    """A row and its answer.

    Attributes:
        row: a line that ``Task.line_rows`` reads; of an encoder, a text.
        prediction: JSON values.
    """

    row: str
    prediction: Any

    @property
    def given(self) -> Any:
        """The row as ``onion.load`` takes it: a text, or a dict."""
        return json.loads(self.row) if self.row.startswith("{") else self.row


def write_answers(folder: Path, rows: Sequence[str], predictions: Sequence[Any]) -> None:
    """Write rows and their answers."""
    told = ({"row": row, "prediction": each} for row, each in zip(rows, predictions, strict=True))
    write_synced(folder / ANSWERS, "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in told).encode())


def read_answers(folder: Path) -> list[KeptAnswer]:
    """Read what :func:`write_answers` wrote; without the file there are none.

    Raises:
        CheckpointError: the file is damaged.
    """
    path = folder / ANSWERS
    if not path.exists():
        return []
    try:
        found = [KeptAnswer(**json.loads(line)) for line in read_file(path).decode().splitlines()]
        if not found or not all(isinstance(each.row, str) and each.given is not None for each in found):
            raise ValueError("rows are texts")
    except (OSError, ValueError, TypeError, RecursionError):
        raise CheckpointError(f"{path} is damaged; export the model again.") from None
    return found
