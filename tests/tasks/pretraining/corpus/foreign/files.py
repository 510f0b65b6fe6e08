"""Files as other systems write them, by code that follows their own."""

import struct
from itertools import accumulate
from pathlib import Path

import numpy as np

CODES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}


def write_paddlenlp(prefix, documents, kind="uint16"):
    """PaddleNLP's files of documents, each a list of sentences of ids (ernie-1.0's create_pretraining_data.py)."""
    sentences = [sentence for document in documents for sentence in document]
    counts = [0, *accumulate(len(document) for document in documents)]
    np.save(f"{prefix}_ids.npy", np.array([token for sentence in sentences for token in sentence], kind))
    lengths = np.array([len(sentence) for sentence in sentences], np.int32)
    np.savez(f"{prefix}_idx.npz", lens=lengths, docs=np.array(counts, np.int64))


def write_megatron(prefix, documents, kind="uint16"):
    """Megatron-LM's files (IndexedDatasetBuilder and _IndexWriter of megatron/core/datasets/indexed_dataset.py)."""
    lengths, ends, ids = [], [0], b""
    for document in documents:
        for sentence in document:
            ids += np.array(sentence, kind).tobytes()
            lengths.append(len(sentence))
        ends.append(len(lengths))
    size = np.dtype(kind).itemsize
    places = [0, *accumulate(size * length for length in lengths)][: len(lengths)]
    with Path(f"{prefix}.bin").open("wb") as file:
        file.write(ids)
    with Path(f"{prefix}.idx").open("wb") as file:
        file.write(b"MMIDIDX\x00\x00" + struct.pack("<Q", 1) + struct.pack("<B", CODES[kind]))
        file.write(struct.pack("<Q", len(lengths)) + struct.pack("<Q", len(ends)))
        file.write(np.array(lengths, np.int32).tobytes() + np.array(places, np.int64).tobytes())
        file.write(np.array(ends, np.int64).tobytes())


WRITERS = {"paddlenlp": (write_paddlenlp, "_ids.npy", "_idx.npz"), "megatron": (write_megatron, ".bin", ".idx")}
"""Who -> what writes the files, and the endings of the ids and of the index."""
