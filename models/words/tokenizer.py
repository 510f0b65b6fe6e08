"""The tokenizer of the encoders of words, made of a list of words. Without Paddle."""

from __future__ import annotations

from collections.abc import Iterable

from onion.models.tokenizer import Tokenizer
from onion.models.words.names import SPECIAL_TOKENS
from onion.models.words.words_file import SplitWords, backend


def word_tokenizer(words: Iterable[str], splitting: str) -> Tokenizer:
    """Return the tokenizer of some words.

    Args:
        words: all different, the more frequent first; without special tokens.
        splitting: one of ``onion.models.words.names.SPLITTINGS``.

    Raises:
        OnionError: the splitting is ``chinese``, and ``rjieba`` is not installed.
    """
    vocab = {token: number for number, token in enumerate([*SPECIAL_TOKENS.values(), *words])}
    preparation = SplitWords(splitting, vocab)
    return Tokenizer(backend(vocab, SPECIAL_TOKENS), dict(preparation.settings), preparation)
