"""ERNIE 1.0's pretraining data: gzip files of lines, and the list that names them.

A line is a sample of five fields, joined by ``;``: token ids; sentence of each token (0 or 1); position of each token
(0, 1, ...); unit of each token (-1 ``[CLS]`` and ``[SEP]``, 0 begins a unit, 1 is inside one); label (1: the second
sentence follows the first, 0: it does not). A field is integers, joined by single spaces.

Source: PaddlePaddle/ERNIE at tag static_graph, README.zh and ernie/reader/pretraining.py.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
import numpy as np

from onion.checkpointing.atomic_files import replace_file
from onion.data.files import gzip_lines, iter_lines
from onion.data.opening import opened
from onion.data.table import at
from onion.errors import DataError
from onion.messages import shown

FIELDS = ("token ids", "sentences", "positions", "units", "label")
NUMBERS = re.compile(rb"-?[0-9]{1,9}(?: -?[0-9]{1,9})*")
BORDER, BEGINS, INSIDE = -1, 0, 1
"""What the unit of a token may be."""


@attrs.frozen(eq=False)
class ErnieSample:
    """A sample: ``[CLS] A [SEP] B [SEP]``, or another sequence of at most two sentences.

    Attributes:
        ids: token ids, int64 ``[tokens]``.
        sentences: 0 or 1, int64 ``[tokens]``.
        units: -1, 0 or 1, int64 ``[tokens]``; see the module.
        label: 1 or 0.
    """

    ids: np.ndarray
    sentences: np.ndarray
    units: np.ndarray
    label: int

    @property
    def words(self) -> np.ndarray:
        """The number of each token's unit, from 0, and -1 for borders, int64 ``[tokens]``: what ``Masker`` takes."""
        return np.where(self.units == BORDER, -1, np.cumsum(self.units == BEGINS) - 1)


def read_samples(path: Path, vocab_size: int | None = None) -> Iterator[ErnieSample]:
    """Yield the samples of a ``.gz`` file in their order, one in memory at a time.

    Args:
        path: of the file.
        vocab_size: of the tokenizer that made the ids, which all of them have to be below. Default None: any ids.

    Raises:
        DataError: the file cannot be read or is no gzip file, a line is malformed, or an id is not in the vocabulary;
            file and line are named.
    """
    if path.suffix != ".gz":
        raise DataError(f"{path}: ERNIE's pretraining data end in .gz; compress the file with gzip")
    with opened(path) as file:
        for number, line in enumerate(gzip_lines(file, path), 1):
            sample = _sample(path, number, line.rstrip(b"\r\n"))
            if vocab_size is not None and sample.ids.max() >= vocab_size:
                told = f"token id {sample.ids.max()} is not in the vocabulary, whose ids are 0 to {vocab_size - 1}"
                raise at(path, number, told)
            yield sample


def _sample(path: Path, number: int, line: bytes) -> ErnieSample:
    fields = line.split(b";")
    if len(fields) != len(FIELDS):
        raise at(path, number, f"{len(fields)} fields between semicolons; there are five: {', '.join(FIELDS)}")
    values = []
    for name, field in zip(FIELDS, fields, strict=True):
        if NUMBERS.fullmatch(field) is None:
            told = shown(field[:80].decode(errors="replace"))
            raise at(path, number, f"{name}: integers joined by single spaces are expected, not {told}")
        values.append(np.fromstring(field, np.int64, sep=" "))
    *each, label = values
    lengths = [len(value) for value in each]
    if len(set(lengths)) > 1:
        told = ", ".join(f"{length} {name}" for length, name in zip(lengths, FIELDS, strict=False))
        raise at(path, number, f"the fields have different lengths: {told}")
    ids, sentences, positions, units = each
    wrong = _wrong(ids, sentences, positions, units, label)
    if wrong:
        raise at(path, number, wrong)
    return ErnieSample(ids, sentences, units, int(label[0]))


