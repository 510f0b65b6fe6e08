"""The optimizer of fine-tuning: AdamW, linear warm-up and decay, gradient clipping, layer-wise rates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import paddle
from paddle import nn
from paddle.nn.clip import _squared_l2_norm

from onion.errors import CompositionError
from onion.schedules import Length, cosine, linear_warmup_and_decay, palm_linear, polynomial
from onion.tasks.finetune.settings import TrainingSettings
from onion.tasks.networks.multi_head import MultiHead

Pair: TypeAlias = tuple[paddle.Tensor, paddle.Tensor | None]
"""A parameter and its gradient."""

LAYER = re.compile(r"(?:^|\.)(?:encoder\.layers|layer)\.(\d+)\.")  # the latter: XLNet's
SCHEDULES: dict[str, Callable[[float, Length, float], Any]] = {
    "linear": linear_warmup_and_decay,
    "cosine": cosine,
    "constant": partial(polynomial, power=0.0),
    "palm": palm_linear,
}
"""The schedules by name; each rises in a straight line before it does what its name says."""

EMBEDDINGS = re.compile(r"(?:^|\.)(?:embeddings|embeddings_project|word_embedding)\.")


def fine_tuning_optimizer(
    network: nn.Layer,
    learning_rate: float,
    total_steps: Length,
    warmup_ratio: float = 0.1,
    weight_decay: float = 0.01,
    max_grad_norm: float = 1.0,
    layerwise_decay: float | None = None,
    schedule: str = "linear",
) -> paddle.optimizer.AdamW:
    """Return AdamW as used to fine-tune BERT (Devlin et al. 2018, appendix A.3; Loshchilov and Hutter 2017).

    Args:
        network: whose parameters are optimized.
        learning_rate: the highest learning rate.
        total_steps: updates of the whole training, or ``onion.schedules.Passes``.
        warmup_ratio: the share of the steps in which the rate rises from 0. Default 0.1.
        weight_decay: decoupled; not applied to biases and LayerNorms. Default 0.01.
        max_grad_norm: the gradients are clipped to this global norm. Default 1.0.
        layerwise_decay: see ``set_layerwise_rates``; 0.8 is common. Default: one rate for all layers.
        schedule: a name in SCHEDULES. Default ``linear``: warm-up, then a straight line to 0.

    Raises:
        CompositionError: ``warmup_ratio`` is not from 0 to 1, or ``layerwise_decay`` is out of range, or no parameter
            belongs to a layer.
    """
    if layerwise_decay is not None:
        set_layerwise_rates(network, layerwise_decay)
    decayed = {parameter.name for path, parameter in network.named_parameters() if is_decayed(path)}
    return paddle.optimizer.AdamW(
        learning_rate=SCHEDULES[schedule](learning_rate, total_steps, warmup_ratio),
        parameters=network.parameters(),
        weight_decay=float(weight_decay),  # Paddle 2.6 refuses integers
        apply_decay_param_fun=decayed.__contains__,
        grad_clip=ClipGradByGlobalNorm(max_grad_norm),
    )


def optimizer_for(network: nn.Layer, settings: TrainingSettings, total_steps: Length) -> paddle.optimizer.AdamW:
    """Return the optimizer that the settings of a training ask for."""
    return fine_tuning_optimizer(
        network,
        settings.learning_rate,
        total_steps,
        settings.warmup_ratio,
        settings.weight_decay,
        settings.max_grad_norm,
        settings.layerwise_decay,
        settings.schedule,
    )


def is_decayed(path: str) -> bool:
    """Tell from a parameter's path whether weight decay applies: not to biases and LayerNorms."""
    *layers, kind = path.split(".")
    return not kind.endswith("bias") and not (layers and "norm" in layers[-1])


