"""One encoder, several tasks: a network that passes each batch to the network of its task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import paddle
from paddle import nn

from onion.checkpointing import rng
from onion.device import to_tensors
from onion.errors import CompositionError, DataError
from onion.items.forward import evaluating
from onion.items.gradient_machine import saved_network
from onion.validation import is_number

Loss: TypeAlias = Callable[[Any, dict[str, Any]], Any]
"""``loss(outputs, batch)``."""


class MultiHead(nn.Layer):
    """Networks over one encoder; TaskSampler writes the name of a batch's task into ``batch["task"]``.

        encoder = Encoder.from_pretrained(hub.fetch("minilm"))
        network = MultiHead(encoder, {"mrpc": Classifier(encoder, 2), "sts-b": Regressor(encoder)})

    Only the encoder and the head of the batch's task get gradients. Two tasks share a head if they are given the same
    network (PALM's ``task_reuse_tag``).

    Args:
        encoder: the encoder of all networks.
        networks: task -> a network with this encoder as ``encoder``, which is called with a batch and has
            ``loss(outputs, batch)``, as those of ``onion.tasks``.
        weights: task -> factor of its loss. Default: 1 for each.
        task_ids: task -> ERNIE's task id, which the encoder adds to every token. Default: the encoder's own for all.
        losses: task -> ``loss(outputs, batch)`` in place of its network's, as for a teacher. Default: the network's.

    Raises:
        CompositionError: a network has another encoder, no loss, or a head for vectors of another width; a task has no
            network or an unsuitable name; a weight or an id is out of range. The message names the task.
    """

    def __init__(
        self,
        encoder: nn.Layer,
        networks: Mapping[str, nn.Layer],
        *,
        weights: Mapping[str, float] | None = None,
        task_ids: Mapping[str, int] | None = None,
        losses: Mapping[str, Loss] | None = None,
    ) -> None:
        super().__init__()
        _check_networks(encoder, networks)
        _check_named("weights", weights or {}, networks)
        _check_named("task_ids", task_ids or {}, networks)
        _check_named("losses", losses or {}, networks)
        self._weights, self._ids, self._losses = dict(weights or {}), dict(task_ids or {}), dict(losses or {})
        _check_weights(self._weights)
        _check_ids(self._ids, encoder)
        self.encoder = encoder  # first, so that shared parameters are saved as the encoder's
        self.networks = nn.LayerDict(dict(networks))
        for name, network in networks.items():
            refuse_unfit(network, f"MultiHead: the network of the task {name!r}")

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks."""
        return tuple(self.networks.keys())

    def forward(self, batch: dict[str, Any]) -> Any:
        """Return the outputs of the task's network."""
        network = self._network(batch)
        task_id = self._ids.get(batch["task"])
        return network(batch if task_id is None else {**batch, "task_type_ids": task_id})

    def loss(self, outputs: Any, batch: dict[str, Any]) -> Any:
        """Return the loss of the task, times the task's weight."""
        loss = self._losses.get(batch["task"], self._network(batch).loss)(outputs, batch)
        weight = self._weights.get(batch["task"], 1.0)
        return loss if weight == 1.0 else loss * weight

    def loss_weight(self, batch: dict[str, Any]) -> float | None:
        """Return what the loss of the task's network is a mean over; None: its examples."""
        own = getattr(self._network(batch), "loss_weight", None)
        return None if own is None else own(batch)

    def decode(self, outputs: Any, batch: dict[str, Any]) -> Any:
        """Return the decoded outputs of the task's network."""
        return self._network(batch).decode(outputs, batch)

    def own_parameters(self, name: str) -> list[Any]:
        """Return the parameters of a task's network that are not the encoder's."""
        shared = {id(parameter) for parameter in self.encoder.parameters()}
        return [parameter for parameter in self.networks[name].parameters() if id(parameter) not in shared]

    def saved_task(self, name: str) -> dict[str, Any]:
        """Return parameters and buffers of one task's network, by their paths in it.

        ``onion.items.gradient_machine.load_network`` loads them into such a network.
        """
        return saved_network(self.networks[name])

    def _network(self, batch: Mapping[str, Any]) -> Any:
        if batch.get("task") not in self.networks:
            raise DataError(
                f"the batch is of the task {batch.get('task')!r}; the heads are for {', '.join(self.tasks)}. A "
                "TaskSampler writes the name into its batches."
            )
        return self.networks[batch["task"]]


def _check_networks(encoder: nn.Layer, networks: Mapping[str, nn.Layer]) -> None:
    if not isinstance(networks, Mapping):
        raise CompositionError(
            f"MultiHead takes its networks by task, {{'name': network, ...}}, not as a {type(networks).__name__}."
        )
    if not networks:
        raise CompositionError("MultiHead has no networks; give it one per task.")
    for name, network in networks.items():
        _check_name(name)
        if getattr(network, "encoder", None) is not encoder:
            raise CompositionError(
                f"MultiHead: the network of the task {name!r} ({type(network).__name__}) has another encoder; build "
                "all of them on the same encoder object."
            )
        if not callable(getattr(network, "loss", None)):
            raise CompositionError(f"MultiHead: the network of the task {name!r} has no method loss(outputs, batch).")


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise CompositionError(f"MultiHead: the name of a task must be a string, got {name!r}.")
    if not name or "." in name:
        raise CompositionError(f"MultiHead: {name!r} cannot be part of a parameter's path; leave out the '.'.")
    if name in vars(nn.LayerDict()):
        raise CompositionError(f"MultiHead: {name!r} is an attribute of Paddle's layers; choose another name.")


def _check_named(what: str, given: Mapping[str, Any], networks: Mapping[str, Any]) -> None:
    if not isinstance(given, Mapping):
        raise CompositionError(f"MultiHead: {what} is a {type(given).__name__}; give it by task, {{'name': ...}}.")
    for name in given:
        if name not in networks:
            raise CompositionError(f"MultiHead: {what} names the task {name!r}; the tasks are {', '.join(networks)}.")


def _check_weights(weights: Mapping[str, float]) -> None:
    for name, weight in weights.items():
        if not is_number(weight) or weight <= 0:
            raise CompositionError(f"MultiHead: the weight of the task {name!r} must be a number > 0, got {weight!r}.")


def _check_ids(ids: Mapping[str, int], encoder: nn.Layer) -> None:
    known: int = getattr(getattr(encoder, "config", None), "tasks", 0)
    for name, task_id in ids.items():
        if not isinstance(task_id, Integral) or not 0 <= task_id < known:
            told = f"task ids from 0 to {known - 1}" if known else "no task ids"
            raise CompositionError(f"MultiHead: the id of the task {name!r} is {task_id!r}; the encoder has {told}.")


# -- the width of vectors ---------------------------------------------------------------------------------------------


def refuse_unfit(network: nn.Layer, called: str) -> None:
    """Refuse a network with a linear layer over the encoder's vectors that expects another width.

    The network runs once, on a text of one token, in evaluation mode and without gradients; random generators are
    restored. Networks that cannot run on that (their batches have other fields, or more tokens) are not checked, nor
    are those whose encoder has no ``config.hidden_size``.

    Args:
        network: with its encoder as ``encoder``.
        called: its name in the message.

    Raises:
        CompositionError: there is such a layer; the message has both widths.
    """
    width = getattr(getattr(network.encoder, "config", None), "hidden_size", None)
    if width is None:
        return
    own = {id(layer) for layer in network.encoder.sublayers(include_self=True)}
    linear = [
        (path, layer)
        for path, layer in network.named_sublayers()
        if isinstance(layer, nn.Linear) and id(layer) not in own and layer.weight.shape[0] != width
    ]
    found: list[str] = []
    hooks = [layer.register_forward_pre_hook(_noting(path, width, found)) for path, layer in linear]
    try:
        if hooks:
            _run_once(network)
    finally:
        for hook in hooks:
            hook.remove()
    if found:
        wanted = dict(linear)[found[0]].weight.shape[0]
        raise CompositionError(
            f"{called} does not fit the encoder: {found[0]} takes vectors of size {wanted}, and the encoder's have "
            f"{width}."
        )


def _noting(path: str, width: int, found: list[str]) -> Callable[[nn.Layer, tuple[Any, ...]], None]:
    """Return a hook that notes a layer whose input is as wide as the encoder's vectors."""

    def note(layer: nn.Layer, inputs: tuple[Any, ...]) -> None:
        if inputs and list(inputs[0].shape)[-1:] == [width]:
            found.append(path)

    return note


def _run_once(network: nn.Layer) -> None:
    """Run a network on one token, ignoring its errors."""
    one = np.ones((1, 1), np.int64)
    batch = to_tensors({"input_ids": one, "token_type_ids": one * 0, "lengths": [1]})
    drawn = rng.capture()
    with evaluating(network), paddle.no_grad(), suppress(Exception):
        network(batch)
    rng.restore(drawn)
