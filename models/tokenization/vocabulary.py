"""``vocab.txt``, one token per line, with or without its id; and the special tokens. Without Paddle.

In BERT's a line is the token, and its number from 0 the id; in ERNIE's it is ``token<TAB>id``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tokenizers

from onion.errors import WeightsError

log = logging.getLogger("onion")

_ID = re.compile("[0-9]{1,10}")  # int() accepts other digits too, and refuses very long numbers


def read_vocab(path: Path, special: Iterable[str] = ()) -> dict[str, int]:
    """Read a vocabulary.

    If a token occurs twice (``$`` in ERNIE 3.0's), the later id counts, as in the reference implementations, with a
    warning. A special token may not occur twice: a model is useless with a wrong id for it.

    Args:
        path: the file.
        special: the special tokens.

    Returns:
        token -> id. The ids in the file are 0, 1, 2, ... without a gap.

    Raises:
        WeightsError: the file cannot be read or is not UTF-8, lines differ in having an id, an id is not a whole
            number, occurs twice or leaves a gap, or a special token occurs twice; the message has file and line.
    """
    rows = _read_rows(path)
    tokens, ids = _with_ids(path, rows) if rows and "\t" in rows[0] else _numbered(path, rows)
    vocab = dict(zip(tokens, ids, strict=True))
    if len(vocab) < len(tokens):
        # An empty line is not a token, but has an id.
        twice = [token for token in _repeated(tokens) if token]
        for token in [token for token in twice if token in set(special)]:
            first, second = [line for line, one in enumerate(tokens, start=1) if one == token][:2]
            raise WeightsError(
                f"{path}, line {second}: the special token {token} is in line {first} too; rename the wrong one"
            )
        if twice:
            log.warning("%s: occurs more than once, the later id counts: %s", path, ", ".join(twice[:5]))
    return vocab


def vocab_bytes(vocab: Mapping[str, int]) -> bytes:
    """Return the content of a ``vocab.txt`` without ids; lines of unused ids are empty."""
    tokens = {index: token for token, index in vocab.items()}
    return "".join(f"{tokens.get(index, '')}\n" for index in range(1 + max(tokens))).encode()


def _read_rows(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")  # turns \r\n and \r into \n
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path}: cannot read: {error}") from error
    # Not splitlines(), which splits at U+2028, a token of bert-base-chinese.
    return text.rstrip("\n").split("\n") if text.strip("\n") else []


def _numbered(path: Path, rows: list[str]) -> tuple[list[str], range]:
    for number, row in enumerate(rows, start=1):
        if "\t" in row:
            raise WeightsError(f"{path}, line {number}: has a tab, but the first line has no id; add ids to all lines")
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
            raise WeightsError(f"{path}, line {number}: id {value} is in line {lines[value]} too")
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


def special_tokens(settings: Mapping[str, Any], defaults: Mapping[str, str]) -> dict[str, str]:
    """Return part -> token; Hugging Face stores a token as a string or as an object with ``content``."""
    return {part: _token(part, settings.get(part), default) for part, default in defaults.items()}


def _token(part: str, stored: object, default: str) -> str:
    token = stored.get("content") if isinstance(stored, Mapping) else stored
    if stored is None or token == "":
        return default
    if not isinstance(token, str):
        raise WeightsError(f"{part} is {repr(stored)[:60]}, not a token: a string, or an object with one as content")
    return token


def special_ids(backend: tokenizers.Tokenizer, names: Mapping[str, str]) -> dict[str, int]:
    """Return part -> id.

    Raises:
        WeightsError: a token is not in the vocabulary, or two parts have the same id, which could not be distinguished.
    """
    found = {part: backend.token_to_id(token) for part, token in names.items()}
    ids = {part: token_id for part, token_id in found.items() if token_id is not None}
    missing = [token for part, token in names.items() if part not in ids]
    if missing:
        raise WeightsError(f"special tokens are missing in the vocabulary: {', '.join(missing)}")
    parts: dict[int, str] = {}
    for part, token_id in ids.items():
        if (other := parts.setdefault(token_id, part)) != part:
            both = f"{other} {names[other]!r} and {part} {names[part]!r}"
            raise WeightsError(f"{both} have the same id, {token_id}; use a different token for each part")
    return ids
