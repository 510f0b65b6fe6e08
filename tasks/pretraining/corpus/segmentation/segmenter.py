"""What cuts texts into units: the contract, the settings, and a segmenter of several ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import attrs
import numpy as np

from onion.tasks.pretraining.corpus.segmentation.dictionary import Dictionary
from onion.tasks.pretraining.corpus.segmentation.jieba import Jieba
from onion.tasks.pretraining.corpus.segmentation.lac import Lac
from onion.tasks.pretraining.corpus.segmentation.spans import Spans
from onion.tasks.pretraining.corpus.segmentation.tokenizer_words import TokenizerWords
from onion.tasks.validators import one_of


class Segmenter(Protocol):
    """Cuts texts into units. Name, version and dictionary determine what it finds. It can be pickled.

    Attributes:
        name: such as ``jieba``.
        version: of the package, or of the code.
        dictionary_sha256: of a file that was given; None if there is none, or if the version tells it.
    """

    name: str
    version: str
    dictionary_sha256: str | None

    def segment(self, texts: Sequence[str]) -> list[Spans]:
        """Return the units of each text."""


WORDS: dict[str, Callable[[], Segmenter]] = {"tokenizer": TokenizerWords, "jieba": Jieba}
ENTITIES: dict[str, Callable[[], Segmenter]] = {"lac": Lac}
NO_ENTITIES = "none"


@attrs.frozen(kw_only=True)
class SegmenterSettings:
    """Where units come from.

    Attributes:
        words: ``"tokenizer"`` (default): the words that the tokenizer finds; ``"jieba"``: Chinese ones.
        entities: ``"none"`` (default), or ``"lac"``, Baidu's model.
        dictionary: a file of words, phrases or entities, which are added; see ``dictionary.py``. Default: none.
    """

    words: str = attrs.field(default="tokenizer", validator=one_of(WORDS))
    entities: str = attrs.field(default=NO_ENTITIES, validator=one_of([NO_ENTITIES, *ENTITIES]))
    dictionary: Path | None = None


def make_segmenter(settings: SegmenterSettings) -> Segmenter:
    """Make the segmenter of some settings.

    Raises:
        DataError: a package is not installed, or the dictionary cannot be read; the message says what to do.
    """
    parts: list[Segmenter] = [WORDS[settings.words]()]
    if settings.entities != NO_ENTITIES:
        parts.append(ENTITIES[settings.entities]())
    if settings.dictionary is not None:
        parts.append(Dictionary(settings.dictionary))
    return parts[0] if len(parts) == 1 else Combined(parts)


class Combined:
    """The units of several segmenters; what one finds grows to the borders of what it would cut (``Spans.unified``).

    Args:
        parts: at least one.

    Attributes: see :class:`Segmenter`; those of the parts, joined by ``+``.
    """

    def __init__(self, parts: Sequence[Segmenter]) -> None:
        self._parts = [*parts]
        self.name = "+".join(part.name for part in parts)
        self.version = "+".join(part.version for part in parts)
        self.dictionary_sha256 = "+".join(filter(None, (part.dictionary_sha256 for part in parts))) or None

    def segment(self, texts: Sequence[str]) -> list[Spans]:
        """Return the units of each text, of which none cuts another."""
        found = zip(*(part.segment(texts) for part in self._parts), strict=True)
        return [_together(each).unified() for each in found]


def _together(found: Sequence[Spans]) -> Spans:
    return Spans(
        np.concatenate([each.words for each in found]),
        np.concatenate([each.phrases for each in found]),
        np.concatenate([each.entities for each in found]),
    )
