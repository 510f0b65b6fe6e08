"""Corpora drawn at random: documents with every kind of border."""

import numpy as np
from hypothesis import strategies as st

from onion.tasks.pretraining.corpus.corpus import MemoryCorpus, Shard
from onion.tasks.pretraining.corpus.flags import IN_PARAGRAPH, IN_SENTENCE, IN_WORD

_words = st.lists(st.integers(1, 4), min_size=1, max_size=6)
_paragraphs = st.lists(st.lists(_words, min_size=1, max_size=4), min_size=1, max_size=3)
some_documents = st.lists(st.one_of(st.just([]), _paragraphs), min_size=1, max_size=4)
"""Documents of paragraphs of sentences of the lengths of words; a document may be empty."""


def document(paragraphs):
    """The flags of a document."""
    found = []
    for paragraph in paragraphs:
        for place, sentence in enumerate(paragraph):
            for number, word in enumerate(sentence):
                for token in range(word):
                    bits = IN_WORD * (token > 0)
                    bits |= IN_SENTENCE * (number > 0 or token > 0)
                    found.append(bits | IN_PARAGRAPH * (place > 0 or number > 0 or token > 0))
    return np.array(found, np.uint8)


def shard(documents, first=0):
    """A shard whose ids count from ``first``."""
    flags = [document(each) for each in documents]
    starts = np.cumsum([0, *map(len, flags)])
    return Shard(np.arange(first, first + starts[-1], dtype=np.uint16), np.concatenate(flags), starts)


def corpus(shards, tokenizer=None):
    """A corpus whose ids count the tokens over all shards."""
    found, first = [], 0
    for documents in shards:
        found.append(shard(documents, first))
        first += len(found[-1].tokens)
    return MemoryCorpus(tuple(found), tokenizer, f"drawn {shards}")
