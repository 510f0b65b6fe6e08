"""The three files of a shard: ``.tokens`` (ids), ``.flags`` (a byte a token) and ``.docs`` (where documents start).

All numbers are little-endian: ids ``uint16``, or ``uint32`` of a larger vocabulary, ``[tokens]``; flags ``uint8
[tokens]``; starts int64 ``[documents + 1]``. There are no headers, so a shard takes three or five bytes a token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onion.checkpointing.atomic_files import PARTIAL, rename, sync, sync_folder, write
from onion.data.opening import opened
from onion.errors import DataError
from onion.tasks.pretraining.corpus.corpus import Shard
from onion.tasks.pretraining.corpus.encoding import Counts, Encoded

TOKENS, FLAGS, DOCS = KINDS = ("tokens", "flags", "docs")
PIECE = 1 << 20


def path_of(folder: Path, number: int, kind: str) -> Path:
    """Return the name of a file of a shard."""
    return folder / f"shard-{number:05d}.{kind}"


class ShardWriter:
    """Writes a shard, a block of documents after the other.

    Attributes:
        counts: of what was written.
    """

    def __init__(self, files: Mapping[str, _File]) -> None:
        self._files = files
        self.counts = Counts()
        self._put(DOCS, np.zeros(1, np.int64))

    def append(self, encoded: Encoded) -> None:
        """Write documents; raises OSError."""
        self._put(TOKENS, encoded.tokens)
        self._put(FLAGS, encoded.flags)
        self._put(DOCS, self.counts.tokens + np.cumsum(encoded.lengths))
        self.counts += encoded.counts

    def _put(self, kind: str, values: NDArray[Any]) -> None:
        self._files[kind].write(values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes())

    @property
    def sums(self) -> dict[str, str]:
        """The SHA-256 of each file, by its kind."""
        return {kind: file.sum for kind, file in self._files.items()}


@contextmanager
def writing_shard(folder: Path, number: int) -> Iterator[ShardWriter]:
    """Write a shard beside its final names, and rename its files in the end; after an error they are removed.

    Raises:
        OSError: the files cannot be written.
    """
    final = {kind: path_of(folder, number, kind) for kind in KINDS}
    with ExitStack() as held:
        files = {kind: held.enter_context(_File(folder / f".{path.name}{PARTIAL}")) for kind, path in final.items()}
        yield ShardWriter(files)
        for kind, path in final.items():
            files[kind].finish(path)
        sync_folder(folder)


class _File:
    """A file that is written from its beginning to its end, with the checksum of what was written."""

    def __init__(self, temporary: Path) -> None:
        self._path = temporary
        self._file = temporary.open("wb")
        self._sum = hashlib.sha256()

    @property
    def sum(self) -> str:
        return self._sum.hexdigest()

    def write(self, content: bytes) -> None:
        self._sum.update(content)
        write(self._file, content)

    def finish(self, path: Path) -> None:
        sync(self._file)
        rename(self._path, path)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._file.close()  # which writes what is left
        finally:
            self._path.unlink(missing_ok=True)


def map_shard(folder: Path, number: int, ids: np.dtype[Any], counts: Counts) -> Shard:
    """Map a shard into memory, without reading it, but for the ends of the list of documents.

    Raises:
        DataError: a file is missing, has another size than it should, or is not a list of documents.
    """
    tokens = map_array(path_of(folder, number, TOKENS), ids, counts.tokens)
    flags = map_array(path_of(folder, number, FLAGS), np.dtype(np.uint8), counts.tokens)
    starts = map_array(path_of(folder, number, DOCS), np.dtype("<i8"), counts.documents + 1)
    if starts[0] != 0 or starts[-1] != counts.tokens:
        raise DataError(f"{path_of(folder, number, DOCS)}: its documents do not end with the tokens; build it anew")
    return Shard(tokens, flags, starts)


def map_array(path: Path, kind: np.dtype[Any], count: int, offset: int = 0) -> NDArray[Any]:
    """Map numbers of a file that has nothing behind them.

    Args:
        path: the file.
        kind: of the numbers.
        count: how many there are.
        offset: bytes before them. Default 0.

    Raises:
        DataError: the file is missing, cannot be read, or has another size.
    """
    size = offset + count * kind.itemsize
    with opened(path) as file:
        found = file.seek(0, 2)
        if found != size:
            raise DataError(f"{path}: has {found} bytes instead of {size}; it was cut off or is of another corpus")
        if not count:  # nothing can be mapped
            return np.zeros(0, kind)
        # A plain array over the mapped memory: numpy.memmap takes a microsecond more per slice.
        return np.asarray(np.memmap(file, kind, "r", offset, (count,)))


def check_sum(path: Path, wanted: str) -> None:
    """Refuse a file whose SHA-256 is another.

    Raises:
        DataError: it is, or the file cannot be read.
    """
    found = hashlib.sha256()
    with opened(path) as file:
        while piece := file.read(PIECE):
            found.update(piece)
    if found.hexdigest() != wanted:
        raise DataError(f"{path}: is damaged: its SHA-256 is not the one in the manifest; copy or build it anew")
