"""The loss of rows of which some are labelled."""

import numpy as np
import paddle
import pytest

from onion.tasks.networks.classifier import Classifier
from onion.tasks.students.known_labels import OfKnownLabels
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
