"""Texts that are too long: truncation of pairs, and windows that cover every token. Without Paddle.

Sources: google-research/bert ``run_squad.py`` (``doc_stride``), which ERNIE follows, for windows. For pairs
google-research/bert, ERNIE, PaddleNLP and transformers in Python, which repeatedly drop a token of the longer text, or
of the second if both are equally long, so that the first keeps an odd token; the ``tokenizers`` library gives it to the
longer text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import tokenizers

from onion.errors import DataError
from onion.models.tokenization.encoding import Encoding


@attrs.frozen
class Tokens:
    """The tokens of a text, without special tokens.

    Attributes:
        ids: int64 [length].
        offsets: int64 [length, 2].
        words: int64 [length].
    """

    ids: np.ndarray
    offsets: np.ndarray
    words: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, begin: int, end: int | None) -> Tokens:
        """Return the tokens from ``begin`` to ``end``."""
        return Tokens(self.ids[begin:end], self.offsets[begin:end], self.words[begin:end])


@attrs.frozen
class Frame:
    """The special tokens before, between and behind texts, and all types.

    Attributes:
        ids: special tokens before the first text, behind it and, for a pair, behind the second: int64 arrays.
        types: their types, in the same order.
        text_types: the type of each text's tokens.
    """

    ids: tuple[np.ndarray, ...]
    types: tuple[np.ndarray, ...]
    text_types: tuple[int, ...]

    @classmethod
    def of(cls, backend: tokenizers.Tokenizer, token: str, pair: bool) -> Frame:
        """Find the special tokens that a tokenizer without truncation adds to a (special) token, or a pair of it."""
        one = backend.encode(token, add_special_tokens=False)
        framed = backend.post_process(one, one if pair else None)
        ids, types = np.array(framed.ids, np.int64), np.array(framed.type_ids, np.int64)
        inside = [index for index, word in enumerate(framed.word_ids) if word is not None]
        texts = [inside[: len(one)], inside[len(one) :]][: 1 + pair]
        edges = [0, *(edge for text in texts for edge in (text[0], text[-1] + 1)), len(ids)]
        gaps = [slice(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
        return cls(
            tuple(ids[gap] for gap in gaps),
            tuple(types[gap] for gap in gaps),
            tuple(int(types[text[0]]) for text in texts),
        )

    def __len__(self) -> int:
        return sum(map(len, self.ids))

    def around(self, *texts: Tokens, truncated: bool) -> Encoding:
        """Put the special tokens around a text or a pair."""
        ids, types = [self.ids[0]], [self.types[0]]
        offsets, words = [_nowhere(self.ids[0])], [_no_word(self.ids[0])]
        for text, kind, more, more_types in zip(texts, self.text_types, self.ids[1:], self.types[1:], strict=True):
            ids += [text.ids, more]
            types += [np.full(len(text), kind, np.int64), more_types]
            offsets += [text.offsets, _nowhere(more)]
            words += [text.words, _no_word(more)]
        return Encoding(
            np.concatenate(ids), np.concatenate(types), truncated, np.concatenate(offsets), np.concatenate(words)
        )


def _nowhere(special: np.ndarray) -> np.ndarray:
    return np.zeros((len(special), 2), np.int64)


def _no_word(special: np.ndarray) -> np.ndarray:
    return np.full(len(special), -1, np.int64)


def spans(length: int, room: int, stride: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each window over ``length`` tokens, ``room`` tokens each; at least one, possibly empty.

    Windows begin ``stride`` tokens apart, or ``room``, so that no token is skipped.
    """
    begin = 0
    while begin + room < length:
        yield begin, begin + room
        begin += min(room, stride)
    yield begin, length


def cut(
    frame: Frame,
    firsts: Sequence[Tokens],
    seconds: Sequence[Tokens] | None,
    max_length: int,
    stride: int,
    max_first: int | None,
) -> list[list[Encoding]]:
    """Return the windows of each text, or over the second text of each pair, with the complete first one in each.

    Windows have at most ``max_length`` tokens, special tokens included, and begin ``stride`` tokens apart; the first
    text of a pair is cut to ``max_first``.

    Raises:
        DataError: a first text leaves no room for its second.
    """
    room = max_length - len(frame)
    if seconds is None:
        return [list(_windows(frame, (), False, text, room, stride)) for text in firsts]
    found = []
    for index, (whole, second) in enumerate(zip(firsts, seconds, strict=True)):
        first = whole.part(0, max_first)
        if len(first) >= room:
            raise DataError(
                f"text {index} has {len(first)} tokens and leaves no room for its pair in max_length {max_length}; "
                "increase max_length, or set max_first to truncate the texts"
            )
        shortened = len(first) < len(whole)
        found.append(list(_windows(frame, (first,), shortened, second, room - len(first), stride)))
    return found


def _windows(
    frame: Frame, before: tuple[Tokens, ...], shortened: bool, text: Tokens, room: int, stride: int
) -> Iterator[Encoding]:
    for begin, end in spans(len(text), room, stride):
        truncated = shortened or end - begin < len(text)
        yield frame.around(*before, text.part(begin, end), truncated=truncated)


def kept_lengths(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many tokens of each of two texts are kept, if together they are longer than ``room``."""
    half = room // 2
    if second <= half:
        return room - second, second
    first = min(first, room - half)
    return first, room - first


def mend_pairs(
    backend: tokenizers.Tokenizer, inputs: Sequence[Any], found: list[tokenizers.Encoding], room: int, pre_split: bool
) -> list[tokenizers.Encoding]:
    """Truncate those pairs again that the library has truncated differently from the reference.

    Args:
        backend: the tokenizer, with truncation.
        inputs: the pairs, of lists of words if ``pre_split``.
        found: their encodings.
        room: maximum length of a result without special tokens.
        pre_split: see ``inputs``.
    """
    if room % 2 == 0:  # no odd token, no difference
        return found
    cut = [index for index, one in enumerate(found) if one.overflowing]
    firsts, seconds = (
        backend.encode_batch([inputs[i][part] for i in cut], is_pretokenized=pre_split, add_special_tokens=False)
        for part in (0, 1)
    )
    found = list(found)
    for index, first, second in zip(cut, firsts, seconds, strict=True):
        keep = kept_lengths(len(first), len(second), room)
        for one, length in zip((first, second), keep, strict=True):
            one.truncate(length)
        found[index] = backend.post_process(first, second)
    return found
