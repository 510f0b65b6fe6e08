"""The optimizer of fine-tuning: AdamW, linear warm-up and decay, clipping."""

from __future__ import annotations

import paddle
from paddle import nn


def linear_warmup_and_decay(rate: float, steps: int, warmup: float = 0.1) -> paddle.optimizer.lr.LambdaDecay:
    """Return a schedule that rises from 0 to ``rate`` and falls back to 0, both in a straight line and without a jump.

    Args:
        rate: the highest learning rate.
        steps: of the whole training.
        warmup: the share of the steps in which it rises. Default 0.1.
    """
    rising = round(steps * warmup)

    def factor(step: int) -> float:
        if step < rising:
            return step / rising
        return max(0.0, (steps - step) / max(1, steps - rising))

    return paddle.optimizer.lr.LambdaDecay(rate, factor)


def fine_tuning_optimizer(
    network: nn.Layer, rate: float, steps: int, warmup: float = 0.1, weight_decay: float = 0.01, clip: float = 1.0
) -> paddle.optimizer.AdamW:
    """Return AdamW as BERT is fine-tuned with it (Devlin et al. 2018, appendix A.3; Loshchilov and Hutter 2017).

    Args:
        network: whose parameters it moves.
        rate: the highest learning rate.
        steps: of the whole training.
        warmup: the share of the steps in which the rate rises. Default 0.1.
        weight_decay: decoupled; biases and LayerNorms are left out. Default 0.01.
        clip: the largest global norm of the gradients. Default 1.0.
    """
    decayed = {parameter.name for path, parameter in network.named_parameters() if is_decayed(path)}
    return paddle.optimizer.AdamW(
        learning_rate=linear_warmup_and_decay(rate, steps, warmup),
        parameters=network.parameters(),
        weight_decay=weight_decay,
        apply_decay_param_fun=decayed.__contains__,
        grad_clip=nn.ClipGradByGlobalNorm(clip),
    )


def is_decayed(path: str) -> bool:
    """Tell from a parameter's path whether weight decay applies: not for biases and LayerNorms."""
    *layers, kind = path.split(".")
    return not kind.endswith("bias") and not (layers and "norm" in layers[-1])
