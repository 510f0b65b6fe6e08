"""``vocab.txt``: a token a line, with or without its id. Without Paddle.

BERT's has the token alone, its id is the line's number from 0; ERNIE's has ``token<TAB>id``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from onion.errors import WeightsError

log = logging.getLogger("onion")

_ID = re.compile("[0-9]{1,10}")  # int() takes other digits too, and refuses thousands of them


def read_vocab(path: Path, special: Iterable[str] = ()) -> dict[str, int]:
    """Read a vocabulary.

    Of a token that occurs twice (``$`` in ERNIE 3.0's) the later id counts, as in the reference implementations, which
    fill a dictionary line by line; the log says so once. A special token may not: with the wrong id for it a model is
    worth nothing.

    Args:
        path: the file.
        special: the special tokens.

    Returns:
        token -> id. The ids in the file are 0, 1, 2, ... without a gap.

    Raises:
        WeightsError: the file cannot be read or is not UTF-8, a line has no id or more than one where the first line
            has one, an id is not a whole number, occurs twice or leaves a gap, or a special token occurs twice; file
            and line are named.
    """
    rows = _read_rows(path)
    tokens, ids = _with_ids(path, rows) if rows and "\t" in rows[0] else _numbered(path, rows)
    vocab = dict(zip(tokens, ids, strict=True))
    if len(vocab) < len(tokens):
        # An empty line is no token but takes its id.
        twice = [token for token in _repeated(tokens) if token]
        for token in [token for token in twice if token in set(special)]:
            first, second = [line for line, one in enumerate(tokens, start=1) if one == token][:2]
            raise WeightsError(
                f"{path}, line {second}: the special token {token} stands in line {first} too; rename the wrong one"
            )
        if twice:
            log.warning("%s: occurs more than once, the later id counts: %s", path, ", ".join(twice[:5]))
    return vocab


def vocab_bytes(vocab: Mapping[str, int]) -> bytes:
    """The content of a ``vocab.txt`` without ids: line by line the token of each id, an empty one for no token."""
    tokens = {index: token for token, index in vocab.items()}
    return "".join(f"{tokens.get(index, '')}\n" for index in range(1 + max(tokens))).encode()


def _read_rows(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")  # turns \r\n and \r into \n
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path}: cannot read: {error}") from error
    # Not splitlines(): U+2028 is a token of bert-base-chinese, and a line's end to splitlines.
    return text.rstrip("\n").split("\n") if text.strip("\n") else []


def _numbered(path: Path, rows: list[str]) -> tuple[list[str], range]:
    for number, row in enumerate(rows, start=1):
        if "\t" in row:
            raise WeightsError(f"{path}, line {number}: has a tab, but the first line has no id; give all lines one")
    return [row.strip(" ") for row in rows], range(len(rows))


def _with_ids(path: Path, rows: list[str]) -> tuple[list[str], list[int]]:
    tokens: list[str] = []
    lines: dict[int, int] = {}
    for number, row in enumerate(rows, start=1):
        token, *rest = row.split("\t")
        if len(rest) != 1:
            raise WeightsError(f"{path}, line {number}: {len(rest)} tabs, not one between token and id")
        if not _ID.fullmatch(rest[0].strip()):
            raise WeightsError(f"{path}, line {number}: {rest[0][:20]!r} is not an id (0, 1, 2, ...)")
        value = int(rest[0])
        if value in lines:
            raise WeightsError(f"{path}, line {number}: id {value} stands in line {lines[value]} too")
        lines[value] = number
        tokens.append(token.strip(" "))
    if max(lines) != len(lines) - 1:
        gap = next(value for value in range(len(lines)) if value not in lines)
        above = min(value for value in lines if value > gap)
        raise WeightsError(f"{path}, line {lines[above]}: id {above} leaves a gap, no line has id {gap}")
    return tokens, list(lines)


def _repeated(tokens: list[str]) -> list[str]:
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for token in tokens:
        if token in seen:
            twice[token] = None
        seen.add(token)
    return list(twice)
