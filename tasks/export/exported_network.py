"""An exported model in the place of a network: called with a batch, it gives what the network gives, as an array."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from onion import Forward, HookIterator, State
from onion.tasks.batches import mask_of
from onion.tasks.export.names import IDS, MASK, POSITIONS, TYPES
from onion.tasks.export.sessions import Session
from onion.tasks.task import TOKEN_VECTORS, Task


class ExportedNetwork:
    """Run an exported model on the batches of its task.

    Args:
        task: that the model was trained for.
        session: runs it.
        decoding: parameters that decoding needs, by path (``Task.decoding``).
        alone: run each row on its own. With 8 bits whose range is found each time, what is answered to a text would
            otherwise depend on the texts beside it.
    """

    def __init__(
        self, task: Task, session: Session, decoding: Mapping[str, np.ndarray] | None = None, alone: bool = False
    ) -> None:
        self.task, self.session, self.alone = task, session, alone
        self._decode = task.decoding(decoding or {})

    def __call__(self, batch: Mapping[str, Any]) -> np.ndarray:
        """Return the outputs for a batch of ``Task.collate``, float32."""
        given = inputs_of(batch)
        logits = self._one_by_one(given, batch["lengths"]) if self.alone else self.session(given)
        return self.task.outputs_of(logits, batch)

    def decode(self, outputs: np.ndarray, batch: dict[str, Any]) -> list[Any]:
        """Return one entry for each example, as the network's own ``decode``."""
        return self._decode(outputs, batch)

    def _one_by_one(self, given: Mapping[str, np.ndarray], lengths: list[int]) -> np.ndarray:
        found = [self.session(row) for row in rows_alone(given, lengths)]
        if self.task.head_over != TOKEN_VECTORS:
            return np.concatenate(found)
        padded = np.zeros((*given[IDS].shape, found[0].shape[2]), np.float32)
        for into, row in zip(padded, found, strict=True):
            into[: row.shape[1]] = row[0]
        return padded


def inputs_of(batch: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the inputs of an exported model for a batch of ``Task.collate``; see ``onnx_file.onnx_model``."""
    mask = mask_of(dict(batch)).astype(np.int64)
    given = {IDS: batch["input_ids"], TYPES: batch["token_type_ids"], MASK: mask}
    if "masked_positions" in batch:
        given[POSITIONS] = np.array(batch["masked_positions"], np.int64)
    return given


def rows_alone(given: Mapping[str, np.ndarray], lengths: list[int]) -> Iterator[dict[str, np.ndarray]]:
    """Yield the inputs of each row without its padding, which is on the right."""
    longest = given[IDS].shape[1]
    for number, length in enumerate(lengths):
        row = {name: given[name][number : number + 1, :length] for name in (IDS, TYPES, MASK)}
        if POSITIONS in given:
            own = given[POSITIONS] // longest == number
            row[POSITIONS] = given[POSITIONS][own] - number * longest
        yield row


class ExportedForward(Forward):
    """Run an exported model; set ``state.outputs``, an array. It needs no Paddle.

    Args:
        network: the model, a function of a batch.
    """

    def __init__(self, network: Callable[[Any], np.ndarray]) -> None:
        self.network, self.loss = network, None

    def on_pass(self, state: State) -> HookIterator:
        """Leave the model as it is: it has no other mode."""
        yield

    def on_batch(self, state: State) -> None:
        """Compute the outputs."""
        state.outputs, state.loss = self.network(state.batch), None


def forward_of(network: Any) -> Forward:
    """Return the item that runs a network: a layer of Paddle, or what was exported of one."""
    return Forward(network) if hasattr(network, "sublayers") else ExportedForward(network)
