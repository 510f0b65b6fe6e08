"""LoRA for encoders (Hu et al. 2021): low-rank changes of some matrices are trained, and the encoder is frozen.

add_lora(network, rank=8, alpha=16)      # a task's network, or an encoder; then train it
merge_lora(network)                      # the same results without adapters, at full speed
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import attrs
import paddle
from paddle import nn

from onion.errors import CompositionError
from onion.messages import listed
from onion.models.adapter import Adapter
from onion.models.merging import ENDING
from onion.models.pretrained_encoder import PretrainedEncoder
from onion.models.wrapped import WrappedNetwork
from onion.validation import is_number, is_whole

POOLER = "pooler."
"""What the paths of the pooler's parameters begin with in an encoder. It is trained: it belongs to the head."""

log = logging.getLogger("onion")


def add_lora(
    network: nn.Layer,
    rank: int = 8,
    alpha: float | None = None,
    dropout: float = 0.0,
    targets: str | Sequence[str] = (),
) -> None:
    """Freeze an encoder, except for its pooler, and add adapters to its layers, which are trained instead.

    The network's outputs stay the same until the adapters are trained. ``GradientMachine(TrainedPart(network))`` keeps
    the frozen parameters out of checkpoints.

    Args:
        network: an encoder, or a network with one as ``encoder``.
        rank: of the adapters. Default 8.
        alpha: what an adapter adds is multiplied by ``alpha / rank``. Default: twice the rank.
        dropout: of the adapters' inputs; with it, the fused layers for the CPU are not used in training. Default 0.
        targets: names of linear layers, or globs: ``q_proj``, ``linear?``, ``*``. Default: those of query and value, as
            in the paper.

    Raises:
        CompositionError: there is no encoder, it has adapters, a target is no linear layer of it, or a number is out of
            range.
    """
    encoder = _encoder_of(network)
    if _adapters(encoder):
        raise CompositionError("add_lora: the encoder has adapters already; merge_lora(network) merges them first.")
    _check_numbers(rank, alpha, dropout)
    alpha = 2 * rank if alpha is None else alpha
    chosen = _chosen(encoder, (targets,) if isinstance(targets, str) else targets or encoder.lora_targets)
    for matrix in chosen:
        if rank > min(matrix.shape):
            raise CompositionError(f"add_lora: rank {rank} is more than {matrix.target} has, {matrix.shape}.")
    for parameter in _frozen(encoder):
        parameter.stop_gradient = True
    for matrix in chosen:
        adapter = Adapter(*matrix.shape, rank, alpha, dropout)
        adapter.training = matrix.layer.training
        setattr(matrix.layer, matrix.name + ENDING, adapter)
    trained = sum(parameter.size for parameter in network.parameters() if not parameter.stop_gradient)
    log.info("LoRA: %d of %d parameters are trained", trained, sum(each.size for each in network.parameters()))


def merge_lora(network: nn.Layer) -> None:
    """Add the change of each adapter to its matrix, and remove the adapters; all parameters are trainable again.

    Args:
        network: an encoder, or a network with one as ``encoder``.

    Raises:
        CompositionError: there is no encoder.
    """
    encoder = _encoder_of(network)
    with paddle.no_grad():
        for matrix in _matrices(encoder):
            if matrix.adapter is not None:
                matrix.parameter.set_value(matrix.parameter + matrix.adapter.change())
                setattr(matrix.layer, matrix.name + ENDING, None)
    for parameter in encoder.parameters():
        parameter.stop_gradient = False


class FrozenPart:
    """What :func:`add_lora` has frozen of a network, for ``saved_network`` and ``load_network``.

    Args:
        network: has adapters in its ``encoder``.
    """

    def __init__(self, network: nn.Layer) -> None:
        self.network = network

    def state_dict(self) -> dict[str, paddle.Tensor]:
        """Return the frozen parameters by path; one with several paths is included once, by its first.

        Raises:
            CompositionError: one of them is trained, by an Unfreeze, and would not be saved.
        """
        frozen = {id(parameter) for parameter in _frozen(_encoder_of(self.network))}
        found = {path: each for path, each in self.network.named_parameters() if id(each) in frozen}
        trained = [path for path, parameter in found.items() if not parameter.stop_gradient]
        if trained:
            raise CompositionError(
                f"{trained[0]} is trained, but add_lora has frozen it, so checkpoints of a TrainedPart lack it; leave "
                "out the Unfreeze, or give the items the network itself."
            )
        return found


