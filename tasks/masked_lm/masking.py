"""The rings that mask words: in training, in tests, and where a text brings its own ``[MASK]``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from onion import HookIterator, RunnerItem, State
from onion.models.tokenizer import Tokenizer
from onion.tasks.metrics.perplexity import Guesses

MASKED, SWAPPED = 0.8, 0.1
"""Of the chosen tokens, the shares that become ``[MASK]`` and a random word; the others stay."""


def special_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the ids that are no words: they are never masked, and never stand in for a word."""
    return [tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id]


class Masker(RunnerItem):
    """Mask words of every batch, and make them what is to be learned (BERT, Devlin et al. 2018, section 3.1).

    Every token is chosen with the same probability; in a row where none was, the one that came closest. Of those chosen
    80 % become ``[MASK]``, 10 % a random word, and 10 % stay. With ``whole_words`` it is words that are chosen, and all
    their tokens with them; what becomes of each token is drawn one by one (ERNIE's ``mask_word``, BERT's whole word
    masking). The random numbers are the item's own and part of its state, so a resumed run masks as one that was never
    stopped.

    A batch has ``input_ids`` and ``words``, int64 ``[batch, length]``; ``words`` tells which word of the row a token is
    part of, and is -1 where nothing may be masked. It is left as it is; a new one takes its place, where ``input_ids``
    are masked and, instead of ``words``, there are ``masked_positions``, a list of places in the flattened
    ``[batch * length]``, ascending, and ``labels``, int64 ``[masked words]``, the ids that stood there.

    Args:
        tokenizer: knows ``[MASK]`` and all words.
        seed: of the random numbers.
        share: the probability of a token, or word, to be chosen. Default 0.15.
        whole_words: choose words instead of tokens. Default False.
    """

    keep_for_inference = False

    def __init__(self, tokenizer: Tokenizer, seed: int, share: float = 0.15, whole_words: bool = False) -> None:
        self.share, self.whole_words = share, whole_words
        self._mask_id = tokenizer.mask_id
        self._choice = np.setdiff1d(np.arange(tokenizer.vocab_size), special_ids(tokenizer))
        self._seed = seed
        self.reset()

    def reset(self) -> None:
        """Begin with the seed."""
        # PCG64 by its name: which generator is numpy's default may change.
        self._generator = np.random.Generator(np.random.PCG64(self._seed))

    def on_batch(self, state: State) -> None:
        """Put a masked batch in place of the batch."""
        state.batch = self.masked(state.batch)

    def masked(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return a batch with words masked; see the class."""
        kept = {name: value for name, value in batch.items() if name != "words"}
        ids, words = batch["input_ids"], batch["words"]
        chance, fate, pick = self._generator.random((3, *ids.shape))
        chosen = self._chosen(chance, words)
        swapped = chosen & (fate >= MASKED) & (fate < MASKED + SWAPPED)
        new = np.where(chosen & (fate < MASKED), self._mask_id, ids)
        new[swapped] = self._choice[(pick[swapped] * len(self._choice)).astype(np.int64)]
        return {**kept, "input_ids": new, "masked_positions": np.flatnonzero(chosen).tolist(), "labels": ids[chosen]}

    def _chosen(self, chance: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Choose by chances in [0, 1): bool ``[batch, length]``, at least one a row if any may be."""
        if self.whole_words:
            chance = np.take_along_axis(chance, first_tokens(words), axis=1)
        may_be = words >= 0
        lowest = np.where(may_be, chance, 1.0).min(axis=1, keepdims=True)
        chosen: np.ndarray = may_be & (chance <= np.maximum(self.share, lowest))
        return chosen

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the random numbers."""
        return {"generator": json.dumps(self._generator.bit_generator.state)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take it back."""
        self._generator.bit_generator.state = json.loads(saved["generator"])


class SteadyMasker(Masker):
    """A masker that masks alike in every pass, so that the figures of one test can be held against those of the next.

    Args: those of :class:`Masker`.
    """

    def on_pass(self, state: State) -> None:
        """Begin with the seed again; a pass that was resumed goes on."""
        if state.batch_id == 0:
            self.reset()


class MaskFiller(RunnerItem):
    """Have the ``[MASK]`` that stand in texts filled.

    On the way in, the batch gets ``masked_positions``, as :class:`Masker` has them; there may be none. On the way out,
    the decoded outputs, :class:`Guesses` of every example, become a list of one dict a ``[MASK]``: ``words``, the
    best guess first and as the vocabulary writes them; ``word_ids``; ``probabilities``.

    Args:
        tokenizer: knows ``[MASK]`` and all words.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def on_batch(self, state: State) -> HookIterator:
        """Find the places on the way in, write the words on the way out."""
        places = np.flatnonzero(state.batch["input_ids"] == self._tokenizer.mask_id)
        state.batch = {**state.batch, "masked_positions": places.tolist()}
        yield
        state.outputs = [self._written(guesses) for guesses in state.outputs]

    def _written(self, guesses: Guesses) -> list[dict[str, Any]]:
        found = zip(guesses.ids.tolist(), guesses.probabilities.tolist(), strict=True)
        return [
            {
                "words": self._tokenizer.tokens(ids),
                "word_ids": ids,
                "probabilities": [round(each, 6) for each in probabilities],
            }
            for ids, probabilities in found
        ]


def first_tokens(words: np.ndarray) -> np.ndarray:
    """Return for every token the column in which its word begins, int64 ``[batch, length]``.

    Args:
        words: ``[batch, length]``, equal for neighbours that are part of one word.
    """
    begins = np.diff(words, axis=1, prepend=words[:, :1] - 1) != 0
    return np.maximum.accumulate(np.where(begins, np.arange(words.shape[1]), 0), axis=1)
