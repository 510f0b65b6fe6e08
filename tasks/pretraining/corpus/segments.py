"""Segments: the documents of a corpus in pieces of limited length, which samplers put together to examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError
from onion.messages import listed
from onion.tasks.data.features.hashing import digest_of_tokenizer, digest_of_values
from onion.tasks.data.features.kept_arrays import Arrays
from onion.tasks.pretraining.corpus.corpus import Corpus, Shard
from onion.tasks.pretraining.corpus.cuts import Places, cuts
from onion.tasks.pretraining.corpus.derived import derived
from onion.tasks.pretraining.corpus.flags import IN_PARAGRAPH, IN_SENTENCE, Flags

VERSION = 1
"""Of the way segments are cut. Raise it when the same corpus and settings give others."""

FOUND_VERSION = 2
"""Of what is found in segments. Raise it when the same settings find something else."""

WITHIN: dict[str, int | None] = {"document": None, "paragraph": IN_PARAGRAPH}


@attrs.frozen(eq=False)
class Segment:
    """Consecutive tokens of a document.

    Attributes:
        ids: int64 ``[tokens]``, without special tokens.
        flags: ``uint8 [tokens]``; see ``onion.tasks.pretraining.corpus.flags``.
        document: the number of the document in the corpus, from 0.
        number: of the segment in the corpus, from 0.
    """

    ids: NDArray[np.int64]
    flags: Flags
    document: int
    number: int


@attrs.frozen(eq=False)
class Segments:
    """All tokens of a corpus, each in one segment, in their order; a sequence of :class:`Segment`.

    Attributes:
        corpus: where they are.
        lengths: tokens of each segment, int32 ``[segments]``.
        documents: the number of each segment's document over all shards, int64 ``[segments]``, ascending.
        begins: the place of each segment's first token over all shards, and at last their number, int64
            ``[segments + 1]``.
        fingerprint: identifies corpus and settings.
    """

    corpus: Corpus
    lengths: NDArray[np.int32]
    documents: NDArray[np.int64]
    begins: NDArray[np.int64]
    fingerprint: str
    _shards: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        max_tokens: int,
        inside: int = IN_SENTENCE,
        within: str = "document",
        one_by_one: bool = False,
    ) -> Segments:
        """Cut the documents of a corpus; see :func:`onion.tasks.pretraining.corpus.cuts.cuts`.

        Args:
            corpus: its tokens are not read, only its flags.
            max_tokens: most tokens of a segment; 126 make an example of 128 with ``[CLS]`` and ``[SEP]``.
            inside: the bit of the inside of the units that are kept whole. Default: sentences.
            within: ``"document"`` or ``"paragraph"``, which a segment does not leave. Default ``"document"``.
            one_by_one: whether each unit is a segment of its own. Default False: as many as fit.

        Raises:
            DataError: ``max_tokens`` is not positive, ``within`` is something else, or the cache cannot be written.
        """
        if max_tokens < 1:
            raise DataError(f"max_tokens must be an integer >= 1, got {max_tokens}")
        if within not in WITHIN:
            raise DataError(f"within must be one of {listed(WITHIN)}, got {within!r}")
        settings = {"max_tokens": max_tokens, "inside": inside, "within": within, "one_by_one": one_by_one}
        fingerprint = digest_of_values({"version": VERSION, "corpus": corpus.fingerprint, **settings})

        def parts() -> Iterator[Arrays]:
            return _parts(corpus, lambda shard: cuts(shard, max_tokens, inside, WITHIN[within], one_by_one))

        shards = np.cumsum([0, *(len(shard.tokens) for shard in corpus.shards)], dtype=np.int64)
        about = {"task": "segments", "file": f"corpus {corpus.fingerprint[:16]}, {max_tokens} tokens"}
        found = derived(int(shards[-1]), fingerprint, about, parts)
        return cls(corpus, found["lengths"], found["documents"], found["begins"], fingerprint, shards)

    def found(self, what: str, find: Callable[[], Arrays]) -> Arrays:
        """Return arrays for which the corpus has to be looked through; those of a large one are kept in the cache.

        Args:
            what: is looked for, with all settings that it depends on besides segments and tokenizer.
            find: computes them.

        Raises:
            DataError: the cache cannot be written.
        """
        words = digest_of_tokenizer(self.corpus.tokenizer)
        key = digest_of_values({"version": FOUND_VERSION, "segments": self.fingerprint, "words": words, "what": what})
        about = {"task": what.partition(" ")[0], "file": f"corpus {self.corpus.fingerprint[:16]}"}
        return derived(int(self._shards[-1]), key, about, lambda: [find()])

    def __len__(self) -> int:
        """The number of segments."""
        return len(self.lengths)

    def __getitem__(self, number: int) -> Segment:
        """Read a segment; negative numbers count from the end."""
        number = range(len(self))[number]
        begin, length = int(self.begins[number]), int(self.lengths[number])
        place = int(np.searchsorted(self._shards, begin, "right")) - 1
        shard, start = self.corpus.shards[place], begin - int(self._shards[place])
        ids = np.asarray(shard.tokens[start : start + length]).astype(np.int64)
        flags = np.array(shard.flags[start : start + length])
        return Segment(ids, flags, int(self.documents[number]), number)

    def borders(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many units begin within each segment, behind its first token, int64 ``[segments]``.

        Args:
            places: where these units begin; see :func:`onion.tasks.pretraining.corpus.places.unit_places`.
        """
        return np.searchsorted(places, self.begins[1:]) - np.searchsorted(places, self.begins[:-1], "right")

    def whole(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each segment begins and ends where units do, bool ``[segments]``; parts of long units do not.

        Args:
            places: where these units begin, as for :meth:`borders`.
        """
        ends = np.append(places, self.begins[-1])
        at_borders: NDArray[np.bool_] = ends[np.searchsorted(ends, self.begins)] == self.begins
        return at_borders[:-1] & at_borders[1:]

    def beside(self, number: int) -> range:
        """Return the numbers of the segments of the same document as this one, itself included."""
        return self.of_document(int(self.documents[number]))

    def of_document(self, document: int) -> range:
        """Return the numbers of the segments of a document; an empty document has none."""
        first, end = np.searchsorted(self.documents, [document, document + 1])
        return range(int(first), int(end))


def _parts(corpus: Corpus, cut: Callable[[Shard], Places]) -> Iterator[Arrays]:
    """Yield the arrays of the segments of each shard, and at last the end of all."""
    tokens = documents = 0
    for shard in corpus.shards:
        places = cut(shard)
        yield {
            "lengths": np.diff(places).astype(np.int32),
            "documents": documents + np.searchsorted(shard.starts, places[:-1], "right") - 1,
            "begins": tokens + places[:-1],
        }
        tokens += len(shard.tokens)
        documents += len(shard)
    nothing = np.zeros(0, np.int64)
    yield {"lengths": nothing.astype(np.int32), "documents": nothing, "begins": np.array([tokens])}
