"""PaddleNLP's ``NAME_ids.npy`` and ``NAME_idx.npz``, which its older ``create_pretraining_data.py`` writes.

The first has all ids, ``uint16`` or ``int32 [tokens]``; the second ``lens``, int32 ``[sentences]``, the tokens of each
sentence, and ``docs``, int64 ``[documents + 1]``, the sentences before each document. Newer versions write Megatron's
files.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap, read_array
from numpy.typing import NDArray

from onion.data.opening import opened
from onion.errors import DataError
from onion.tasks.pretraining.corpus.foreign.sentence_lengths import SentenceLengths

IDS, INDEX = "_ids.npy", "_idx.npz"
BROKEN = (OSError, EOFError, ValueError, KeyError, TypeError, MemoryError, zlib.error, zipfile.BadZipFile)
"""What numpy and zipfile raise; MemoryError: an empty file may claim any shape."""


def read_paddlenlp(prefix: Path) -> SentenceLengths:
    """Read the files of a corpus, the ids mapped into memory.

    Args:
        prefix: their path without ``_ids.npy``.

    Raises:
        DataError: a file is missing, damaged or something else.
    """
    ids, index = (prefix.with_name(prefix.name + ending) for ending in (IDS, INDEX))
    return SentenceLengths((index, ids), _ids(ids), *_index(index))


def _ids(path: Path) -> NDArray[Any]:
    with opened(path):  # which tells what is wrong with the path
        pass
    try:
        found = np.asarray(open_memmap(path, mode="r"))
    except BROKEN as error:
        raise _damaged(path, str(error)) from None
    if found.dtype.str not in ("<u2", "<i4") or found.ndim != 1:
        raise _damaged(path, f"uint16 or int32 [tokens] is expected, not {found.dtype} of {found.ndim} axes")
    return found


def _index(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    with opened(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                lengths, documents = (_numbers(archive, name) for name in ("lens", "docs"))
        except (*BROKEN, NotImplementedError, RuntimeError) as error:  # of packed or encrypted members
            raise _damaged(path, str(error)) from None
    return lengths, documents


def _numbers(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as file:
        found: NDArray[Any] = read_array(file, allow_pickle=False)
    if found.dtype.kind not in "iu" or found.ndim != 1:
        raise ValueError(f"{name} is no list of integers")
    return found


def _damaged(path: Path, what: str) -> DataError:
    return DataError(f"{path}: is no such file of PaddleNLP, or is damaged ({what}); copy it anew")
