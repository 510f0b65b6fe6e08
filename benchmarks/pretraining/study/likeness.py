"""How alike the word embeddings of an encoder are, by how often their tokens occur in a corpus.

    python -m benchmarks.pretraining.study.likeness ENCODER CORPUS

Prints the mean cosine of two different tokens of each band of frequencies, in JSON: 1 says that all of them point the
same way, 0 that they do not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onion.models.auto import load_encoder
from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.opening import open_corpus

BANDS = {"4-20": (4, 20), "21-100": (21, 100), "101-1000": (101, 1000), "1001-": (1001, np.inf)}


def mean_cosine(rows: NDArray[np.float32]) -> float:
    """Return the mean cosine of two different rows ``[n, width]``; NaN: there are fewer than two."""
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    n, total = len(units), float(np.square(units.sum(axis=0, dtype=np.float64)).sum())
    return (total - n) / (n * (n - 1)) if n > 1 else float("nan")  # the sum over all pairs, less those of a row itself


def likeness(table: NDArray[np.float32], corpus: Corpus) -> dict[str, float]:
    """Return band -> the mean cosine of its tokens.

    Args:
        table: word embeddings ``[vocabulary, width]``.
        corpus: whose tokens are counted.
    """
    counts = np.zeros(len(table), np.int64)
    for shard in corpus.shards:
        counts += np.bincount(shard.tokens, minlength=len(table))
    return {name: mean_cosine(table[(counts >= least) & (counts <= most)]) for name, (least, most) in BANDS.items()}


if __name__ == "__main__":
    embeddings = load_encoder(Path(sys.argv[1])).embeddings.word_embeddings.weight
    print(json.dumps(likeness(embeddings.numpy(), open_corpus(sys.argv[2]))))
