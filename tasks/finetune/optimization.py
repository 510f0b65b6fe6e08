"""The optimizer of fine-tuning: AdamW, linear warm-up and decay, gradient clipping, layer-wise rates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import paddle
from paddle import nn

from onion.errors import CompositionError
from onion.schedules import Length, Passes, cosine, linear_warmup_and_decay, palm_linear, polynomial
from onion.tasks.finetune.clipping import ClipGradByGlobalNorm
from onion.tasks.finetune.settings import TrainingSettings
from onion.tasks.networks.multi_head import MultiHead

LAYER = re.compile(r"(?:^|\.)(?:encoder\.layers|layer)\.(\d+)\.")  # the latter: XLNet's
SCHEDULES: dict[str, Callable[..., Any]] = {
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
    *,
    warmup_steps: int | None = None,
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
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
        warmup_steps: the steps in which the rate rises, whatever ``warmup_ratio`` is. Default: by the ratio.
        betas: the decay of Adam's first and of its second moment. Default 0.9 and 0.999.
        epsilon: of Adam's denominator. Default 1e-8.

    Raises:
        CompositionError: ``warmup_ratio`` is not from 0 to 1, or ``layerwise_decay`` is out of range, or no parameter
            belongs to a layer.
    """
    if layerwise_decay is not None:
        set_layerwise_rates(network, layerwise_decay)
    rate = SCHEDULES[schedule](learning_rate, total_steps, warmup_ratio, warmup_steps=warmup_steps)
    return adamw(network, rate, weight_decay, max_grad_norm, betas=betas, epsilon=epsilon)


def adamw(
    network: nn.Layer,
    schedule: Any,
    weight_decay: float = 0.01,
    max_grad_norm: float = 1.0,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    epsilon: float = 1e-8,
) -> paddle.optimizer.AdamW:
    """Return AdamW with clipping and without decay of biases and LayerNorms; see :func:`fine_tuning_optimizer`.

    Args:
        network: whose parameters are optimized.
        schedule: the learning rate, or one of ``onion.schedules``.
        weight_decay: decoupled; not applied to biases and LayerNorms. Default 0.01.
        max_grad_norm: the gradients are clipped to this global norm. Default 1.0.
        betas: the decay of Adam's first and of its second moment. Default 0.9 and 0.999.
        epsilon: of Adam's denominator. Default 1e-8.
    """
    decayed = {parameter.name for path, parameter in network.named_parameters() if is_decayed(path)}
    return paddle.optimizer.AdamW(
        learning_rate=schedule,
        beta1=betas[0],
        beta2=betas[1],
        epsilon=epsilon,
        parameters=network.parameters(),
        weight_decay=float(weight_decay),  # Paddle 2.6 refuses integers
        apply_decay_param_fun=decayed.__contains__,
        grad_clip=ClipGradByGlobalNorm(max_grad_norm),
    )


def optimizer_for(network: nn.Layer, settings: TrainingSettings, batches: int) -> paddle.optimizer.AdamW:
    """Return the optimizer that the settings of a training ask for whose passes have so many batches."""
    return fine_tuning_optimizer(
        network,
        settings.learning_rate,
        settings.max_steps or Passes(settings.passes, batches),
        settings.warmup_ratio,
        settings.weight_decay,
        settings.max_grad_norm,
        settings.layerwise_decay,
        settings.schedule,
        warmup_steps=settings.warmup_steps,
        betas=(settings.adam_beta1, settings.adam_beta2),
        epsilon=settings.adam_epsilon,
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
