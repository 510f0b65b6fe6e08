"""Distillation: losses by which a small network, the student, learns from a larger one, the teacher.

    loss = Distillation(student, teacher, SoftTargets(temperature=2.0), HiddenStatesLoss({1: 3, 2: 6}, weight=0.1))
    Runner(
        DataProvider(...),
        Forward(WithHiddenStates(teacher)), OutputsToBatch("teacher"),
        ParameterUpdater(optimizer),
        GradientMachine(WithHiddenStates(student), loss),
    )

Both networks read the same batch, so their tokens are the same; items that split batches (Accumulate,
SplitOnMemoryError) go outside the teacher. Layers count from 1; 0 is the embeddings.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import paddle
from paddle import nn
from paddle.nn import functional

from onion.errors import CompositionError
from onion.models.auto import load_encoder, new_encoder
from onion.models.hidden_states import HiddenStates
from onion.models.packing import Packing
from onion.models.pretrained_config import PretrainedConfig
from onion.models.pretrained_encoder import PretrainedEncoder, arrays_of
from onion.models.tokenizer import Tokenizer

TEACHER = "teacher"
"""The field of the batch that holds the teacher's :class:`HiddenStates`."""


class Distillation:
    """The loss of a student: a weighted sum of the loss of the labels and of differences from the teacher.

    Args:
        student: has ``loss(outputs, batch)`` for the labels.
        teacher: its config is compared with the student's; it is not trained.
        losses: what the student learns from the teacher.
        labels: the weight of the labels' loss. Default 1; with 0, batches need no labels.

    Raises:
        CompositionError: a weight is negative, or a loss needs something that a network does not have.
    """

    def __init__(self, student: nn.Layer, teacher: nn.Layer, *losses: TeacherLoss, labels: float = 1.0) -> None:
        _check_weight("labels", labels)
        if not labels and not any(loss.weight for loss in losses):
            raise CompositionError("Distillation: every weight is 0, so there is nothing to learn; set at least one.")
        _same("vocab_size", self, student.encoder.config, teacher.encoder.config)
        for loss in losses:
            _check_weight(type(loss).__name__, loss.weight)
            loss.check(student.encoder.config, teacher.encoder.config)
        self._labels, self._student_loss, self._losses = labels, student.loss, losses

    def __call__(self, student: HiddenStates, batch: Mapping[str, Any]) -> paddle.Tensor:
        """Return the scalar loss of the outputs of ``WithHiddenStates(student)`` and a batch with ``teacher``."""
        parts = [loss.weight * loss(student, batch[TEACHER]) for loss in self._losses if loss.weight]
        if self._labels:
            parts.append(self._labels * self._student_loss(student.outputs, batch))
        return sum(parts)


@attrs.frozen
class TeacherLoss(ABC):
    """The difference between a student and its teacher in one respect."""

    weight: float = attrs.field(default=1.0, kw_only=True)

    @abstractmethod
    def __call__(self, student: HiddenStates, teacher: HiddenStates) -> paddle.Tensor:
        """Return the loss of a batch, a scalar, not multiplied by the weight."""

    def check(self, student: PretrainedConfig, teacher: PretrainedConfig) -> None:  # noqa: B027  optional
        """Raise CompositionError if networks over such encoders cannot be compared."""


@attrs.frozen
class SoftTargets(TeacherLoss):
    """The teacher's softened probabilities of the labels (Hinton, Vinyals and Dean 2015, section 2).

    The Kullback-Leibler divergence of the student's distribution from the teacher's, both of ``logits / temperature``,
    times ``temperature ** 2``, so that the size of gradients does not depend on the temperature; the mean over the
    rows. It is the cross-entropy of the paper up to a constant, and 0 where both agree.

    Attributes:
        temperature: above 0; the higher, the more weight unlikely labels get. Default 2.
    """

    temperature: float = 2.0

    def check(self, student: PretrainedConfig, teacher: PretrainedConfig) -> None:
        """Check the temperature."""
        if not self.temperature > 0:
            raise CompositionError(f"SoftTargets: temperature must be a number > 0, got {self.temperature!r}.")

    def __call__(self, student: HiddenStates, teacher: HiddenStates) -> paddle.Tensor:
        """Return the loss of logits ``[rows, labels]``."""
        ours, theirs = student.outputs / self.temperature, teacher.outputs / self.temperature
        return self.temperature**2 * divergence(theirs, ours).mean()


