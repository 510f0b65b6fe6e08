"""The places of SentencePiece's pieces in the text that the words came from. Without Paddle."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

MARK = "\u2581"  # SentencePiece's space
Row = tuple[int, int, int]  # begin, end, number of the word


class Words(NamedTuple):
    """Words of a text, joined by spaces, and their places.

    Attributes:
        joined: the words, joined by spaces.
        starts: the begin of each in ``joined``.
        begins: the begin of each in the text.
        first: the number of the first one in the text.
    """

    joined: str
    starts: list[int]
    begins: list[int]
    first: int

    @classmethod
    def of(cls, words: Sequence[str], begin: int, first: int) -> Words:
        """Return consecutive words of a text from ``begin`` on, without those that are a space."""
        begins = accumulate(map(len, words), initial=begin)
        kept = [(word, at) for word, at in zip(words, begins, strict=False) if word != " "]
        starts = accumulate((len(word) + 1 for word, _ in kept[:-1]), initial=0)
        return cls(" ".join(word for word, _ in kept), list(starts) if kept else [], [at for _, at in kept], first)

    def row(self, begin: int, end: int) -> Row:
        """Convert a span of ``joined`` to a span of the text and the number of the word in which it begins."""
        word, place = self._place(begin)
        return place, self._place(end - 1)[1] + 1 if begin < end else place, self.first + word

    def _place(self, at: int) -> tuple[int, int]:
        word = bisect_right(self.starts, at) - 1
        return word, self.begins[word] + at - self.starts[word]


def rows(words: Words, pieces: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[Row]:
    """Return the place of each piece in the text.

    SentencePiece's spans include the space before a word; these do not. A piece that consists of the mark of that space
    has an empty span at the beginning of the following word. If a character (such as a ligature) is split into several
    pieces, only the last one has a span in SentencePiece; here each has the character.

    Args:
        words: the input of SentencePiece.
        pieces: its output.
        spans: the place of each piece in ``words.joined``.

    Returns:
        A row for each piece.
    """
    bare = [_bare(words.joined, piece, *span) for piece, span in zip(pieces, spans, strict=True)]
    return [words.row(begin, end) for begin, end in _spread(pieces, bare)]


def _bare(text: str, piece: str, begin: int, end: int) -> tuple[int, int]:
    """Strip a span of whitespace, unless the piece is whitespace; a span of a space becomes empty, behind it."""
    space = " " if piece.strip(MARK).isspace() else None
    while begin < len(text) and not text[begin].strip(space):
        begin += 1
    while end > begin and not text[end - 1].strip(space):
        end -= 1
    return begin, max(begin, end)


def _spread(pieces: Sequence[str], spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Give a character to all pieces that it was split into, and keep empty spans before what follows them."""
    following: tuple[int, int] | None = None
    found = []
    for piece, (begin, end) in zip(reversed(pieces), reversed(spans), strict=True):
        if following is not None and begin == end:
            begin = end = min(begin, following[0])
            if piece != MARK and begin == following[0] < following[1]:
                end = following[1]
        if following is None or piece != MARK or begin < end:
            following = (begin, end)
        found.append((begin, end))
    return reversed(found)
