"""The recipe of ERNIE tiny: a few layers of the teacher, taught by its logits, hidden states and attention.

Baidu published that ERNIE tiny has three layers and was distilled in the Transformer's and in the prediction layer; the
layers that are compared, the losses and the temperature are choices of this project: soft targets at temperature 1,
the mean squared error of the hidden states at evenly spaced layers of the teacher, whose copies the student begins
with, and the attention of the last layers as in MiniLM. The student is as wide as its teacher, so no map stands between
them.
"""

from __future__ import annotations

from paddle import nn

from onion import Forward, GradientMachine, OutputsToBatch, RunnerItem
from onion.errors import DataError
from onion.models.hidden_states import WithHiddenStates
from onion.models.pretrained_encoder import PretrainedEncoder
from onion.tasks.networks.distillation import (
    TEACHER,
    AttentionDistribution,
    Distillation,
    HiddenStatesLoss,
    SoftTargets,
    layer_map,
    with_layers,
)
from onion.tasks.students.known_labels import OfKnownLabels
from onion.tasks.students.settings import DistillSettings


def tiny_encoder(teacher: PretrainedEncoder, layers: int) -> PretrainedEncoder:
    """Return an encoder of copies of some layers of the teacher's; see :func:`layer_map`.

    Raises:
        DataError: the teacher has fewer layers.
    """
    there = teacher.config.num_hidden_layers
    if layers > there:
        raise DataError(f"--layers {layers}: the teacher has {there}; choose at most as many")
    return with_layers(teacher, list(layer_map(layers, there).values()))


def teaching(teacher: nn.Layer) -> list[RunnerItem]:
    """Return the rings that put the teacher's hidden states into each batch."""
    return [Forward(WithHiddenStates(teacher)), OutputsToBatch(TEACHER)]


def machine(student: nn.Layer, teacher: nn.Layer, settings: DistillSettings) -> GradientMachine:
    """Return the gradient machine of a tiny student."""
    weight, last = settings.teacher_weight, settings.layers
    layers = layer_map(last, teacher.encoder.config.num_hidden_layers)
    losses = (
        SoftTargets(settings.temperature, weight=weight),
        HiddenStatesLoss(layers, weight=weight),
        AttentionDistribution({last: layers[last]}, weight=weight),
    )
    loss = Distillation(OfKnownLabels(student), teacher, *losses, labels=1 - weight)
    return GradientMachine(WithHiddenStates(student), loss)
