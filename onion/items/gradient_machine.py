"""The innermost ring of a training onion: forward, loss, backward."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsFloat, TypeAlias

from onion.device import to_tensors
from onion.engine.backward import explained, once
from onion.engine.item import RunnerItem
from onion.engine.placement import BEHIND_DATA
from onion.engine.state import State
from onion.errors import CheckpointError, CompositionError

LossFunction: TypeAlias = Callable[[Any, Any], Any]
"""(outputs, batch of tensors) -> the loss, a scalar tensor."""

WeightFunction: TypeAlias = Callable[[Any], SupportsFloat | None]
"""batch -> what its loss is a mean over, such as the number of its tokens; None: its examples."""


class GradientMachine(RunnerItem):
    """Run the network forward and backward on the way in; set ``state.outputs`` and ``state.loss``.

    There is one backward pass, which networks may rely on (:mod:`onion.engine.backward`). A network, loss or hook that
    runs another one over the same graph computes that graph within ``onion.engine.backward.many`` (docs/guards.md).

    Args:
        network: a ``paddle.nn.Layer`` that is called with the batch (numpy arrays converted to tensors).
        loss: ``loss(outputs, batch)``; default: the network's own method ``loss``.
        weight: ``weight(batch)``, what the loss of a batch is a mean over, where that is not its examples; of labelled
            tokens: ``lambda batch: (batch["labels"] >= 0).sum()``. By it processes weigh what they have of a batch
            (``onion.distributed.DataParallel``). The batch has arrays, not tensors. Default: of the network's own loss
            its method ``loss_weight``, if it has one; else, and where that returns None, the number of examples.

    Raises:
        CompositionError: there is no loss function, or the network's ``forward`` takes more than the batch.
    """

    computes_gradients = True
    place_rules = (BEHIND_DATA,)

    def __init__(self, network: Any, loss: LossFunction | None = None, weight: WeightFunction | None = None) -> None:
        if loss is None and not callable(getattr(network, "loss", None)):
            raise CompositionError(
                f"GradientMachine has no loss: give {type(network).__name__} a method loss(outputs, batch), "
                "or pass GradientMachine(network, loss=function)."
            )
        refuse_fields(network)
        self.network = network
        self.loss: LossFunction = loss or network.loss
        self.weight = weight
        self._weight = weight or (getattr(network, "loss_weight", None) if loss is None else None)

    def initialize(self, state: State) -> None:
        """Put the network into training mode."""
        self.network.train()

    def on_batch(self, state: State) -> None:
        """Compute outputs, loss and gradients of the batch."""
        batch = to_tensors(state.batch)
        with explained:
            with once:
                state.outputs = self.network(batch)
                state.loss = loss = self.loss(state.outputs, batch)
            (loss if state.share == 1 else loss * state.share).backward()
        if self.group is not None and self._weight is not None:
            told = self._weight(state.batch)
            state.weight = None if told is None else float(told)

    def state_dict(self) -> dict[str, Any]:
        """Return the network's parameters and buffers by path; one with several paths is included once."""
        return saved_network(self.network)

    def extended(self, saved: Mapping[str, Any], tasks: Sequence[str]) -> dict[str, Any]:
        """Add the parameters and buffers of new heads, as they are."""
        return with_new_heads(self.network, saved, tasks)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore parameters and buffers.

        Raises:
            CheckpointError: names or shapes differ from the network's; the network is unchanged.
        """
        load_network(self.network, saved)


def refuse_fields(network: Any) -> None:
    """Refuse a network whose ``forward`` has to be called with the fields of a batch one by one.

    Raises:
        CompositionError: its ``forward`` cannot be called with one argument.
    """
    try:
        signature = inspect.signature(getattr(network, "forward", network))
    except (TypeError, ValueError):  # written in C++
        return
    try:
        signature.bind("batch")
    except TypeError:
        raise CompositionError(
            f"{type(network).__name__}.forward{signature} has to take the batch, whole and alone: "
            "def forward(self, batch), which finds its inputs in it, such as batch['x'] or batch[0]."
        ) from None


def saved_network(network: Any) -> dict[str, Any]:
    """Return a network's parameters and buffers by path; one with several paths is included once, by its first."""
    own = network.state_dict()
    return {paths[0]: own[paths[0]] for paths in _paths(own)}


def load_network(network: Any, saved: Mapping[str, Any]) -> None:
    """Set every parameter and buffer of a network from arrays by path, all or none (see GradientMachine).

    A tensor with several paths may be saved by any of them, or by all.
    """
    own = network.state_dict()
    wrong = [f"{paths[0]} is missing" for paths in _paths(own) if saved.keys().isdisjoint(paths)]
    wrong += [f"{name} is unknown to the network" for name in saved.keys() - own.keys()]
    wrong += [
        f"{name} is {array_kind(saved[name])}, the network's is {array_kind(own[name])}"
        for name in own.keys() & saved.keys()
        if array_kind(saved[name]) != array_kind(own[name])
    ]
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise CheckpointError(f"the saved network does not match: {'; '.join(sorted(wrong)[:5])}{more}.")
    for name in own.keys() & saved.keys():
        own[name].set_value(saved[name])


def with_new_heads(network: Any, saved: Mapping[str, Any], tasks: Sequence[str]) -> dict[str, Any]:
    """Return a saved network with the parameters and buffers of heads that it lacks, as they are in the network.

    Args:
        network: has a part for each task, with the task's name in its path: ``networks.capital.linear.weight``.
        saved: parameters and buffers by path, as ``saved_network`` gives them.
        tasks: whose heads may be new.
    """
    own = network.state_dict()
    new = [
        paths[0]
        for paths in _paths(own)
        if saved.keys().isdisjoint(paths) and not set(tasks).isdisjoint(paths[0].split("."))
    ]
    return {**saved, **{path: own[path] for path in new}}


def _paths(own: Mapping[str, Any]) -> list[list[str]]:
    """Return the paths of each tensor; two layers that hold one tensor give it two."""
    paths: dict[int, list[str]] = {}
    for path, tensor in own.items():
        paths.setdefault(id(tensor), []).append(path)
    return list(paths.values())


def array_kind(array: Any) -> str:
    """Return type and shape as text. numpy has no bfloat16; Paddle returns it as uint16."""
    dtype = str(array.dtype).removeprefix("paddle.").replace("uint16", "bfloat16")
    return f"{dtype} {list(array.shape)}"
