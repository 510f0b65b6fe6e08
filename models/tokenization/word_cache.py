"""Tokenize texts by a cache of words, so that no word is split into pieces twice. Without Paddle.

BERT's tokenizers treat a character (lowercase it, drop it, split at it) and a word independently of the others. So the
library is called once for each character and once for each word. Texts for which this does not hold are left to the
library.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
import tokenizers
from tokenizers import models, normalizers

from onion.models.tokenization import windows, wordpiece
from onion.models.tokenization.encoding import Encoding

Ids = list[int]

STYLES = ("wordpiece", "symbols", "spaces", "words", "characters")
"""Styles of wordpiece.py that split at single characters, and add nothing to a word."""
KEPT = 1 << 17
"""Maximum number of cached words, about 30 MB; others are split each time."""


class Words:
    """Texts -> ids, equal to those of a tokenizer of the library. Thread-safe.

    Args:
        backend: the tokenizer, without truncation, for which :meth:`suit` is true.
        token: any special token.
    """

    def __init__(self, backend: tokenizers.Tokenizer, token: str) -> None:
        self._characters = _Characters(backend)
        self._pieces = _Pieces(backend.model)
        added = [re.escape(each.content) for each in backend.get_added_tokens_decoder().values()]
        self._added = re.compile("|".join(added) or "(?!)")
        self._of_texts, self._of_pairs = (_Frame(windows.Frame.of(backend, token, pair)) for pair in (False, True))

    @staticmethod
    def suit(backend: tokenizers.Tokenizer) -> bool:
        """Return whether a tokenizer treats characters and words independently."""
        if not isinstance(backend.model, (models.WordPiece, models.WordLevel)) or backend.pre_tokenizer is None:
            return False
        if not isinstance(backend.normalizer, (normalizers.BertNormalizer, normalizers.Lowercase, type(None))):
            return False
        if any(token.normalized for token in backend.get_added_tokens_decoder().values()):
            return False  # they are searched in the normalized text
        return backend.pre_tokenizer.__getstate__() in [wordpiece.splitter(style).__getstate__() for style in STYLES]

    def __call__(
        self, texts: Sequence[str], pairs: Sequence[str] | None, max_length: int, truncation: str
    ) -> list[Encoding] | None:
        """Tokenize the library's inputs up to ``max_length``; None if the library has to process one as a whole.

        Of pairs only the truncation ``"longest_first"`` is supported.
        """
        try:
            if pairs is None:
                return [self._of_texts.text(self._ids(text, max_length), max_length) for text in texts]
            if truncation != "longest_first":
                return None
            ids = (
                (self._ids(one, max_length), self._ids(other, max_length))
                for one, other in zip(texts, pairs, strict=True)
            )
            return [self._of_pairs.pair(*each, max_length) for each in ids]
        except _EntangledError:
            return None

    def _ids(self, text: str, most: int) -> Ids:
        """Return all ids of a text, or more than ``most``: what is beyond does not affect truncation."""
        if self._added.search(text):
            raise _EntangledError
        ids: Ids = []
        pieces = self._pieces
        for word in text.translate(self._characters).split(" "):
            if word:
                ids += pieces[word]
                if len(ids) > most:
                    break
        return ids


class _Frame:
    """The special tokens around a text or a pair."""

    def __init__(self, frame: windows.Frame) -> None:
        self._ids: list[Ids] = [each.tolist() for each in frame.ids]
        self._types: list[Ids] = [each.tolist() for each in frame.types]
        self._text_types, self._size = frame.text_types, len(frame)

    def text(self, ids: Ids, max_length: int) -> Encoding:
        """Put them around a text, truncated if necessary."""
        room = max_length - self._size
        return self._around((ids[:room],), len(ids) > room)

    def pair(self, first: Ids, second: Ids, max_length: int) -> Encoding:
        """Put them around a pair, truncated if necessary, the longer text first."""
        room = max_length - self._size
        if len(first) + len(second) <= room:
            return self._around((first, second), False)
        one, other = windows.kept_lengths(len(first), len(second), room)
        return self._around((first[:one], second[:other]), True)

    def _around(self, texts: tuple[Ids, ...], truncated: bool) -> Encoding:
        ids, types = [*self._ids[0]], [*self._types[0]]
        for text, kind, more, more_types in zip(texts, self._text_types, self._ids[1:], self._types[1:], strict=True):
            ids += text
            ids += more
            types += [kind] * len(text)
            types += more_types
        return Encoding(np.array(ids, np.int64), np.array(types, np.int64), truncated)


class _EntangledError(Exception):
    """The words of a text are not independent, or the library refuses it and has to say why."""


class _Characters(dict[int, str]):
    """Code of a character -> its replacement in a text, with spaces where words end."""

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        super().__init__()
        self._normalizer, self._splitter = backend.normalizer, backend.pre_tokenizer

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if 0xD800 <= code <= 0xDFFF or _wanders(character):
            raise _EntangledError
        text = f"a{character}b"
        if self._normalizer is not None:
            text = self._normalizer.normalize_str(text)
        within = " ".join([word for word, _ in self._splitter.pre_tokenize_str(text)])
        found = self[code] = within[1:-1]
        return found


def _wanders(character: str) -> bool:
    """Return whether a character contains a mark that normalization neither drops nor keeps in its place."""
    parts = unicodedata.normalize("NFD", character)
    return any(unicodedata.combining(part) and unicodedata.category(part) != "Mn" for part in parts)


class _Pieces(dict[str, Ids]):
    """Word -> ids of its pieces."""

    def __init__(self, model: models.Model) -> None:
        super().__init__()
        self._model = model

    def __missing__(self, word: str) -> Ids:
        try:
            found = [piece.id for piece in self._model.tokenize(word)]
        except Exception as error:  # the library raises plain Exception
            raise _EntangledError from error
        if len(self) < KEPT and len(word) <= wordpiece.LONGEST_WORD:
            self[word] = found
        return found
