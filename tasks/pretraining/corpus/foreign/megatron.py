r"""Megatron-LM's ``NAME.bin`` and ``NAME.idx``, version 1, which PaddleNLP writes too.

The first has all ids, without anything else. The second, little-endian: ``MMIDIDX\0\0``; version, uint64, 1; code of
the type of the ids, uint8; number of sequences n and of document indices m, uint64; then the length of each sequence,
int32 ``[n]``, its place in bytes, int64 ``[n]``, the sequences before each document, int64 ``[m]``. With
``--split-sentences``, which BERT needs, a sequence is a sentence; without it, it is a document.

Source: NVIDIA/Megatron-LM, megatron/core/datasets/indexed_dataset.py.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from onion.data.opening import opened
from onion.errors import DataError
from onion.tasks.pretraining.corpus.foreign.sentence_lengths import SentenceLengths
from onion.tasks.pretraining.corpus.shard_files import map_array

IDS, INDEX = ".bin", ".idx"
HEADER = struct.Struct("<9sQBQQ")
MAGIC, VERSION = b"MMIDIDX\x00\x00", 1
TYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}
"""Code -> type of the ids; 6 and 7 are floating-point numbers."""


def read_megatron(prefix: Path) -> SentenceLengths:
    """Read the files of a corpus, mapped into memory.

    Args:
        prefix: their path without ``.bin``.

    Raises:
        DataError: a file is missing, damaged, of another version, or of images.
    """
    ids, index = (prefix.with_name(prefix.name + ending) for ending in (IDS, INDEX))
    with opened(index) as file:
        header, size = file.read(HEADER.size), file.seek(0, 2)
    if len(header) < HEADER.size or not header.startswith(MAGIC):
        raise DataError(f"{index}: is no index of Megatron-LM, which begins with MMIDIDX")
    _, version, code, sequences, ends = HEADER.unpack(header)
    if version != VERSION or code not in TYPES:
        raise DataError(f"{index}: is of version {version} with ids of type {code}; 1, and integers, can be read")
    if size != HEADER.size + 12 * sequences + 8 * ends:
        raise DataError(
            f"{index}: has {size} bytes, which are not those of {sequences} sequences; it was cut off, or is of images"
        )
    numbers = map_array(index, np.dtype("u1"), size - HEADER.size, HEADER.size)
    lengths = numbers[: 4 * sequences].view("<i4")
    places = numbers[4 * sequences : 12 * sequences].view("<i8")
    documents = numbers[12 * sequences :].view("<i8")
    kind = np.dtype(TYPES[code])
    total = int(lengths.sum(dtype=np.int64))
    if not np.array_equal(places[1:], np.cumsum(lengths[:-1], dtype=np.int64) * kind.itemsize) or places[:1].any():
        raise DataError(f"{index}: its sequences do not stand one after the other in {ids.name}; write it anew")
    return SentenceLengths((index, ids), map_array(ids, kind, max(total, 0)), lengths, documents)
