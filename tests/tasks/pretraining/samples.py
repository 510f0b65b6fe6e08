"""Samples as ERNIE 1.0's files have them, drawn at random."""

import numpy as np
from hypothesis import strategies as st

from onion.tasks.pretraining.corpus.ernie_lines import ErnieSample

CLS, SEP, MASK = 1, 2, 3


def sample(units_a, units_b, label=1):
    """[CLS] A [SEP] B [SEP] of units, each a list of token ids."""
    ids, sentences, units = [CLS], [0], [-1]
    for sentence, each in enumerate((units_a, units_b)):
        for unit in each:
            ids += unit
            units += [0] + [1] * (len(unit) - 1)
        ids.append(SEP)
        units.append(-1)
        sentences += [sentence] * (len(ids) - len(sentences))
    return ErnieSample(*(np.array(values, np.int64) for values in (ids, sentences, units)), label)


_units = st.lists(st.lists(st.integers(4, 99), min_size=1, max_size=4), max_size=6)
some_samples = st.lists(st.builds(sample, _units, _units, st.sampled_from([0, 1])), min_size=1, max_size=5)
