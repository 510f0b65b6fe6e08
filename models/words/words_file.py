"""The files of a tokenizer of words: a list of words, and how texts are split into them. Without Paddle.

``words.txt`` has a token a line: ``[PAD] [CLS] [SEP] [MASK] [UNK]``, then the words. A text becomes its words and
``[SEP]``, so that no text is empty; the encoders leave ``[SEP]`` out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from tokenizers import models, processors

from onion.errors import DataError, WeightsError
from onion.models.tokenization.pre_tokenizer import Prepared, Texts
from onion.models.tokenization.vocabulary import read_vocab, vocab_bytes
from onion.models.words.names import SPLITTINGS
from onion.models.words.splitting import splitter

WORDS_FILE = "words.txt"
SPLITTING = "word_splitting"
"""The key of ``tokenizer_config.json`` that has the splitting."""


class SplitWords:
    """Texts split into words; a :class:`onion.models.tokenization.pre_tokenizer.Preparation`.

    Args:
        splitting: one of ``onion.models.words.names.SPLITTINGS``.
        vocab: token -> id, to be saved.

    Raises:
        OnionError: the splitting is ``chinese``, and ``rjieba`` is not installed.
    """

    def __init__(self, splitting: str, vocab: Mapping[str, int]) -> None:
        self.settings: Mapping[str, Any] = {SPLITTING: splitting}
        self._splitting, self._vocab = splitting, dict(vocab)
        self._split = splitter(splitting)

    def __getstate__(self) -> tuple[str, dict[str, int]]:
        return self._splitting, self._vocab

    def __setstate__(self, state: tuple[str, dict[str, int]]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __call__(self, texts: Texts, pre_split: bool, offsets: bool) -> Prepared:
        """Split texts, or look given words up as they are."""
        if offsets and not pre_split:
            raise DataError("the tokenizer of words knows no offsets; give it words, or another tokenizer the texts")
        words = [list(text) if pre_split else self._split(str(text)) for text in texts]
        places = [_whole(text) for text in words] if offsets else None
        return Prepared(words, True, places)

    def files(self) -> Mapping[str, bytes]:
        """Return the list of words."""
        return {WORDS_FILE: vocab_bytes(self._vocab)}


def _whole(words: list[str]) -> np.ndarray:
    """Return the places of words that are a token each."""
    lengths = [len(word) for word in words]
    return np.stack([np.zeros(len(words), np.int64), np.array(lengths, np.int64), np.arange(len(words))], axis=1)


def build(path: Path, special: Mapping[str, str], settings: Mapping[str, Any]) -> tokenizers.Tokenizer:
    """Build the tokenizer of the library for a folder with ``words.txt``; raise a WeightsError if that is damaged."""
    return backend(read_vocab(path, special.values()), special)


def preparation(path: Path, special: Mapping[str, str], settings: Mapping[str, Any]) -> SplitWords:
    """Return what splits texts for the tokenizer of a folder.

    Raises:
        WeightsError: a file is damaged, or the settings have no splitting.
        OnionError: the splitting is ``chinese``, and ``rjieba`` is not installed.
    """
    splitting = settings.get(SPLITTING)
    if splitting not in SPLITTINGS:
        raise WeightsError(f"{SPLITTING} must be one of {', '.join(SPLITTINGS)}, got {str(splitting)[:40]!r}")
    return SplitWords(splitting, read_vocab(path, special.values()))


def backend(vocab: Mapping[str, int], special: Mapping[str, str]) -> tokenizers.Tokenizer:
    """Return a tokenizer of the library that looks words up and adds ``[SEP]``."""
    # Without special tokens, which the library would search inside the words.
    found = tokenizers.Tokenizer(models.WordLevel(dict(vocab), unk_token=special["unk_token"]))
    end = special["sep_token"]
    found.post_processor = processors.TemplateProcessing(
        single=f"$A:0 {end}:0", pair=f"$A:0 {end}:0 $B:1 {end}:1", special_tokens=[(end, vocab.get(end, 0))]
    )
    return found
