"""Chinese words by rjieba: jieba in Rust, with its dictionary inside the wheel.

Without jieba's hidden Markov model, which guesses words that are not in the dictionary: so its borders agree best with
those of ERNIE 1.0's published data (``make ernie-demo``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from onion.errors import DataError
from onion.tasks.pretraining.corpus.segmentation.spans import Spans


class Jieba:
    """Words by rjieba's dictionary; white space belongs to none.

    Attributes: see ``onion.tasks.pretraining.corpus.segmentation.segmenter.Segmenter``; the version is rjieba's, which
        tells its dictionary too.

    Raises:
        DataError: rjieba is not installed.
    """

    name = "jieba"
    dictionary_sha256: str | None = None

    def __init__(self) -> None:
        try:
            self.version = version("rjieba")
        except PackageNotFoundError:
            raise DataError("Chinese words need rjieba: pip install 'onion-paddle[chinese]'") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()  # another process loads the dictionary itself

    @cached_property
    def _cut(self) -> Any:
        from rjieba import Jieba as Library  # an extra

        return Library().cut

    def segment(self, texts: Sequence[str]) -> list[Spans]:
        """Return the words of each text."""
        return [self._words(text) for text in texts]

    def _words(self, text: str) -> Spans:
        words = self._cut(text, hmm=False)
        ends = np.cumsum([len(word) for word in words], dtype=np.int32)
        begins = np.concatenate([[0], ends[:-1]]).astype(np.int32)
        seen = [not word.isspace() for word in words]
        return Spans(np.stack([begins, ends], axis=1)[seen] if words else Spans().words)