def _wrong(
    ids: np.ndarray, sentences: np.ndarray, positions: np.ndarray, units: np.ndarray, label: np.ndarray
) -> str | None:
    """Return what is wrong with the values of a line, or None."""
    if ids.min() < 0:
        return f"token ids must not be negative; one is {ids.min()}"
    if not np.isin(sentences, (0, 1)).all():
        return f"sentences must be 0 or 1; one is {sentences[~np.isin(sentences, (0, 1))][0]}"
    if (positions != np.arange(len(positions))).any():
        return f"positions must count from 0 to {len(positions) - 1}"
    if not np.isin(units, (BORDER, BEGINS, INSIDE)).all():
        return f"units must be -1, 0 or 1; one is {units[~np.isin(units, (BORDER, BEGINS, INSIDE))][0]}"
    before = np.concatenate([[BORDER], units[:-1]])
    if ((units == INSIDE) & (before == BORDER)).any():
        return "units: a 1 stands where no unit has begun; the first token of a unit is 0"
    if len(label) != 1 or label[0] not in (0, 1):
        return "label must be 1 (the second sentence follows the first) or 0"
    return None


def write_samples(path: Path, samples: Iterable[ErnieSample]) -> None:
    """Write a ``.gz`` file that ``read_samples``, and ERNIE, can read; the same samples give the same bytes.

    The file appears when it is whole.

    Raises:
        OSError: it cannot be written.
    """
    replace_file(path, _packed(samples))


def _packed(samples: Iterable[ErnieSample]) -> Iterator[bytes]:
    target = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=target, mode="wb", mtime=0) as file:  # no name, no time: the same bytes
        for sample in samples:
            file.write(_line(sample))
            if target.tell() > 1 << 20:
                yield target.getvalue()
                target.seek(0)
                target.truncate()
    yield target.getvalue()


def _line(sample: ErnieSample) -> bytes:
    each = sample.ids, sample.sentences, np.arange(len(sample.ids)), sample.units, [sample.label]
    return ";".join(" ".join(map(str, values)) for values in each).encode() + b"\n"


@attrs.frozen
class ListedFile:
    """An entry of a file list.

    Attributes:
        path: of the file.
        word_share: the probability that the file is masked by words in a pass, and not by characters; 1 or more:
            always.
    """

    path: Path
    word_share: float


def read_file_list(path: Path) -> list[ListedFile]:
    """Read a list of files: lines of a path and the probability of masking by words, with a tab between them.

    A relative path starts at the working directory, as in ERNIE, or, where there is no such file, at the list's folder.

    Raises:
        DataError: the list cannot be read or is empty, a line is malformed, or a file is missing; the line is named.
    """
    found = [_listed(path, number, line) for number, line in iter_lines(path) if line.strip()]
    if not found:
        raise DataError(f"{path}: the list is empty; it needs lines such as train.gz<TAB>1.0")
    return found


def write_file_list(path: Path, files: Iterable[ListedFile]) -> None:
    """Write a list that ``read_file_list``, and ERNIE, can read.

    Raises:
        DataError: the path of a file has a tab or a line break.
        OSError: it cannot be written.
    """
    files = list(files)
    for file in files:
        if set(str(file.path)) & set("\t\r\n"):
            raise DataError(f"{shown(str(file.path))}: a list of files cannot have it; rename the file")
    replace_file(path, "".join(f"{file.path}\t{file.word_share}\n" for file in files).encode())


def _listed(path: Path, number: int, line: str) -> ListedFile:
    name, _, share = line.strip().partition("\t")
    try:
        word_share = float(share)
    except ValueError:
        word_share = float("nan")
    if not 0 <= word_share < float("inf"):
        told = "a path, a tab, and the probability of masking by words (1: always) are expected"
        raise at(path, number, f"{told}, not {shown(line)}")
    candidates = [Path(name), path.parent / name]
    file = next((each for each in candidates if each.is_file()), None)
    if file is None:
        raise at(path, number, f"there is no file {name}, neither from the working directory nor beside the list")
    return ListedFile(file, word_share)
