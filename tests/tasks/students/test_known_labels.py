"""The loss of rows of which some are labelled; the layers of a tiny student."""

import numpy as np
import paddle
import pytest

from onion.errors import DataError
from onion.tasks.networks.classifier import Classifier
from onion.tasks.students.known_labels import OfKnownLabels
from onion.tasks.students.tiny import layer_map
from tests.models.helpers import SMALL, small_encoder

LOGITS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
LABELS = np.array([0, 2, 1, 1])


@pytest.mark.parametrize("known", [[0, 1, 2, 3], [1, 3], [2], []])
def test_each_labelled_row_weighs_its_share_of_the_batch(known):
    loss = OfKnownLabels(Classifier(small_encoder(1, SMALL), 3)).loss
    found = loss(paddle.to_tensor(LOGITS), {"labels": paddle.to_tensor(LABELS), "known": known})
    logs = LOGITS - np.log(np.exp(LOGITS).sum(axis=1, keepdims=True))
    wanted = -sum(logs[row, LABELS[row]] for row in known) / 4
    assert float(found) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(
    ("layers", "of", "found"),
    [(3, 12, {1: 4, 2: 8, 3: 12}), (3, 6, {1: 2, 2: 4, 3: 6}), (3, 3, {1: 1, 2: 2, 3: 3}), (1, 2, {1: 2})],
)
def test_layers_are_spaced_evenly_up_to_the_last(layers, of, found):
    assert layer_map(layers, of) == found


def test_more_layers_than_there_are():
    with pytest.raises(DataError, match="--layers 4: the teacher has 3"):
        layer_map(4, 3)
