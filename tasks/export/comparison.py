"""A model beside the run that it was made of, on the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from onion import Forward, HookIterator, Runner, RunnerItem, State
from onion.device import to_arrays
from onion.errors import DataError, WeightsError
from onion.tasks.batches import mask_of
from onion.tasks.collector import Decoder
from onion.tasks.data.features.examples import Examples
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.recipes import in_order

BOUND = 1e-5
"""The largest difference of a number of 32 bits; of numbers above 1, relative to them."""

TOGETHER = 4
"""Rows in a batch, so that there is padding."""


OF_TOKENS = 3
"""Axes of outputs for every token of a padded batch."""


@attrs.frozen
class Comparison:
    """What differs between a model and the run that it was made of.

    Attributes:
        rows: that were predicted by both.
        largest_difference: of the logits; of logits above 1, relative to the largest of their batch.
        mean_difference: of the logits.
        changed: rows whose prediction differs in more than numbers: in a label, a tag, a span, a word.
    """

    rows: int
    largest_difference: float
    mean_difference: float
    changed: int

    @classmethod
    def of(cls, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], rows: int, changed: int = 0) -> Comparison:
        """Compare outputs batch by batch."""
        found = [
            np.abs(one - other) / max(1.0, float(np.abs(one).max(initial=0)))
            for one, other in zip(ours, theirs, strict=True)
        ]
        every = np.concatenate([each.ravel() for each in found])
        return cls(rows, float(every.max(initial=0)), float(every.mean()) if every.size else 0.0, changed)

    def check(self, exact: bool = True) -> None:
        """Refuse a model that gives no numbers or, if it should be exact, differs by more than ``BOUND``.

        Raises:
            WeightsError: it does.
        """
        bound = BOUND if exact else float("inf")
        if not self.largest_difference <= bound:  # NaN is not either
            raise WeightsError(
                f"the exported model's outputs differ from the original's by {self.largest_difference:.3g}, more than "
                f"{bound:g}; nothing was written. Please report it with the config of the encoder."
            )

    def told(self, int8: str | None) -> dict[str, Any]:
        """Return what a manifest tells of it; the bound of a model with 8 bits is what was measured."""
        return {**attrs.asdict(self), "bound": BOUND if int8 is None else self.largest_difference}


class _Outputs(RunnerItem):
    """Keep the outputs of the network as they are, but for those of padding, which have no meaning."""

    def __init__(self) -> None:
        self.found: list[np.ndarray] = []

    def on_batch(self, state: State) -> HookIterator:
        """Keep those of the batch."""
        yield
        outputs: np.ndarray = to_arrays(state.outputs)
        self.found.append(outputs[mask_of(state.batch)] if outputs.ndim == OF_TOKENS else outputs)


def compare(run: Predictor, exported: Predictor, lines: Sequence[str]) -> Comparison:
    """Predict the same rows by both.

    Raises:
        DataError: a line is not what the task reads, or nothing is predicted for any of them.
    """
    ours = _outputs(run, lines)
    if not any(each.size for each in ours):
        raise DataError(
            "texts: no row has anything to predict, so there is nothing to compare the model by; give other rows, "
            "such as texts with [MASK]"
        )
    answered = zip(answers(run, lines), answers(exported, lines), strict=True)
    changed = sum(_without_numbers(ours) != _without_numbers(theirs) for ours, theirs in answered)
    return Comparison.of(ours, _outputs(exported, lines), len(lines), changed)


def answers(predictor: Predictor, lines: Sequence[str]) -> list[Any]:
    """Return what is predicted for each row."""
    return list(predictor(predictor.task.line_rows(lines)))


def _outputs(predictor: Predictor, lines: Sequence[str]) -> list[np.ndarray]:
    task, tokenizer, outputs = predictor.task, predictor.tokenizer, _Outputs()
    examples = Examples.of(task.features(list(task.line_rows(lines)), tokenizer, False, Counter()))
    data = in_order(task, examples, tokenizer.pad_id, TOGETHER)
    decoder = Decoder(predictor.onion[Forward].network)
    Runner(data, *task.predict_items(tokenizer), decoder, outputs, predictor.onion).run(passes=1)
    return outputs.found


def _without_numbers(value: Any) -> Any:
    """Return a prediction without its probabilities and scores, and without what is not the best."""
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if name not in ("nbest", "probabilities", "word_ids")}
        return {name: _without_numbers(each) for name, each in kept.items()}
    if isinstance(value, list):
        return [_without_numbers(each) for each in value]
    return None if isinstance(value, float) else value