class SoftTargetsLoss:
    """The loss of a network that learns from labels and from the logits of a teacher, ``batch["teacher"]``.

        Forward(teacher), OutputsToBatch("teacher"), ..., GradientMachine(student, SoftTargetsLoss(student))

    Args:
        network: has ``loss(outputs, batch)`` for the labels, and logits as outputs.
        weight: the share of the teacher in the loss, from 0 to 1. Default 0.5.
        temperature: see :class:`SoftTargets`. Default 2.
    """

    def __init__(self, network: nn.Layer, weight: float = 0.5, temperature: float = 2.0) -> None:
        self._network, self._weight, self._soft = network, weight, SoftTargets(temperature)

    def __call__(self, outputs: paddle.Tensor, batch: Mapping[str, Any]) -> paddle.Tensor:
        """Return the scalar loss of logits ``[rows, labels]``."""
        soft = self._soft(HiddenStates(outputs), HiddenStates(batch[TEACHER]))
        return (1 - self._weight) * self._network.loss(outputs, batch) + self._weight * soft


@attrs.frozen
class LayerLoss(TeacherLoss):
    """A loss that compares layers, and takes the mean over them.

    Attributes:
        layers: the student's layer -> the teacher's layer that it learns from.
    """

    layers: Mapping[int, int]
    lowest = 1

    def check(self, student: PretrainedConfig, teacher: PretrainedConfig) -> None:
        """Check that the layers exist."""
        what = type(self).__name__
        if not self.layers:
            raise CompositionError(f"{what} has no layers; give it some: {what}({{1: 3, 2: 6}}).")
        for whose, config, chosen in (("student", student, self.layers), ("teacher", teacher, self.layers.values())):
            for layer in chosen:
                if layer not in range(self.lowest, config.num_hidden_layers + 1):
                    raise CompositionError(
                        f"{what}: the {whose} has no layer {layer!r}, but {self.lowest} to {config.num_hidden_layers}."
                    )

    def __call__(self, student: HiddenStates, teacher: HiddenStates) -> paddle.Tensor:
        """Return the mean of the layers' losses."""
        each = [self.compare(student, ours, teacher, theirs) for ours, theirs in self.layers.items()]
        return sum(each) / len(each)

    @abstractmethod
    def compare(self, student: HiddenStates, ours: int, teacher: HiddenStates, theirs: int) -> paddle.Tensor:
        """Return the loss of one layer."""


class HiddenStatesLoss(LayerLoss):
    """Hidden states, by the mean squared error over all tokens (TinyBERT, Jiao et al. 2020, equations 8 and 9).

    Student and teacher must have the same width, since there is no trained projection between them. Layer 0 is the
    embeddings.
    """

    lowest = 0

    def check(self, student: PretrainedConfig, teacher: PretrainedConfig) -> None:
        """Check that the layers exist and have the same width."""
        super().check(student, teacher)
        _same("hidden_size", self, student, teacher)

    def compare(self, student: HiddenStates, ours: int, teacher: HiddenStates, theirs: int) -> paddle.Tensor:
        """Return the mean squared error of ``[tokens, hidden]``."""
        return functional.mse_loss(student.hidden[ours], teacher.hidden[theirs])


@attrs.frozen
class EveryHiddenState(TeacherLoss):
    """The embeddings and all layers of the student: the sum of their mean squared errors, as in DynaBERT.

    The teacher's layers are evenly spaced up to the last (:func:`layer_map`); both depths may change from batch to
    batch, and with fewer layers the sum has fewer terms.
    """

    def check(self, student: PretrainedConfig, teacher: PretrainedConfig) -> None:
        """Check that both have the same width, and the student at most as many layers."""
        _same("hidden_size", self, student, teacher)
        ours, theirs = student.num_hidden_layers, teacher.num_hidden_layers
        if ours > theirs:
            raise CompositionError(
                f"EveryHiddenState: the student has {ours} layers, more than the teacher, which has {theirs}."
            )

    def __call__(self, student: HiddenStates, teacher: HiddenStates) -> paddle.Tensor:
        """Return the sum of the mean squared errors of ``[tokens, hidden]``."""
        layers = {0: 0, **layer_map(len(student.hidden) - 1, len(teacher.hidden) - 1)}
        return sum(functional.mse_loss(student.hidden[ours], teacher.hidden[theirs]) for ours, theirs in layers.items())


class AttentionLoss(LayerLoss):
    """A loss that compares attention, head by head."""

    def check(self, student: PretrainedConfig, teacher: PretrainedConfig) -> None:
        """Check that the layers exist and have the same number of heads."""
        super().check(student, teacher)
        _same("num_attention_heads", self, student, teacher)


class AttentionScores(AttentionLoss):
    """Attention before the softmax, by the mean squared error (TinyBERT, Jiao et al. 2020, equation 7).

    The mean is over heads and over pairs of tokens of one row, without padding.
    """

    def compare(self, student: HiddenStates, ours: int, teacher: HiddenStates, theirs: int) -> paddle.Tensor:
        """Return the mean squared error of ``[batch, heads, length, length]``."""
        there = _tokens(student.tokens)  # [batch, length]
        pairs = there.unsqueeze([1, 2]) * there.unsqueeze([1, 3])  # [batch, 1, query, key]
        squares = (student.scores(ours) - teacher.scores(theirs)).square() * pairs
        return squares.sum() / (pairs.sum() * student.tokens.heads)


