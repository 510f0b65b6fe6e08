"""Where SentencePiece's pieces stand in the text that words were cut from. Without Paddle."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

MARK = "\u2581"  # what SentencePiece writes for a space
Row = tuple[int, int, int]  # begin, end, number of the word


class Words(NamedTuple):
    """Words of a text, joined by spaces, and where they come from.

    Attributes:
        joined: the words with a space between each two.
        starts: where each begins in ``joined``.
        begins: where each begins in the text.
        first: the number of the first one in the text.
    """

    joined: str
    starts: list[int]
    begins: list[int]
    first: int

    @classmethod
    def of(cls, words: Sequence[str], begin: int, first: int) -> Words:
        """Words that stand one after the other in a text from ``begin`` on; those that are a space are left out."""
        begins = accumulate(map(len, words), initial=begin)
        kept = [(word, at) for word, at in zip(words, begins, strict=False) if word != " "]
        starts = accumulate((len(word) + 1 for word, _ in kept[:-1]), initial=0)
        return cls(" ".join(word for word, _ in kept), list(starts) if kept else [], [at for _, at in kept], first)

    def row(self, begin: int, end: int) -> Row:
        """From a span of ``joined`` to the span of the text and the number of the word in which it begins."""
        word, place = self._place(begin)
        return place, self._place(end - 1)[1] + 1 if begin < end else place, self.first + word

    def _place(self, at: int) -> tuple[int, int]:
        word = bisect_right(self.starts, at) - 1
        return word, self.begins[word] + at - self.starts[word]


def rows(words: Words, pieces: Sequence[str], spans: Sequence[tuple[int, int]]) -> list[Row]:
    """The place of each piece in the text.

    SentencePiece's own spans take in the space before a word; here they end where it does. A piece that is nothing but
    the mark of that space has an empty span at the beginning of the word that follows. Of a character that is written
    out (a ligature, say) only the last piece has a span of its own; here each has the character.

    Args:
        words: what was given to SentencePiece.
        pieces: what it made of that.
        spans: where it says that each piece stands in ``words.joined``.

    Returns:
        A row for each piece.
    """
    bare = [_bare(words.joined, piece, *span) for piece, span in zip(pieces, spans, strict=True)]
    return [words.row(begin, end) for begin, end in _spread(pieces, bare)]


def _bare(text: str, piece: str, begin: int, end: int) -> tuple[int, int]:
    """A span without the whitespace at its ends, unless the piece is such; of a space alone nothing, behind it."""
    space = " " if piece.strip(MARK).isspace() else None
    while begin < len(text) and not text[begin].strip(space):
        begin += 1
    while end > begin and not text[end - 1].strip(space):
        end -= 1
    return begin, max(begin, end)


def _spread(pieces: Sequence[str], spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Give a character to all pieces that it was written out as, and let nothing empty stand behind what follows it."""
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
