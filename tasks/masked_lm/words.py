"""The words of a text that a tokenizer does not know, such as Chinese ones: what ``masked-lm`` masks as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from onion.errors import DataError
from onion.messages import shown
from onion.models.tokenizer import Encoding
from onion.tasks.data.features.hashing import digest_of_file
from onion.tasks.pretraining.corpus.segmentation.dictionary import Dictionary
from onion.tasks.pretraining.corpus.segmentation.jieba import Jieba
from onion.tasks.pretraining.corpus.segmentation.lac import Lac
from onion.tasks.pretraining.corpus.segmentation.segmenter import Combined, Segmenter
from onion.tasks.pretraining.corpus.segmentation.spans import Units, merged
from onion.tasks.pretraining.corpus.token_flags import continued

NO_SEGMENTER = "none"
SEGMENTERS: dict[str, Callable[[], Segmenter]] = {"jieba": Jieba, "lac": Lac}
AND = "+"
"""Between several of them, and dictionaries."""


def identity_of(segmenter: str) -> dict[str, Any] | None:
    """Return what determines the words of a segmenter, as JSON values; None for ``"none"``.

    Raises:
        DataError: as :func:`words_of`.
    """
    if segmenter == NO_SEGMENTER:
        return None
    made = _made(segmenter)
    return {"name": made.name, "version": made.version, "dictionary": made.dictionary_sha256}


def words_of(segmenter: str, texts: Sequence[str]) -> list[Units]:
    """Return the words of each text, in characters.

    Args:
        segmenter: ``"jieba"``, ``"lac"``, the path of a dictionary, whose words, phrases and entities count as words,
            or several, with ``+`` between them.
        texts: the texts.

    Raises:
        DataError: a package is not installed; there is no such dictionary, or it cannot be read.
    """
    found = _made(segmenter).segment(texts)
    return [merged(np.concatenate([each.words, each.phrases, each.entities])) for each in found]


def numbered(encoding: Encoding, lengths: Sequence[int], words: Sequence[Units]) -> np.ndarray:
    """Return the number of each token's word, int64 ``[length]``, and -1 for special tokens.

    What the tokenizer takes for a word stays together.

    Args:
        encoding: of a text or a pair, or a window of a text; with offsets.
        lengths: the number of characters of each text.
        words: of each text.
    """
    offsets, own = encoding.alignment
    inside = own >= 0
    bases = np.cumsum([0, *lengths[:-1]])
    # Special tokens stand between the texts. Behind an empty first text the second one begins where it does.
    text = np.cumsum(np.diff(inside, prepend=False) & inside)[inside] - 1
    begins, ends = (offsets[inside] + bases[text][:, None]).T
    units = np.concatenate([each + base for each, base in zip(words, bases.tolist(), strict=True)])
    same = np.diff(np.stack([text, own[inside]]), axis=1, prepend=-1) == 0
    numbers = np.full(len(own), -1, np.int64)
    numbers[inside] = np.cumsum(~(same.all(axis=0) | continued(begins, ends, units))) - 1
    return numbers


def _made(segmenter: str) -> Segmenter:
    names = [segmenter] if Path(segmenter).is_file() else segmenter.split(AND)
    parts = [_part(name, segmenter) for name in names]
    return parts[0] if len(parts) == 1 else Combined(parts)


def _part(name: str, whole: str) -> Segmenter:
    if name in SEGMENTERS:
        return _known(name)
    if not Path(name).is_file():
        told = "segmenter must be none, jieba, lac, a file with a word a line, or several of these with + between them"
        raise DataError(f"{told}; in {shown(whole)} there is no file {shown(name)}")
    return _dictionary(name, digest_of_file(name))


@lru_cache(maxsize=len(SEGMENTERS))
def _known(name: str) -> Segmenter:
    return SEGMENTERS[name]()


@lru_cache(maxsize=16)
def _dictionary(path: str, digest: str) -> Segmenter:
    """Read a dictionary again only if it has changed, which the digest tells."""
    return Dictionary(Path(path), "word")
