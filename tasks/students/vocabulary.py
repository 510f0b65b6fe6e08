"""The words of the training texts, by frequency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from onion.errors import DataError
from onion.models.words.names import SPECIAL_TOKENS
from onion.models.words.splitting import splitter
from onion.tasks.students.settings import MOST_WORDS


def frequent_words(texts: Iterable[str], splitting: str, most: int = MOST_WORDS) -> list[str]:
    """Return the words of some texts, the most frequent first, equally frequent ones in alphabetical order.

    Args:
        texts: the texts.
        splitting: one of ``onion.models.words.names.SPLITTINGS``.
        most: how many, at most.

    Raises:
        DataError: there is no word in them.
        OnionError: the splitting is ``chinese``, and ``rjieba`` is not installed.
    """
    split = splitter(splitting)
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(split(text))
    special = set(SPECIAL_TOKENS.values())
    words = sorted(counts.keys() - special, key=lambda word: (-counts[word], word))
    if not words:
        raise DataError(f"the vocabulary is empty: the texts have no word, split by {splitting!r}; see --words")
    return words[:most]
