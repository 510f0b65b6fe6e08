"""Items that mask words in training and in tests, and that fill the ``[MASK]`` of a text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from onion import HookIterator, RunnerItem, State
from onion.models.tokenizer import Tokenizer
from onion.tasks.metrics.perplexity import Guesses

MASKED, SWAPPED = 0.8, 0.1
"""Shares of the chosen tokens that become ``[MASK]`` or a random word; the others are kept."""

SPARE = re.compile(r"\[unused[0-9]+\]")
"""Tokens of BERT's vocabularies that no text has."""


def special_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the ids that are not words: they are never masked, and never replace a word."""
    return [tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id]


def word_ids(tokenizer: Tokenizer) -> np.ndarray:
    """Return the ids that may replace a word, int64, ascending: those of tokens that are words or parts of words.

    Ids without a token and the spare ones of BERT's vocabularies (``[unused7]``) are none.
    """
    special = set(special_ids(tokenizer))
    tokens = enumerate(tokenizer.tokens(range(tokenizer.vocab_size)))
    words = [each for each, token in tokens if token is not None and not SPARE.fullmatch(token)]
    return np.array([each for each in words if each not in special], np.int64)


def chosen_places(chance: np.ndarray, may_be: np.ndarray, share: float) -> np.ndarray:
    """Choose by random numbers, bool ``[..., length]``: at least one place a row, if any may be chosen.

    Args:
        chance: from 0, below 1, ``[..., length]``; equal ones are chosen together.
        may_be: the places that may be chosen, bool of the same shape.
        share: the probability of each.
    """
    lowest = np.where(may_be, chance, 1.0).min(axis=-1, keepdims=True, initial=1.0)
    chosen: np.ndarray = may_be & (chance <= np.maximum(share, lowest))
    return chosen


class Masker(RunnerItem):
    """Mask words of every batch and make them its labels (BERT, Devlin et al. 2018, section 3.1).

    Every token is chosen with the same probability; in a row without any, the one closest to being chosen. Of the
    chosen tokens 80 % become ``[MASK]``, 10 % a random word, and 10 % are kept. With ``whole_words``, words are chosen
    with all their tokens, and the replacement is drawn for each token (ERNIE's ``mask_word``, BERT's whole word
    masking). The random generator is part of the item's state, so a resumed run draws the same masks.

    A batch has ``input_ids`` and ``words``, int64 ``[batch, length]``; ``words`` is the number of the word in the row,
    and -1 where nothing may be masked. The batch is replaced by a new one with masked ``input_ids`` and, instead of
    ``words``, ``masked_positions``, an ascending list of indices into the flattened ``[batch * length]``, and
    ``labels``, int64 ``[masked words]``, the original ids.

    Args:
        tokenizer: has ``[MASK]`` and the vocabulary.
        seed: of the random generator.
        share: the probability of a token, or word, to be chosen. Default 0.15.
        whole_words: choose words instead of tokens. Default False.
    """

    alters_batches = True
    keep_for_inference = False

    def __init__(self, tokenizer: Tokenizer, seed: int, share: float = 0.15, whole_words: bool = False) -> None:
        self.share, self.whole_words = share, whole_words
        self._mask_id = tokenizer.mask_id
        self._choice = word_ids(tokenizer)
        self._seed = seed
        self.reset()

    def reset(self) -> None:
        """Restart the random generator."""
        # PCG64 by name, since numpy may change its default generator.
        self._generator = np.random.Generator(np.random.PCG64(self._seed))

    def on_batch(self, state: State) -> None:
        """Put a masked batch in place of the batch."""
        state.batch = self.masked(state.batch)

    def masked(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return a batch with words masked; see the class."""
        kept = {name: value for name, value in batch.items() if name != "words"}
        ids, words = batch["input_ids"], batch["words"]
        # Several processes seed numpy's generator alike for each piece of a batch, whoever has it.
        generator = self._generator if self.group is None else np.random
        chance, fate, pick = generator.random((3, *ids.shape))
        chosen = self._chosen(chance, words)
        swapped = chosen & (fate >= MASKED) & (fate < MASKED + SWAPPED)
        new = np.where(chosen & (fate < MASKED), self._mask_id, ids)
        new[swapped] = self._choice[(pick[swapped] * len(self._choice)).astype(np.int64)]
        return {**kept, "input_ids": new, "masked_positions": np.flatnonzero(chosen).tolist(), "labels": ids[chosen]}

    def _chosen(self, chance: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Choose by random numbers in [0, 1): bool ``[batch, length]``, at least one per row if possible."""
        if self.whole_words:
            chance = np.take_along_axis(chance, first_tokens(words), axis=1)
        return chosen_places(chance, words >= 0, self.share)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the random generator."""
        return {"generator": json.dumps(self._generator.bit_generator.state)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state."""
        self._generator.bit_generator.state = json.loads(saved["generator"])


class SteadyMasker(Masker):
    """A masker that draws the same masks in every pass, so that the metrics of tests are comparable.

    Args: those of :class:`Masker`.
    """

    def on_pass(self, state: State) -> None:
        """Restart the random generator, unless a pass is resumed."""
        if state.batch_id == 0:
            self.reset()


class MaskFiller(RunnerItem):
    """Fill the ``[MASK]`` in texts.

    On the way in, the batch gets ``masked_positions``, as in :class:`Masker`, perhaps none. On the way out, the decoded
    :class:`Guesses` of each example become a list with a dict per ``[MASK]``: ``words``, best first, as in the
    vocabulary; ``word_ids``; ``probabilities``.

    Args:
        tokenizer: has ``[MASK]`` and the vocabulary.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def on_batch(self, state: State) -> HookIterator:
        """Find the positions on the way in, convert the guesses to words on the way out."""
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
    """Return for every token the column in which its word starts, int64 ``[batch, length]``.

    Args:
        words: ``[batch, length]``, equal for neighbours in the same word.
    """
    begins = np.diff(words, axis=1, prepend=words[:, :1] - 1) != 0
    return np.maximum.accumulate(np.where(begins, np.arange(words.shape[1]), 0), axis=1)
