"""Where units begin in a corpus."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onion.tasks.pretraining.corpus.corpus import Corpus
from onion.tasks.pretraining.corpus.flags import starts


def unit_places(corpus: Corpus, inside: int) -> NDArray[np.int64]:
    """Return the places over all shards where units begin, ascending, int64 ``[units]``.

    Args:
        corpus: its tokens are not read, only its flags.
        inside: the bit of the inside of these units, such as IN_SENTENCE.
    """
    found, first = [np.zeros(0, np.int64)], 0
    for shard in corpus.shards:
        found.append(first + starts(shard.flags, inside))
        first += len(shard.flags)
    return np.concatenate(found)
