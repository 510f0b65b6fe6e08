"""A tokenizer with a part of the vocabulary, whose ids count from 0 without gaps."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import tokenizers

WORDPIECE = "WordPiece"
"""The one kind of model that can be cut: its tokens do not depend on each other, as merges and scores of others do."""


def can_be_cut(backend: tokenizers.Tokenizer) -> bool:
    """Return whether a tokenizer is of the kind that can be cut."""
    return type(backend.model).__name__ == WORDPIECE


def spelled_out(backend: tokenizers.Tokenizer, ids: Iterable[int]) -> list[int]:
    """Return ids, those of the special tokens, and those by which other words of the same characters are spelled.

    Args:
        backend: the tokenizer.
        ids: of tokens.

    Returns:
        In ascending order.
    """
    vocab = backend.get_vocab()
    prefix = backend.model.continuing_subword_prefix
    tokens = {*_tokens(backend, ids), *(added.content for added in backend.get_added_tokens_decoder().values())}
    characters = set("".join(token.removeprefix(prefix) for token in tokens))
    letters = {letter for each in characters for letter in (each, prefix + each)}
    return sorted({vocab[token] for token in tokens | letters if token in vocab})


def cut(backend: tokenizers.Tokenizer, ids: Iterable[int]) -> tokenizers.Tokenizer:
    """Return a tokenizer with these tokens only, which get the ids 0, 1, 2, ... in this order.

    A text whose tokens are all kept is tokenized as before; other words are spelled with smaller pieces, or unknown.
    """
    new = {token: number for number, token in enumerate(_tokens(backend, ids))}
    content: dict[str, Any] = json.loads(backend.to_str())
    content["model"]["vocab"] = new
    content["added_tokens"] = [{**each, "id": new[each["content"]]} for each in content["added_tokens"]]
    _renumber(content.get("post_processor"), new)
    return tokenizers.Tokenizer.from_str(json.dumps(content))


def _tokens(backend: tokenizers.Tokenizer, ids: Iterable[int]) -> list[str]:
    found = map(backend.id_to_token, ids)
    return [token for token in found if token is not None]


def _renumber(processor: Any, new: dict[str, int]) -> None:
    """Set the ids of the special tokens that are put around texts, in place."""
    for each in (processor or {}).get("processors", ()):  # a sequence of them
        _renumber(each, new)
    for name in ("sep", "cls"):
        if name in (processor or {}):
            token = processor[name][0]
            processor[name] = [token, new[token]]
    special = (processor or {}).get("special_tokens")
    for each in special.values() if isinstance(special, dict) else ():
        each["ids"] = [new[token] for token in each["tokens"]]