class AttentionDistribution(AttentionLoss):
    """Attention after the softmax, by the Kullback-Leibler divergence (MiniLM, Wang et al. 2020, equation 6).

    The paper compares the last layers: ``AttentionDistribution({2: 6})``. The mean is over heads and tokens; dropout of
    the attention is not applied.
    """

    def compare(self, student: HiddenStates, ours: int, teacher: HiddenStates, theirs: int) -> paddle.Tensor:
        """Return the mean divergence of the student's distribution from the teacher's."""
        there = _tokens(student.tokens)
        found = divergence(teacher.scores(theirs), student.scores(ours)).sum(axis=1)  # [batch, query]
        return (found * there).sum() / (there.sum() * student.tokens.heads)


def layer_map(layers: int, of: int) -> dict[int, int]:
    """Return student's layer -> teacher's layer, evenly spaced up to the last: 3 of 12 are {1: 4, 2: 8, 3: 12}.

    Raises:
        CompositionError: there would be no layers, or more than the teacher has.
    """
    if not 1 <= layers <= of:
        raise CompositionError(f"{layers} layers of {of}: choose a number from 1 to {of}")
    return {layer: round(layer * of / layers) for layer in range(1, layers + 1)}


def copied_layers(layers: int, of: int) -> list[int]:
    """Return the teacher's layers that a student begins with, from 1: 3 of 12 are [1, 5, 9].

    Each is the one that reads what the student's layer below is taught to return (:func:`layer_map`), so every layer
    gets the input that it was trained on, as in DynaBERT (Hou et al. 2020).

    Raises:
        CompositionError: there would be no layers, or more than the teacher has.
    """
    return [below + 1 for below in (0, *layer_map(layers, of).values())][:-1]


def with_layers(encoder: PretrainedEncoder, layers: Sequence[int]) -> PretrainedEncoder:
    """Return a new encoder with copies of some layers of another one, in this order, and of everything else.

    Args:
        encoder: the encoder to copy from.
        layers: from 1, the lowest first; ``[3, 6]`` makes an encoder of two layers.

    Raises:
        CompositionError: there are no layers, or the encoder does not have one of them.
    """
    there = encoder.config.num_hidden_layers
    if not layers or not all(layer in range(1, there + 1) for layer in layers):
        raise CompositionError(f"layers {list(layers)}: the encoder has the layers 1 to {there}; choose some of them.")
    fewer = new_encoder(encoder.config.changed(num_hidden_layers=len(layers)))
    own = arrays_of(encoder)
    number = re.compile(rf"(?<=^{re.escape(encoder.layers_path)}\.)\d+")
    for name, parameter in fewer.state_dict().items():
        parameter.set_value(own[number.sub(lambda found: str(layers[int(found[0])] - 1), name)])
    return fewer


def write_smaller(name_or_folder: str | Path, layers: Sequence[int], folder: str | Path) -> None:
    """Write the folder of an encoder with some layers of another one (:func:`with_layers`), and its tokenizer.

    Raises:
        CompositionError: see :func:`with_layers`.
        WeightsError: the other encoder cannot be read, or the folder cannot be written.
    """
    with_layers(load_encoder(name_or_folder), layers).save_pretrained(folder)
    Tokenizer.from_pretrained(name_or_folder).save_pretrained(folder)


def divergence(wanted: paddle.Tensor, given: paddle.Tensor) -> paddle.Tensor:
    """Return KL(softmax(wanted) || softmax(given)) along the last axis of two tensors of logits."""
    logs = functional.log_softmax(wanted)
    return (logs.exp() * (logs - functional.log_softmax(given))).sum(axis=-1)


def _tokens(packing: Packing) -> paddle.Tensor:
    """Return where there are tokens: float32 [batch, length], 1, or 0 for padding."""
    return paddle.to_tensor(packing.mask.astype("float32"))


def _check_weight(what: str, weight: float) -> None:
    if not 0 <= weight < float("inf"):
        raise CompositionError(f"Distillation: the weight of {what} must be a number >= 0, got {weight!r}.")


def _same(size: str, loss: object, student: PretrainedConfig, teacher: PretrainedConfig) -> None:
    ours, theirs = getattr(student, size), getattr(teacher, size)
    if ours != theirs:
        raise CompositionError(
            f"{type(loss).__name__} needs encoders of the same {size}; the student's is {ours}, the teacher's {theirs}."
        )
