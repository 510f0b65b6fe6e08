"""What a tokenizer gives for a text: token ids, and where they come from. Without Paddle."""

from __future__ import annotations

import attrs
import numpy as np
import tokenizers


@attrs.frozen
class Encoding:
    """One text, or pair of texts, as the encoder wants it; not padded.

    Attributes:
        ids: int64 [length], token ids: [CLS] text [SEP], or [CLS] text [SEP] pair [SEP]; RoBERTa's <s> text </s>, or
            <s> text </s></s> pair </s>.
        types: int64 [length], 0 for the text, 1 for the pair (RoBERTa: always 0).
        truncated: whether tokens were cut off; of a window: whether it holds less than all tokens.
        offsets: int64 [length, 2] where asked for, else None: the token comes from ``text[begin:end]`` of its text (of
            its word, where the texts are lists of words), in code points; (0, 0) for special tokens.
        words: int64 [length] where asked for, else None: the number of the word in its text that the token is part of,
            counted anew in the pair; -1 for special tokens. Words are what the tokenizer splits a text into first,
            or those that were given.
    """

    ids: np.ndarray
    types: np.ndarray
    truncated: bool
    offsets: np.ndarray | None = None
    words: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def alignment(self) -> tuple[np.ndarray, np.ndarray]:
        """``offsets`` and ``words``, which must have been asked for."""
        if self.offsets is None or self.words is None:
            raise ValueError("this encoding has no offsets and words; tokenize with offsets=True")
        return self.offsets, self.words

    @property
    def mask(self) -> np.ndarray:
        """int64 [length], all ones: nothing here is padding."""
        return np.ones_like(self.ids)


def places_of(
    found: tokenizers.Encoding, text: np.ndarray | None = None, pair: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and words of what the library found.

    Args:
        found: the library's result.
        text: int64 [strings, 3], the places of what the library was given for the text (see ``Prepared.places``); None
            where the library's own are meant.
        pair: the same for the pair, whose tokens have the type 1.

    Returns:
        int64 [length, 2] and int64 [length], as ``Encoding`` has them.
    """
    # The library has None for the word of a special token.
    words = np.array([-1 if word is None else word for word in found.word_ids], np.int64)
    if text is None:
        return np.array(found.offsets, np.int64).reshape(-1, 2), words
    # A row for special tokens stands behind each table, where the number -1 finds it.
    nowhere = np.array([[0, 0, -1]], np.int64)
    places = np.concatenate([text, nowhere])[np.where(words < len(text), words, -1)]
    if pair is not None:
        of_pair = np.array(found.type_ids, np.int64) == 1
        places[of_pair] = np.concatenate([pair, nowhere])[words[of_pair]]
    return places[:, :2], places[:, 2]
