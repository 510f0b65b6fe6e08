"""One encoder, several tasks: a network that hands each batch to the network of its task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, TypeAlias

from paddle import nn

from onion.errors import CompositionError, DataError
from onion.items.gradient_machine import saved_network
from onion.tasks.networks.width_check import refuse_unfit
from onion.validation import is_number

Loss: TypeAlias = Callable[[Any, dict[str, Any]], Any]
"""``loss(outputs, batch)``."""


class MultiHead(nn.Layer):
    """Networks over one encoder; a batch goes to that of its task, ``batch["task"]``, as a TaskSampler writes it there.

        encoder = Encoder.from_pretrained(hub.fetch("minilm"))
        network = MultiHead(encoder, {"mrpc": Classifier(encoder, 2), "sts-b": Regressor(encoder)})

    Only the encoder and the head of the batch's task get gradients. Two tasks share a head by naming one network twice
    (PALM's ``task_reuse_tag``).

    Args:
        encoder: what the networks have in common, one object.
        networks: task -> a network that holds this encoder as ``encoder``, is called with a batch, and has
            ``loss(outputs, batch)``, as ``onion.tasks`` has them.
        weights: task -> what its loss is multiplied by. Default: 1 for each.
        task_ids: task -> ERNIE's id of it, which the encoder adds to every token. Default: the encoder's own for all.
        losses: task -> ``loss(outputs, batch)`` in place of its network's, as for a teacher. Default: the network's.

    Raises:
        CompositionError: a network holds another encoder, has no loss, or takes vectors of another width than the
            encoder's; a task has no network, or a name that does not do; a number does not do. The task is named.
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
        self.encoder = encoder  # comes first, so that what is shared is saved as the encoder's
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

    def decode(self, outputs: Any, batch: dict[str, Any]) -> Any:
        """Return what the task's network makes of the outputs."""
        return self._network(batch).decode(outputs, batch)

    def own_parameters(self, name: str) -> list[Any]:
        """Return the parameters of a task's network that are not the encoder's."""
        shared = {id(parameter) for parameter in self.encoder.parameters()}
        return [parameter for parameter in self.networks[name].parameters() if id(parameter) not in shared]

    def saved_task(self, name: str) -> dict[str, Any]:
        """Return parameters and buffers of one task's network alone, by their paths in it.

        ``onion.items.gradient_machine.load_network`` puts them into such a network.
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
        raise CompositionError("MultiHead has no networks; give it one a task.")
    for name, network in networks.items():
        _check_name(name)
        if getattr(network, "encoder", None) is not encoder:
            raise CompositionError(
                f"MultiHead: the network of the task {name!r} ({type(network).__name__}) is over another encoder; make "
                "all of them over the one object."
            )
        if not callable(getattr(network, "loss", None)):
            raise CompositionError(f"MultiHead: the network of the task {name!r} has no method loss(outputs, batch).")


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise CompositionError(f"MultiHead: the name of a task is a text, and {name!r} is a {type(name).__name__}.")
    if not name or "." in name:
        raise CompositionError(f"MultiHead: {name!r} cannot be part of a parameter's path; leave the '.' out.")
    if name in vars(nn.LayerDict()):
        raise CompositionError(f"MultiHead: Paddle keeps a setting of its own as {name!r}; give the task another name.")


def _check_named(what: str, given: Mapping[str, Any], networks: Mapping[str, Any]) -> None:
    if not isinstance(given, Mapping):
        raise CompositionError(f"MultiHead: {what} is a {type(given).__name__}; give it by task, {{'name': ...}}.")
    for name in given:
        if name not in networks:
            raise CompositionError(f"MultiHead: {what} names the task {name!r}; there are {', '.join(networks)}.")


def _check_weights(weights: Mapping[str, float]) -> None:
    for name, weight in weights.items():
        if not is_number(weight) or weight <= 0:
            raise CompositionError(f"MultiHead: the weight of the task {name!r} is {weight!r}; it is a number above 0.")


def _check_ids(ids: Mapping[str, int], encoder: nn.Layer) -> None:
    known: int = getattr(getattr(encoder, "config", None), "tasks", 0)
    for name, task_id in ids.items():
        if not isinstance(task_id, Integral) or not 0 <= task_id < known:
            told = f"ids of tasks from 0 to {known - 1}" if known else "no ids of tasks"
            raise CompositionError(f"MultiHead: the id of the task {name!r} is {task_id!r}; the encoder has {told}.")
