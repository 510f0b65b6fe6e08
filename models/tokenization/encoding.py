"""The result of a tokenizer: token ids, and their places in the text. Without Paddle."""

from __future__ import annotations

import attrs
import numpy as np
import tokenizers


@attrs.frozen
class Encoding:
    """One text, or pair of texts, as input of an encoder, without padding.

    Attributes:
        ids: int64 [length], token ids: [CLS] text [SEP], or [CLS] text [SEP] pair [SEP]; RoBERTa's <s> text </s>, or
            <s> text </s></s> pair </s>.
        types: int64 [length], 0 for the text, 1 for the pair (RoBERTa: always 0).
        truncated: whether tokens were cut off; for a window, whether it has less than all tokens.
        offsets: int64 [length, 2] if requested, else None: the token comes from ``text[begin:end]`` of its text (of its
            word, if texts are lists of words), in code points; (0, 0) for special tokens.
        words: int64 [length] if requested, else None: the number of the token's word in its text, from 0 again in the
            pair; -1 for special tokens. Words are what the tokenizer first splits a text into, or the given ones.
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
        """``offsets`` and ``words``, which must have been requested."""
        if self.offsets is None or self.words is None:
            raise ValueError("this encoding has no offsets and words; tokenize with offsets=True")
        return self.offsets, self.words

    @property
    def mask(self) -> np.ndarray:
        """int64 [length], all ones."""
        return np.ones_like(self.ids)


def places_of(
    found: tokenizers.Encoding, text: np.ndarray | None = None, pair: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets, int64 [length, 2], and words, int64 [length], of a result of the library.

    ``text`` and ``pair`` are the places of the library's input, see ``Prepared.places``; None if its own are right.
    """
    # The word of a special token is None in the library.
    words = np.array([-1 if word is None else word for word in found.word_ids], np.int64)
    if text is None:
        return np.array(found.offsets, np.int64).reshape(-1, 2), words
    # The last row of each table, number -1, is for special tokens.
    nowhere = np.array([[0, 0, -1]], np.int64)
    places = np.concatenate([text, nowhere])[np.where(words < len(text), words, -1)]
    if pair is not None:
        of_pair = np.array(found.type_ids, np.int64) == 1
        places[of_pair] = np.concatenate([pair, nowhere])[words[of_pair]]
    return places[:, :2], places[:, 2]
