"""What pretraining tasks read: documents as token ids with flags, in one or more shards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.flags import Flags

FLAGS_PER_CHUNK = 1 << 20
"""Flags that are read at once."""


@attrs.frozen(eq=False)
class Shard:
    """Consecutive documents of a corpus; the arrays may be mapped from files.

    Attributes:
        tokens: ids, unsigned integers ``[tokens]``, without special tokens.
        flags: ``uint8 [tokens]``; see ``onion.tasks.pretraining.corpus.flags``.
        starts: where each document starts, and at last the end, int64 ``[documents + 1]``.
    """

    tokens: NDArray[Any]
    flags: Flags
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.starts) - 1


class Corpus(Protocol):
    """Documents with the tokenizer that their ids are of."""

    @property
    def shards(self) -> Sequence[Shard]:
        """All documents, in order."""

    @property
    def tokenizer(self) -> Tokenizer:
        """It made the ids."""

    @property
    def fingerprint(self) -> str:
        """Identifies the content."""


@attrs.frozen(eq=False)
class MemoryCorpus:
    """A corpus in memory, such as a part of another one.

    Attributes:
        shards: all documents.
        tokenizer: it made the ids.
        fingerprint: identifies the content.
    """

    shards: Sequence[Shard]
    tokenizer: Tokenizer
    fingerprint: str

    @classmethod
    def of(
        cls, documents: Iterable[tuple[NDArray[Any], Flags]], tokenizer: Tokenizer, fingerprint: str
    ) -> MemoryCorpus:
        """Make a corpus of one shard from the ids and flags of each document."""
        pairs = list(documents)
        starts = np.zeros(len(pairs) + 1, np.int64)
        np.cumsum([len(ids) for ids, _ in pairs], out=starts[1:])
        tokens = np.concatenate([ids for ids, _ in pairs])
        return cls((Shard(tokens, np.concatenate([flags for _, flags in pairs]), starts),), tokenizer, fingerprint)


def has_flags(corpus: Corpus, bits: int) -> bool:
    """Return whether a token has any of some bits; as a rule the first part of the flags tells."""
    return any(
        bool((shard.flags[begin : begin + FLAGS_PER_CHUNK] & bits).any())
        for shard in corpus.shards
        for begin in range(0, len(shard.flags), FLAGS_PER_CHUNK)
    )
