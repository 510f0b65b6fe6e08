"""Counts of tokens: whole of a small corpus, pieces at equal distances of a large one."""

import numpy as np
import pytest

from onion.tasks.pretraining import token_frequencies
from onion.tasks.pretraining.corpus.corpus import MemoryCorpus, Shard
from onion.tasks.pretraining.token_frequencies import log_frequencies


def corpus_of(*shards):
    """A corpus of some ids; flags and borders are not looked at."""
    found = [np.asarray(each, np.uint16) for each in shards]
    return MemoryCorpus([Shard(ids, np.zeros(len(ids), np.uint8), np.array([0, len(ids)])) for ids in found], None, "")


def test_each_token_counts_once_more_than_it_was_found():
    found = log_frequencies(corpus_of([0, 2, 2], [2, 1]), 4)
    assert found.dtype == np.float32
    assert np.exp(found) == pytest.approx(np.array([2, 2, 4, 1]) / 9)


def test_of_a_large_corpus_pieces_of_every_shard_are_counted(monkeypatch):
    monkeypatch.setattr(token_frequencies, "COUNTED", 8)
    monkeypatch.setattr(token_frequencies, "PIECE", 2)
    ids = [0, 0, 3, 3, 3, 3, 1, 1, 3, 3, 3, 3]  # of six tokens in a row, two are counted
    assert np.exp(log_frequencies(corpus_of(ids, ids), 4)) == pytest.approx(np.array([5, 5, 1, 1]) / 12)


def test_an_empty_corpus_has_equal_frequencies():
    assert np.exp(log_frequencies(corpus_of([]), 4)) == pytest.approx(np.full(4, 0.25))
