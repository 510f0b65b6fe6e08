"""The outputs of every task's network against its teacher's, by plain numpy; least where both agree."""

import numpy as np
import paddle
import pytest
from scipy.special import expit, log_softmax

from onion.models.hidden_states import HiddenStates
from onion.models.packing import Packing
from onion.tasks.networks.classifier import Classifier
from onion.tasks.networks.masked_language_model import MaskedLanguageModel
from onion.tasks.networks.matchers import PairwiseMatcher, PointwiseMatcher
from onion.tasks.networks.multilabel_classifier import MultiLabelClassifier
from onion.tasks.networks.output_loss import OutputLoss
from onion.tasks.networks.reader import Reader
from onion.tasks.networks.regressor import Regressor
from onion.tasks.token_classification.tagger import CrfTagger, Tagger
from tests.models.helpers import small_encoder

MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])


def divergence(theirs, ours, axis):
    theirs, ours = (log_softmax(each.astype(np.float64), axis=axis) for each in (theirs, ours))
    return (np.exp(theirs) * (theirs - ours)).sum(axis)


def of_classes(theirs, ours):
    return divergence(theirs, ours, -1).mean()


def of_labels(theirs, ours):
    p, q = (expit(each.astype(np.float64)) for each in (theirs, ours))
    return (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).mean()


def of_places(theirs, ours):
    rows = [(theirs[row, :length], ours[row, :length]) for row, length in enumerate(MASK.sum(1))]
    return np.mean([divergence(*each, 0) for each in rows])


def of_numbers(theirs, ours):
    return ((theirs - ours) ** 2).mean()


NETWORKS = {
    "classification": (lambda encoder: Classifier(encoder, 3), (2, 3), of_classes),
    "matching": (lambda encoder: PointwiseMatcher(encoder, 2), (2, 2), of_classes),
    "matching, pairwise": (PairwiseMatcher, (2, 1), of_numbers),
    "multilabel": (lambda encoder: MultiLabelClassifier(encoder, 3), (2, 3), of_labels),
    "regression": (Regressor, (2, 1), of_numbers),
    "tags": (lambda encoder: Tagger(encoder, 5), (6, 5), of_classes),
    "tags, CRF": (lambda encoder: CrfTagger(encoder, 5), (6, 5), of_numbers),
    "question-answering": (lambda encoder: Reader(encoder, 2, 3), (2, 4, 2), of_places),
    "masked-lm": (MaskedLanguageModel, (3, 40), of_classes),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_difference_of_outputs(name):
    make, shape, wanted = NETWORKS[name]
    loss = OutputLoss(make(small_encoder()))
    generator = np.random.default_rng(0)
    ours, theirs = generator.normal(0, 2, (2, *shape)).astype(np.float32)
    packing = Packing.of(MASK, 2)
    sides = [HiddenStates(paddle.to_tensor(each), packing) for each in (ours, theirs)]
    assert float(loss(*sides)) == pytest.approx(wanted(theirs, ours), rel=1e-4)
    assert float(loss(sides[0], sides[0])) == pytest.approx(0, abs=1e-5)


def test_a_network_of_ones_own_is_compared_by_squares():
    class Own(paddle.nn.Layer):
        pass

    ours, theirs = np.random.default_rng(0).normal(size=(2, 2, 3)).astype(np.float32)
    packing = Packing.of(MASK, 2)
    found = OutputLoss(Own())(*(HiddenStates(paddle.to_tensor(each), packing) for each in (ours, theirs)))
    assert float(found) == pytest.approx(of_numbers(theirs, ours), rel=1e-5)


def test_a_batch_without_outputs_has_no_loss_and_changes_nothing():
    outputs = paddle.zeros([0, 40])
    outputs.stop_gradient = False
    loss = OutputLoss(MaskedLanguageModel(small_encoder()))
    sides = [HiddenStates(each, Packing.of(MASK, 2)) for each in (outputs, paddle.zeros([0, 40]))]
    found = loss(*sides)
    found.backward()
    assert float(found) == 0
