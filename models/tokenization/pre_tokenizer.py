"""What stands between texts and the library's tokenizer. Without Paddle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np

Texts = Sequence[str] | Sequence[Sequence[str]]


@attrs.frozen
class Prepared:
    """Texts as the library's tokenizer takes them.

    Attributes:
        inputs: for each text a string or, where ``split``, a list of strings.
        split: whether the inputs are lists; the library splits none of their strings across another.
        places: for each text int64 [strings of its list, 3], where they begin and end in the text (in the given word,
            where texts are lists of words) and the number of the word they are part of; None where the library's own
            offsets and words are those of the text.
    """

    inputs: list[Any]
    split: bool
    places: list[np.ndarray] | None = None


class Preparation(Protocol):
    """What a kind of tokenizer does with texts before the library's tokenizer gets them.

    Attributes:
        settings: what ``tokenizer_config.json`` has to say so that the files are known for what they are.
    """

    settings: Mapping[str, Any]

    def __call__(self, texts: Texts, pre_split: bool, offsets: bool) -> Prepared:
        """Prepare texts.

        Args:
            texts: strings, or lists of words.
            pre_split: which of the two.
            offsets: whether offsets and words will be asked for.

        Raises:
            DataError: a text cannot be prepared; it is named by its number.
        """

    def files(self) -> Mapping[str, bytes]:
        """File name -> content: what a folder has to hold instead of ``tokenizer.json``; nothing where that says it."""


def regroup(values: Sequence[Any], texts: Texts) -> list[list[Any]]:
    """Values of all words in a row -> one list for each text, as long as the text has words."""
    rest = iter(values)
    return [[next(rest) for _ in text] for text in texts]