def set_layerwise_rates(network: nn.Layer, decay: float) -> None:
    """Make every optimizer use ``rate * decay ** depth`` for a parameter, by the depth of its layer below the head.

    Head and pooler have depth 0, the encoder's last layer 1, its first the number of layers, the embeddings one more
    (Clark et al. 2020, ELECTRA; Sun et al. 2019). The factors are stored in the parameters (``optimize_attr``), as
    PaddleNLP's ``layerwise_lr_decay`` does, until they are set again; 1 removes them. They depend on the paths only, so
    a resumed run has the same. Parameter groups are no alternative, since Paddle clips each group by its own norm;
    AdamW's ``lr_ratio`` does not work on the CPU.

    Args:
        network: a head over an encoder of ours: paths like ``encoder.encoder.layers.0.linear1.weight``.
        decay: the factor from a layer to the one below it; more than 0 and at most 1.

    Raises:
        CompositionError: ``decay`` is out of range, or no parameter belongs to a layer.
    """
    if not 0 < decay <= 1:
        raise CompositionError(f"layerwise_decay={decay} is not in (0, 1]; 0.8 is common.")
    parameters = dict(network.named_parameters())
    layers = 1 + max((int(found[1]) for path in parameters if (found := LAYER.search(path))), default=-1)
    if layers == 0:
        raise CompositionError(
            f"{type(network).__name__} has no parameter in encoder.layers.N, so layerwise_decay has no depth to go by."
        )
    for path, parameter in parameters.items():
        parameter.optimize_attr["learning_rate"] = decay ** depth(path, layers)


def set_head_rates(network: MultiHead, factors: Mapping[str, float]) -> None:
    """Let every optimizer move the head of a task at the general rate times a factor; see ``set_layerwise_rates``.

    Args:
        network: has the heads.
        factors: task -> the factor.
    """
    for name, factor in factors.items():
        for parameter in network.own_parameters(name):
            parameter.optimize_attr["learning_rate"] *= factor


def depth(path: str, layers: int) -> int:
    """Return the depth of a parameter below the head, in an encoder of ``layers`` layers."""
    if layer := LAYER.search(path):
        return layers - int(layer[1])
    return layers + 1 if EMBEDDINGS.search(path) else 0


class ClipGradByGlobalNorm(nn.ClipGradByGlobalNorm):
    """Scale all gradients by ``clip_norm / norm`` where their common norm is larger (Pascanu et al. 2013).

    Bit-identical to ``paddle.nn.ClipGradByGlobalNorm``. On the CPU, float32 gradients are scaled in place,
    and only if their norm is too large; Paddle multiplies each by a one-element tensor into new memory (12 of 17
    milliseconds for MiniLM). So ``parameter.grad`` is clipped after the step. On other devices Paddle's method is used.

    Args:
        clip_norm: the largest norm that is not clipped.
    """

    @paddle.no_grad()  # type: ignore[untyped-decorator]  # Paddle is untyped
    def _dygraph_clip(self, params_grads: Sequence[Pair]) -> Sequence[Pair]:
        gradients = [each for parameter, each in params_grads if each is not None and _is_clipped(parameter)]
        if not (gradients and _can_be_scaled(gradients)):
            clipped: Sequence[Pair] = super()._dygraph_clip(params_grads)
            return clipped
        norm = paddle.sqrt(paddle.stack([_squared_l2_norm(each) for each in gradients]).sum())
        most = paddle.full([1], self.clip_norm)
        scale = paddle.divide(most, paddle.maximum(norm, most)).item()
        if scale != 1:  # also where it is not a number
            for gradient in gradients:
                gradient.scale_(scale)
        return [pair for pair in params_grads if pair[1] is not None]


def _is_clipped(parameter: paddle.Tensor) -> bool:
    """Tell whether a parameter is clipped; ``ParamAttr(need_clip=False)`` excludes it."""
    return getattr(parameter, "need_clip", True) is not False


def _can_be_scaled(gradients: Sequence[paddle.Tensor]) -> bool:
    """Tell whether each is a dense float32 tensor on the CPU with memory of its own."""
    return len({each.data_ptr() for each in gradients}) == len(gradients) and all(
        each.is_dense() and each.place.is_cpu_place() and each.dtype == paddle.float32 and each.is_contiguous()
        for each in gradients
    )
