"""Mean cosines of word embeddings by the frequency of their tokens."""

import math

import numpy as np
import pytest

from benchmarks.pretraining.study.likeness import likeness, mean_cosine
from onion.tasks.pretraining.corpus.corpus import MemoryCorpus, Shard


def test_the_mean_is_over_pairs_of_different_rows():
    rows = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    units = [row / np.linalg.norm(row) for row in rows]
    pairs = [float(one @ other) for place, one in enumerate(units) for other in units[:place]]
    assert mean_cosine(rows) == pytest.approx(np.mean(pairs), abs=1e-6)
    assert mean_cosine(np.array([[1.0, 0], [2, 0]], np.float32)) == pytest.approx(1)
    assert math.isnan(mean_cosine(rows[:1]))


def test_tokens_stand_in_the_band_of_their_counts():
    ids = np.repeat(np.arange(4, dtype=np.uint16), [5, 20, 100, 30])
    corpus = MemoryCorpus([Shard(ids, np.zeros(len(ids), np.uint8), np.array([0, len(ids)]))], None, "")
    found = likeness(np.array([[1, 0], [0, 1], [1, 1], [1, 1]], np.float32), corpus)
    assert found["4-20"] == pytest.approx(0)
    assert found["21-100"] == pytest.approx(1)
    assert math.isnan(found["101-1000"])
