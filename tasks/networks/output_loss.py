"""How far the outputs of a student are from those of its teacher, for the network of every task."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import paddle
from paddle import nn
from paddle.nn import functional

from onion.models.hidden_states import HiddenStates
from onion.models.packing import Packing
from onion.tasks.networks.classifier import Classifier
from onion.tasks.networks.distillation import TeacherLoss, divergence
from onion.tasks.networks.masked_language_model import MaskedLanguageModel
from onion.tasks.networks.multilabel_classifier import MultiLabelClassifier
from onion.tasks.networks.reader import FAR_BELOW, Reader
from onion.tasks.token_classification.tagger import CrfTagger, Tagger

Difference = Callable[[paddle.Tensor, paddle.Tensor, Packing], paddle.Tensor]
"""(the student's outputs, the teacher's, the tokens of the batch) -> a scalar."""


def _difference_of(network: nn.Layer) -> Difference:
    return next((found for kind, found in DIFFERENCES.items() if isinstance(network, kind)), _squares)


@attrs.frozen
class OutputLoss(TeacherLoss):
    """The teacher's outputs as targets, in the way of the network's task; without the labels.

    * Classes, the tags of words, masked words: the Kullback-Leibler divergence from the teacher's distribution, the
      mean over texts, words or masked words (Hinton, Vinyals and Dean 2015, at temperature 1).
    * Several labels: that of each label, present or not, the mean over texts and labels.
    * Spans: that of the distributions of begins and of ends over the tokens of a text, the mean over both and texts.
    * Numbers, scores, the emissions of a CRF, and the outputs of networks of others: the mean squared error.

    Args:
        network: the student.
        weight: see :class:`TeacherLoss`. Default 1.
    """

    _difference: Difference = attrs.field(alias="network", converter=_difference_of)

    def __call__(self, student: HiddenStates, teacher: HiddenStates) -> paddle.Tensor:
        """Return the loss of a batch, a scalar; of one without any outputs 0."""
        if not student.outputs.size:
            return student.outputs.sum()
        return self._difference(student.outputs, teacher.outputs, student.tokens)


def _classes(ours: paddle.Tensor, theirs: paddle.Tensor, tokens: Packing) -> paddle.Tensor:
    return divergence(theirs, ours).mean()


def _labels(ours: paddle.Tensor, theirs: paddle.Tensor, tokens: Packing) -> paddle.Tensor:
    wanted = functional.sigmoid(theirs)
    # What softplus(x) - p x is above its least value, which x = theirs has.
    return (functional.softplus(ours) - functional.softplus(theirs) - wanted * (ours - theirs)).mean()


def _places(ours: paddle.Tensor, theirs: paddle.Tensor, tokens: Packing) -> paddle.Tensor:
    padding = paddle.to_tensor((1 - tokens.mask.astype("float32")) * FAR_BELOW).unsqueeze(2)
    scores = ((each + padding).transpose([0, 2, 1]) for each in (theirs, ours))
    return divergence(*scores).mean()


def _squares(ours: paddle.Tensor, theirs: paddle.Tensor, tokens: Packing) -> paddle.Tensor:
    return functional.mse_loss(ours, theirs)


DIFFERENCES: Mapping[type[nn.Layer], Difference] = {
    CrfTagger: _squares,
    Tagger: _classes,
    Classifier: _classes,
    MaskedLanguageModel: _classes,
    MultiLabelClassifier: _labels,
    Reader: _places,
}
"""Kind of network -> how its outputs differ; the first that fits."""
