"""Texts that are too long, as windows that lie over them and cover every token. Without Paddle.

Source: google-research/bert ``run_squad.py`` (``doc_stride``), which ERNIE follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import tokenizers

from onion.errors import DataError
from onion.models.tokenization.encoding import Encoding


@attrs.frozen
class Tokens:
    """The tokens of one text, without special ones.

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
        """The tokens from ``begin`` to ``end``."""
        return Tokens(self.ids[begin:end], self.offsets[begin:end], self.words[begin:end])


@attrs.frozen
class Frame:
    """The special tokens that stand before, between and behind texts, and the types of them all.

    Attributes:
        ids: what stands before the first text, behind it and, of a pair, behind the second: int64 arrays.
        types: their types, in the same way.
        text_types: the type of each text's tokens.
    """

    ids: tuple[np.ndarray, ...]
    types: tuple[np.ndarray, ...]
    text_types: tuple[int, ...]

    @classmethod
    def of(cls, backend: tokenizers.Tokenizer, token: str, pair: bool) -> Frame:
        """See what a tokenizer of the library does with a token, or a pair of them.

        Args:
            backend: the tokenizer, truncation switched off.
            token: a special token: every tokenizer makes something of it.
            pair: whether the frame is that of a pair.
        """
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
    """Begin and end of each window over so many tokens; one window, an empty one if need be, at least.

    Args:
        length: how many tokens there are.
        room: how many a window takes.
        stride: how many tokens after the previous one a window begins; ``room`` at most, so that none is left out.
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
    """The windows of each text, or over the second text of each pair, the first being whole in every one.

    Args:
        frame: of a text or of a pair, as there are ``seconds``.
        firsts: the texts.
        seconds: one for each.
        max_length: most tokens a window may have, special ones included.
        stride: how many tokens after the previous one a window begins.
        max_first: the first text of a pair is cut to so many tokens.

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
                "give a larger max_length, or max_first to cut the texts to"
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
