"""A dictionary of one's own: words, phrases and named entities, found in texts by the longest match.

File: plain text, UTF-8, an entry a line, or ``entry<TAB>kind`` with ``word``, ``phrase`` or ``entity``; blank lines are
ignored. The search is exact (case matters), and for each kind on its own; it takes the longest entry at the first place
where one fits. An entry of letters or digits is not found inside a longer word: ``art`` is not in ``party``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from onion.data.files import iter_lines
from onion.data.table import at
from onion.errors import DataError
from onion.messages import shown
from onion.models.tokenization.basic_tokenizer import is_chinese
from onion.tasks.data.features.hashing import digest_of_file
from onion.tasks.pretraining.corpus.segmentation.spans import Spans, units_of

KINDS = ("word", "phrase", "entity")
ONE = [1]


class Dictionary:
    """The entries of a file, in memory (about 150 bytes each).

    Args:
        path: the file.
        kind: of the entries that have none in the file: ``"word"``, ``"phrase"`` (default) or ``"entity"``.

    Attributes: see ``onion.tasks.pretraining.corpus.segmentation.segmenter.Segmenter``; ``dictionary_sha256`` is that
        of the file.

    Raises:
        DataError: the file cannot be read, is not UTF-8, or has no entry or an unknown kind; file and line are named.
    """

    name = "dictionary"
    version = "1"

    def __init__(self, path: Path, kind: str = "phrase") -> None:
        self.dictionary_sha256: str | None = digest_of_file(path)
        entries: dict[str, set[str]] = {each: set() for each in KINDS}
        for entry, own in _entries(path, kind):
            entries[own].add(entry)
        if not any(entries.values()):
            raise DataError(f"{path}: there is no entry in the dictionary; write one a line")
        self._searches = [_Search(entries[each]) for each in KINDS]

    def segment(self, texts: Sequence[str]) -> list[Spans]:
        """Return the entries in each text."""
        return [Spans(*(units_of(search.matches(text)) for search in self._searches)) for text in texts]


class _Search:
    """The search for entries of one kind."""

    def __init__(self, entries: set[str]) -> None:
        self._entries = entries
        lengths: dict[str, set[int]] = defaultdict(set)
        for entry in entries:
            lengths[entry[:2]].add(len(entry))
        # The lengths of the entries that begin with two characters, the longest first; any may be one character.
        self._lengths = {start: sorted({*each, 1}, reverse=True) for start, each in lengths.items()}

    def matches(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield begin and end of each entry in a text."""
        place, entries, lengths = 0, self._entries, self._lengths
        while entries and place < len(text):
            for length in lengths.get(text[place : place + 2], ONE):
                end = place + length
                if text[place:end] in entries and _apart(text, place, end):
                    yield place, end
                    place = end
                    break
            else:
                place += 1


def _entries(path: Path, kind: str) -> Iterator[tuple[str, str]]:
    for number, line in iter_lines(path):
        entry, tab, given = line.partition("\t")
        entry = entry.strip()
        if tab and given.strip() not in KINDS:
            raise at(path, number, f"the kind must be one of {', '.join(KINDS)}, not {shown(given)}")
        if entry:
            yield entry, given.strip() or kind
        elif tab:
            raise at(path, number, "there is no entry before the tab; write entry<TAB>kind")


def _apart(text: str, begin: int, end: int) -> bool:
    """Return whether no word of letters or digits goes on beyond the ends of a range."""
    return not (_joined(text, begin) or _joined(text, end))


def _joined(text: str, place: int) -> bool:
    """Return whether a word of letters or digits goes on at a place."""
    return 0 < place < len(text) and _of_word(text[place - 1]) and _of_word(text[place])


def _of_word(character: str) -> bool:
    return character.isalnum() and not is_chinese(character)
