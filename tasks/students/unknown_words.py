"""The unknown word in altered copies of texts, as a teacher writes it: ``[UNK]``, or ``<unk>`` (RoBERTa)."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from onion.models.tokenizer import Tokenizer
from onion.models.words.names import UNKNOWN
from onion.tasks.data.rows import Row
from onion.tasks.data.texts import PAIR, TEXT


def unknown_word(tokenizer: Tokenizer) -> str:
    """Return the text that a tokenizer reads as its unknown token."""
    return tokenizer.tokens([tokenizer.unk_id])[0] or UNKNOWN


def as_read_by(tokenizer: Tokenizer, rows: Iterable[Row]) -> list[Row]:
    """Return rows with the unknown word of a teacher's tokenizer instead of a student's, which is ``[UNK]``."""
    unknown = unknown_word(tokenizer)
    if unknown == UNKNOWN:
        return list(rows)
    return [attrs.evolve(row, cells=_with(row, unknown)) for row in rows]


def _with(row: Row, unknown: str) -> dict[str, object]:
    texts = {name: row.cells[name] for name in (TEXT, PAIR) if isinstance(row.cells.get(name), str)}
    return {**row.cells, **{name: text.replace(UNKNOWN, unknown) for name, text in texts.items()}}
