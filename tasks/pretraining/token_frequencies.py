"""How often each token occurs in a corpus, where the masked LM head begins.

A decoder that begins without a bias has to learn first which tokens are rare. It is tied to the word embeddings, and
Adam moves every row of them by about the learning rate, however small its gradient is; so all rare tokens are pushed
the same way, away from every output, until their vectors are nearly the same (docs/pretraining_study.md has figures).
With this bias they are unlikely from the beginning, and with a larger ``adam_epsilon`` their small gradients move them
less.

Source: our own choice; BERT and ERNIE begin with zeros. Lin et al. 2017 (arXiv 1708.02002, sections 3.3 and 4.1) begin
the last bias of a detector with a prior too, 0.01 for every class, for the stability of the first steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onion.tasks.pretraining.corpus.corpus import Corpus

COUNTED = 2**24
"""Tokens that are counted, about; a corpus of 10^9 is opened as fast as one of 10^7."""

PIECE = 2**16
"""Tokens in a row of which all are counted."""


def log_frequencies(corpus: Corpus, vocabulary: int) -> NDArray[np.float32]:
    """Return the logarithm of each token's share of a corpus, float32 ``[vocabulary]``.

    Of a corpus with more than twice ``COUNTED`` tokens, pieces at equal distances are counted in each shard. Each token
    is counted once more than it was found: the others are rare, not impossible.

    Args:
        corpus: its ids are below ``vocabulary``.
        vocabulary: how many tokens there are.
    """
    step = PIECE * max(1, sum(len(shard.tokens) for shard in corpus.shards) // COUNTED)
    counts = np.ones(vocabulary)
    for shard in corpus.shards:
        for start in range(0, len(shard.tokens), step):
            counts += np.bincount(shard.tokens[start : start + PIECE].astype(np.int64), minlength=vocabulary)
    found: NDArray[np.float32] = np.log(counts / counts.sum()).astype(np.float32)
    return found
