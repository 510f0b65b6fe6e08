"""Documents as token ids with flags: what the processes of a build compute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.models.tokenization.pre_tokenizer import LONGEST
from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.flags import IN_PARAGRAPH, IN_SENTENCE, IN_WORD, Flags
from onion.tasks.pretraining.corpus.segmentation.segmenter import Segmenter
from onion.tasks.pretraining.corpus.token_flags import token_flags

Paragraphs = Sequence[str]
Item = TypeVar("Item")

VERSION = 1
"""Of the way documents are encoded and flagged. Raise it when equal texts give other ids or flags."""

AT_ONCE = 1 << 18
"""Characters of the paragraphs that are tokenized at once, with some 100 bytes for each token meanwhile."""


def type_of_ids(vocab_size: int) -> np.dtype[np.unsignedinteger]:
    """Return the type that the ids of a vocabulary are stored in: 16 bits where they fit, else 32."""
    return np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")


@attrs.frozen(kw_only=True)
class Counts:
    """What a part of a corpus has; sums of two are the counts of both.

    Attributes:
        tokens, words, sentences, paragraphs, documents: how many; what is no word of the language, such as a mark, is
            a word of its own.
        unknown: tokens that are not in the vocabulary.
        bytes: of the text in UTF-8, with a line end after each paragraph and document.
    """

    tokens: int = 0
    words: int = 0
    sentences: int = 0
    paragraphs: int = 0
    documents: int = 0
    unknown: int = 0
    bytes: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Return the counts of both."""
        return Counts(**{name: value + getattr(other, name) for name, value in attrs.asdict(self).items()})


@attrs.frozen(eq=False)
class Encoded:
    """Consecutive documents.

    Attributes:
        tokens: ids, without special tokens, ``uint16`` or ``uint32 [tokens]``.
        flags: ``uint8 [tokens]``; see ``onion.tasks.pretraining.corpus.flags``.
        lengths: tokens of each document, int64 ``[documents]``; a document may have none.
        counts: of all.
    """

    tokens: NDArray[np.unsignedinteger]
    flags: Flags
    lengths: NDArray[np.int64]
    counts: Counts


@attrs.frozen(eq=False)
class DocumentEncoder:
    """Tokenizes documents and flags their tokens, each document as if it were alone.

    A text that spells a special token (``[MASK]``) has the unknown token there: a special one in the middle of a text
    would be learnt from.

    Attributes:
        tokenizer: makes the ids.
        segmenter: finds words, phrases and entities.
    """

    tokenizer: Tokenizer
    segmenter: Segmenter

    def __call__(self, documents: Sequence[Paragraphs]) -> Encoded:
        """Encode documents; each has at least one paragraph."""
        texts = [*chain.from_iterable(documents)]
        parts = [self._encoded(some) for some in blocks_of(texts, len, AT_ONCE)]
        ids, flags, of_texts = map(np.concatenate, zip(*parts, strict=True))
        lengths = np.add.reduceat(of_texts, np.cumsum([0, *map(len, documents[:-1])]))
        size = sum(len(text.encode()) + 1 for text in texts) + len(documents)
        counts = attrs.evolve(self._counts(ids, flags), documents=len(documents), bytes=size)
        return Encoded(ids.astype(type_of_ids(self.tokenizer.vocab_size)), flags, lengths, counts)

    def _encoded(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], Flags, NDArray[np.int64]]:
        """Return ids and flags of paragraphs, and how many tokens each has."""
        encodings = self.tokenizer(texts, max_length=LONGEST, offsets=True)
        flags = np.concatenate(token_flags(texts, encodings, self.segmenter.segment(texts)))
        inside = np.concatenate([each.alignment[1] for each in encodings]) >= 0
        ids = without_special(np.concatenate([each.ids for each in encodings])[inside], self.tokenizer)
        lengths = np.array([np.count_nonzero(each.alignment[1] >= 0) for each in encodings])
        return ids, flags[inside], lengths

    def _counts(self, ids: NDArray[np.int64], flags: Flags) -> Counts:
        of_units = {
            name: int(np.count_nonzero((flags & inside) == 0))
            for name, inside in (("words", IN_WORD), ("sentences", IN_SENTENCE), ("paragraphs", IN_PARAGRAPH))
        }
        return Counts(tokens=len(ids), unknown=int(np.count_nonzero(ids == self.tokenizer.unk_id)), **of_units)


def without_special(ids: NDArray[np.int64], tokenizer: Tokenizer) -> NDArray[np.int64]:
    """Return the ids of a text; a special token that it spells is unknown, or its place would be learned from."""
    special = np.isin(ids, (tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id))
    return np.where(special, tokenizer.unk_id, ids)


def blocks_of(items: Iterable[Item], size: Callable[[Item], int], limit: int) -> Iterator[list[Item]]:
    """Yield items in blocks, each ending with the one that brings it to a size."""
    block: list[Item] = []
    total = 0
    for item in items:
        block.append(item)
        total += size(item)
        if total >= limit:
            yield block
            block, total = [], 0
    if block:
        yield block