class TrainedPart(WrappedNetwork):
    """A network whose checkpoints have what is trained: adapters, pooler and head, but not the frozen encoder.

        GradientMachine(TrainedPart(network)), MovingAverage(TrainedPart(network))

    A resumed run needs a network with the same :class:`FrozenPart`.

    Args:
        network: a layer that is called with a batch, with adapters in its ``encoder``.
    """

    def state_dict(self) -> dict[str, Any]:
        """Return parameters and buffers that are not frozen, by all their paths."""
        frozen = {id(parameter) for parameter in FrozenPart(self.network).state_dict().values()}
        return {path: each for path, each in self.network.state_dict().items() if id(each) not in frozen}


@attrs.frozen(eq=False)
class _Matrix:
    """A parameter that may have an adapter.

    Attributes:
        target: the name to choose it by: that of its linear layer, or its own.
        layer: whose parameter it is.
        name: of the parameter in the layer.
    """

    target: str
    layer: nn.Layer
    name: str

    @property
    def parameter(self) -> paddle.Tensor:
        """The matrix."""
        return getattr(self.layer, self.name)

    @property
    def shape(self) -> tuple[int, int]:
        """(in, out)."""
        width_in, width_out = self.parameter.shape
        return width_in, width_out

    @property
    def adapter(self) -> Adapter | None:
        """Its adapter, if it has one."""
        adapter: Adapter | None = getattr(self.layer, self.name + ENDING)
        return adapter


def _check_numbers(rank: object, alpha: object, dropout: object) -> None:
    if not (is_whole(rank) and rank >= 1):
        raise CompositionError(f"add_lora: rank must be an integer >= 1, got {rank!r}.")
    if alpha is not None and not (is_number(alpha) and alpha > 0):
        raise CompositionError(f"add_lora: alpha must be a number > 0, got {alpha!r}.")
    if not (is_number(dropout) and 0 <= dropout < 1):
        raise CompositionError(f"add_lora: dropout must be a number >= 0 and < 1, got {dropout!r}.")


def _encoder_of(network: nn.Layer) -> PretrainedEncoder:
    encoder = network if isinstance(network, PretrainedEncoder) else getattr(network, "encoder", None)
    if not isinstance(encoder, PretrainedEncoder):
        raise CompositionError(
            f"LoRA is for an encoder, or a network with one as encoder, not {type(network).__name__}."
        )
    return encoder


def _matrices(encoder: PretrainedEncoder) -> Iterator[_Matrix]:
    """Yield the matrices of the encoder's layers that may have adapters."""
    for path, layer in encoder.named_sublayers():
        if path.startswith(f"{encoder.layers_path}."):
            for name in layer._parameters:
                if hasattr(layer, name + ENDING):
                    yield _Matrix(path.rpartition(".")[2] if name == "weight" else name, layer, name)


def _chosen(encoder: PretrainedEncoder, targets: Sequence[str]) -> list[_Matrix]:
    matrices = list(_matrices(encoder))
    known = dict.fromkeys(matrix.target for matrix in matrices)
    for target in targets:
        if not any(fnmatchcase(name, target) for name in known):
            raise CompositionError(
                f"LoRA: no linear layer of the encoder is called {target!r}; there are {listed(known)}."
            )
    return [matrix for matrix in matrices if any(fnmatchcase(matrix.target, target) for target in targets)]


def _adapters(encoder: PretrainedEncoder) -> list[Adapter]:
    return [matrix.adapter for matrix in _matrices(encoder) if matrix.adapter is not None]


def _frozen(encoder: PretrainedEncoder) -> list[paddle.Tensor]:
    """Return the parameters that LoRA freezes: all but those of adapters and pooler."""
    trained = {id(parameter) for adapter in _adapters(encoder) for parameter in adapter.parameters()}
    return [
        parameter
        for path, parameter in encoder.named_parameters()
        if id(parameter) not in trained and not path.startswith(POOLER)
    ]
