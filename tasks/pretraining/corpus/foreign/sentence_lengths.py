"""Corpora that are token ids, the lengths of sentences, and the sentences of documents: what others' files hold."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.hashing import digest_of_file, digest_of_tokenizer, digest_of_values
from onion.tasks.data.features.kept_arrays import Arrays
from onion.tasks.pretraining.corpus.corpus import MemoryCorpus, Shard
from onion.tasks.pretraining.corpus.derived import derived
from onion.tasks.pretraining.corpus.flags import IN_PARAGRAPH, IN_SENTENCE, IN_WORD

log = logging.getLogger("onion")

PIECE = "##"
AT_ONCE = 1 << 22
"""Tokens that are flagged at once."""

VERSION = 1
"""Of the way tokens are flagged. Raise it when the same files give other flags."""


@attrs.frozen(eq=False)
class SentenceLengths:
    """What the files hold.

    Attributes:
        files: all of them, the one with the sentences first.
        tokens: ids, integers ``[tokens]``, mapped into memory.
        lengths: tokens of each sentence, integers ``[sentences]``.
        documents: the number of each document's first sentence, and at last that of all sentences, integers
            ``[documents + 1]``.

    Raises:
        DataError: they do not fit together; the file is named.
    """

    files: Sequence[Path]
    tokens: NDArray[Any]
    lengths: NDArray[np.integer]
    documents: NDArray[np.integer]

    def __attrs_post_init__(self) -> None:
        ends = self.documents
        if self.lengths.min(initial=0) < 0 or self.lengths.sum(dtype=np.int64) != len(self.tokens):
            raise self._wrong(f"the lengths of its sentences are not those of {len(self.tokens)} tokens")
        if len(ends) < 2 or ends[0] != 0 or ends[-1] != len(self.lengths) or (np.diff(ends) < 0).any():
            raise self._wrong(f"its documents are not those of {len(self.lengths)} sentences")

    def _wrong(self, what: str) -> DataError:
        names = " and ".join(path.name for path in self.files)
        return DataError(f"{self.files[0]}: {what}; are {names} of one corpus, and whole?")

    def corpus(self, tokenizer: Tokenizer) -> MemoryCorpus:
        """Return the corpus, with flags of sentences and of ``##`` pieces; a document is one paragraph.

        Args:
            tokenizer: the one that made the ids.

        Raises:
            DataError: an id is not in the vocabulary, or a file cannot be read.
        """
        record = {"version": VERSION, "tokenizer": digest_of_tokenizer(tokenizer)}
        fingerprint = digest_of_values({**record, "files": [digest_of_file(path) for path in self.files]})
        bounds = np.zeros(len(self.lengths) + 1, np.int64)
        np.cumsum(self.lengths, out=bounds[1:])
        starts = bounds[self.documents]
        unsigned = self.tokens.view(self.tokens.dtype.str.replace("i", "u"))

        def parts() -> Iterator[Arrays]:
            return self._flags(unsigned, bounds[:-1][self.lengths > 0], starts, tokenizer)

        about = {"task": "flags", "file": str(self.files[0])}
        flags = derived(len(unsigned), fingerprint, about, parts)["flags"]
        return MemoryCorpus((Shard(unsigned, flags, starts),), tokenizer, fingerprint)

    def _flags(
        self, tokens: NDArray[Any], sentences: NDArray[np.int64], starts: NDArray[np.int64], tokenizer: Tokenizer
    ) -> Iterator[Arrays]:
        """Yield the flags of some tokens after the other."""
        yield {"flags": np.zeros(0, np.uint8)}
        names = tokenizer.tokens(range(tokenizer.vocab_size))
        pieces = np.array([name is not None and name.startswith(PIECE) for name in names])
        special, found = [tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id], 0
        for first in range(0, len(tokens), AT_ONCE):
            ids = np.asarray(tokens[first : first + AT_ONCE])
            if ids.max() >= len(pieces):
                raise DataError(
                    f"{self.files[-1]}: has the id {ids.max()}, and the tokenizer {len(pieces)} tokens; give the "
                    "tokenizer that made it (PaddleNLP adds tokens for the insides of Chinese words)"
                )
            found += int(np.isin(ids, special).sum())
            flags = (pieces[ids] * IN_WORD + IN_SENTENCE + IN_PARAGRAPH).astype(np.uint8)
            for places, kept in ((sentences, IN_PARAGRAPH), (starts[:-1], 0)):
                begin, end = np.searchsorted(places, [first, first + len(ids)])
                flags[places[begin:end] - first] &= kept
            yield {"flags": flags}
        if found:
            log.warning(
                "%s: %d of its tokens are special ones, such as [SEP], in the middle of texts: tasks of several texts "
                "could learn from where these stand; make the files without them",
                self.files[-1],
                found,
            )
