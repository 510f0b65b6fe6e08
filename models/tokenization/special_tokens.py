"""Which token plays which part: padding, unknown, beginning, end, mask. Without Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tokenizers

from onion.errors import WeightsError


def special_tokens(settings: Mapping[str, Any], defaults: Mapping[str, str]) -> dict[str, str]:
    """Part -> token; Hugging Face stores a token as a string or as an object with ``content``.

    Raises:
        WeightsError: what the settings name is neither; the key is named.
    """
    return {part: _token(part, settings.get(part), default) for part, default in defaults.items()}


def _token(part: str, stored: object, default: str) -> str:
    token = stored.get("content") if isinstance(stored, Mapping) else stored
    if stored is None or token == "":
        return default
    if not isinstance(token, str):
        raise WeightsError(f"{part} is {repr(stored)[:60]}, not a token: a string, or an object with one as content")
    return token


def special_ids(backend: tokenizers.Tokenizer, names: Mapping[str, str]) -> dict[str, int]:
    """Part -> id.

    Raises:
        WeightsError: a token is not in the vocabulary, or two parts have one id, so that a text could not be told from
            its padding, its beginning from its end.
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
            raise WeightsError(f"{both} have the same id, {token_id}; give each part a token of its own")
    return ids
