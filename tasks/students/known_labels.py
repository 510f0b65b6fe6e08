"""Learning from rows of which only some are labelled."""

from __future__ import annotations

from typing import Any

import paddle
from paddle import nn

from onion import RunnerItem, State
from onion.engine.placement import BEHIND_DATA

KNOWN = "known"
"""The field of a batch with the numbers of its rows that are labelled: a list, so it stays on the host."""


class KnownLabels(RunnerItem):
    """Tell the loss which rows of a batch are labelled: the first examples of the data are.

    Args:
        labelled: how many examples, of which ``batch["places"]`` has the indices.
    """

    alters_batches = True
    keep_for_inference = False
    place_rules = (BEHIND_DATA,)

    def __init__(self, labelled: int) -> None:
        self.labelled = labelled

    def on_batch(self, state: State) -> None:
        """Put ``known`` into the batch."""
        known = [row for row, place in enumerate(state.batch["places"]) if place < self.labelled]
        state.batch = {**state.batch, KNOWN: known}


class OfKnownLabels:
    """A network whose loss is that of the labelled rows, times their share of the batch.

    So each labelled row weighs the same, whatever rows it shares a batch with.

    Args:
        network: has ``loss(logits, batch)``, the mean over the rows, and an encoder.
    """

    def __init__(self, network: nn.Layer) -> None:
        self.encoder = network.encoder
        self._loss = network.loss

    def loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the scalar loss of logits [rows, labels] and a batch with ``labels`` and ``known``."""
        known, rows = batch[KNOWN], logits.shape[0]
        if len(known) == rows:
            return self._loss(logits, batch)
        if not known:
            return paddle.zeros([])
        index = paddle.to_tensor(known)
        chosen = {**batch, "labels": paddle.gather(batch["labels"], index)}
        return self._loss(paddle.gather(logits, index), chosen) * (len(known) / rows)
