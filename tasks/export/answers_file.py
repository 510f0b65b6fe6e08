"""``answers.jsonl`` of an exported folder: rows, what the original answered, and with 8 bits what the model does."""

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
        prediction: what the original answered; JSON values.
        exported: what the exported model answers to this row alone, if it has 8 bits; else None.
    """

    row: str
    prediction: Any
    exported: Any = None


def write_answers(
    folder: Path, rows: Sequence[str], predictions: Sequence[Any], exported: Sequence[Any] | None = None
) -> None:
    """Write rows and their answers; see :class:`KeptAnswer`."""
    found = [{"row": row, "prediction": each} for row, each in zip(rows, predictions, strict=True)]
    told = found if exported is None else [{**each, "exported": own} for each, own in zip(found, exported, strict=True)]
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
        found = [KeptAnswer(**json.loads(line)) for line in read_file(path).decode().split("\n") if line]
        if not found or not all(isinstance(each.row, str) for each in found):
            raise ValueError("rows are texts")
    except (OSError, ValueError, TypeError, RecursionError):
        raise CheckpointError(f"{path} is damaged; export the model again.") from None
    return found
