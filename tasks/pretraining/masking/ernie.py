"""ERNIE 1.0's own masks, number for number; onion's are those of ``onion.tasks.pretraining.masking.masking``.

Source: PaddlePaddle/ERNIE at tag static_graph, ernie/batching.py and ernie/reader/pretraining.py. It differs from
onion's on purpose: a row may be left without a target, a random word may be a special token or an id that the
vocabulary does not use, unknown words are masked, and whether the first token of a unit is masked, replaced or kept
hangs on the number that chose it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from onion import RunnerItem, State
from onion.tasks.masked_lm.masking import first_tokens
from onion.tasks.pretraining.corpus.flags import IN_WORD
from onion.tasks.pretraining.examples import Example, collate
from onion.tasks.pretraining.masking.levels import CHARACTER, WORD
from onion.tasks.pretraining.sampling.draws import Draws

SHARE, KEPT, SWAPPED = 0.15, 0.1, 0.2
"""Share of units that are chosen; of a chosen token's own number: below KEPT it stays, below SWAPPED it is replaced."""


@attrs.frozen
class Vocabulary:
    """What ERNIE knows of the vocabulary when it masks.

    Attributes:
        size: random words are from 1 to this, exclusively: the number of word embeddings, 18000 in ERNIE 1.0.
        cls_id, sep_id: they are never masked.
        mask_id: of ``[MASK]``.
        pad_id: of ``[PAD]``. Default 0.
    """

    size: int
    cls_id: int
    sep_id: int
    mask_id: int
    pad_id: int = 0


def masked(
    examples: Sequence[Example],
    words: bool | Sequence[bool],
    vocabulary: Vocabulary,
    generator: np.random.RandomState,
) -> list[Example]:
    """Mask the examples of a batch as ERNIE 1.0 does.

    Args:
        examples: at least one; see ``onion.tasks.pretraining.examples``.
        words: whether words are chosen, with all their tokens, and not tokens; for all examples, or for each.
        vocabulary: of the encoder.
        generator: two draws are made: of a number and of a random word for each token, without padding.
    """
    ids = np.concatenate([example["ids"] for example in examples])
    inside = (np.concatenate([example["flags"] for example in examples]) & IN_WORD) != 0
    chance = generator.rand(len(ids))
    replacements = generator.randint(1, vocabulary.size, size=len(ids))
    places = np.arange(len(ids))
    lengths = [len(example["ids"]) for example in examples]
    by_words = np.broadcast_to(words, len(examples))
    firsts = np.where(np.repeat(by_words, lengths), first_tokens(np.cumsum(~inside)[None])[0], places)
    border = (ids == vocabulary.cls_id) | (ids == vocabulary.sep_id)
    chosen = ~border & (chance[firsts] <= SHARE)
    scale = np.where(firsts == places, SHARE, 1.0)  # the first token's number is below SHARE, as it was chosen
    kept = chance <= KEPT * scale
    swapped = ~kept & (chance <= SWAPPED * scale)
    new = np.where(chosen & ~kept, np.where(swapped, replacements, vocabulary.mask_id), ids)
    ends = np.cumsum(lengths)[:-1]
    rows = zip(examples, np.split(new, ends), np.split(chosen, ends), by_words.tolist(), strict=True)
    return [_targets(example, row, np.flatnonzero(taken), level) for example, row, taken, level in rows]


def _targets(example: Example, ids: np.ndarray, places: np.ndarray, words: bool) -> Example:
    levels = np.full(len(places), WORD if words else CHARACTER, np.int64)
    return {**example, "ids": ids, "masked": places, "originals": example["ids"][places], "levels": levels}


class ErnieMasker(RunnerItem):
    """Mask batches as ERNIE 1.0 does, to compare with it.

    A batch is a list of unmasked examples, so the ``DataProvider`` outside has ``collate=list``; it is replaced by the
    batch of ``onion.tasks.pretraining.examples.collate``. Whether units are words or tokens is drawn once a pass for
    each file, as ERNIE does. The random generator is part of the item's state, so a resumed run draws the same masks.

    Args:
        vocabulary: of the encoder.
        seed: of the random generator, as ``numpy.random.seed`` takes it. ERNIE never sets it.
        word_share: the probability of a file to be masked by words in a pass, and not by tokens, where its examples do
            not come from a list of files, which tells it. Default 1.1, always, as in the lists that ERNIE 1.0 is
            published with.
    """

    alters_batches = True
    keep_for_inference = False
    alone_because = "ERNIE's masks hang on all tokens of a batch, of which each process has a part"

    def __init__(self, vocabulary: Vocabulary, seed: int, word_share: float = 1.1) -> None:
        self.vocabulary, self.seed, self.word_share = vocabulary, seed, word_share
        self.reset()

    def reset(self) -> None:
        """Restart the random generator."""
        self._generator = np.random.RandomState(self.seed)

    def by_words(self, pass_id: int, example: Example) -> bool:
        """Return whether an example is masked by words: drawn from the seed, the pass and its file alone."""
        share: float = example.get("word_share", self.word_share)
        return Draws.of(self.seed, pass_id, example.get("file", 0)).chance("words") < share

    def on_batch(self, state: State) -> None:
        """Put a masked batch in place of the list."""
        words = [self.by_words(state.pass_id, example) for example in state.batch]
        found = masked(state.batch, words, self.vocabulary, self._generator)
        state.batch = collate(found, self.vocabulary.pad_id)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the random generator."""
        name, keys, *rest = self._generator.get_state(legacy=True)
        return {"keys": keys, "generator": json.dumps([name, *rest])}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state."""
        name, *rest = json.loads(saved["generator"])
        self._generator.set_state((name, np.asarray(saved["keys"], np.uint32), *rest))
