"""ERNIE 1.0's own masks, number for number, to compare with; onion's are those of ``onion.tasks.masked_lm.masking``.

Source: PaddlePaddle/ERNIE at tag static_graph, ernie/batching.py. It differs from onion's on purpose: a row may be left
without a target, a random word may be a special token or an id that the vocabulary does not use, and whether the first
token of a unit is masked, replaced or kept hangs on the number that chose it.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from onion.tasks.masked_lm.masking import first_tokens
from onion.tasks.pretraining.corpus.ernie_lines import BORDER, INSIDE, ErnieSample

SHARE, KEPT, SWAPPED = 0.15, 0.1, 0.2
"""Share of units that are chosen; of a chosen token's own number: below KEPT it stays, below SWAPPED it is replaced."""


@attrs.frozen(eq=False)
class MaskedBatch:
    """A masked batch.

    Attributes:
        ids: int64 ``[batch, longest]``, padded with 0.
        positions: of the targets, int64 ``[targets]``: indices into the flattened ``ids``.
        labels: the ids that stood there, int64 ``[targets]``.
    """

    ids: np.ndarray
    positions: np.ndarray
    labels: np.ndarray


def masked(
    samples: Sequence[ErnieSample], words: bool, vocab_size: int, mask_id: int, generator: np.random.RandomState
) -> MaskedBatch:
    """Mask a batch as ERNIE 1.0 does.

    Args:
        samples: at least one.
        words: whether units are chosen, with all their tokens; otherwise tokens.
        vocab_size: random words are from 1 to this, exclusively.
        mask_id: of ``[MASK]``.
        generator: two draws are made: of a number and of a random word for each token, without padding.
    """
    ids = np.concatenate([sample.ids for sample in samples])
    units = np.concatenate([sample.units for sample in samples])
    chance = generator.rand(len(ids))
    replacements = generator.randint(1, vocab_size, size=len(ids))
    places = np.arange(len(ids))
    # A border begins what follows nothing, so that every token has a first one.
    firsts = first_tokens(np.cumsum(units != INSIDE)[None])[0] if words else places
    chosen = (units != BORDER) & (chance[firsts] <= SHARE)
    scale = np.where(firsts == places, SHARE, 1.0)  # the first token's number is below SHARE, as it was chosen
    kept = chance <= KEPT * scale
    swapped = ~kept & (chance <= SWAPPED * scale)
    new = np.where(chosen & ~kept, np.where(swapped, replacements, mask_id), ids)
    lengths = [len(sample.ids) for sample in samples]
    longest = max(lengths)
    padded = np.zeros((len(samples), longest), np.int64)
    inside = np.arange(longest) < np.array(lengths)[:, None]
    padded[inside] = new
    return MaskedBatch(padded, np.flatnonzero(inside)[chosen], ids[chosen])
