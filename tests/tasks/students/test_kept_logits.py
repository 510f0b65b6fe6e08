"""A teacher's logits: equal to those of its network, computed once, continued after a stop."""

import json

import numpy as np
import pytest

from onion.tasks.finetune.predictor import Predictor
from onion.tasks.probabilities import softmax
from onion.tasks.students import kept_logits
from onion.tasks.students.kept_logits import ABOUT_FILE, KeptLogits


@pytest.fixture(scope="module")
def teacher(trained):
    return Predictor.load(trained[0])


@pytest.fixture
def kept(teacher, films_folder, tmp_path):
    return KeptLogits(tmp_path / "kept", teacher, films_folder / "train.tsv", (128, 2))


def test_they_are_what_the_teacher_predicts(kept, teacher, films_folder):
    found = kept.complete(quiet=True)
    assert (found.shape, found.dtype) == ((128, 2), np.float32)
    rows = list(teacher.task.rows(films_folder / "train.tsv", labelled=False))
    wanted = [list(each["probabilities"].values()) for each in teacher(rows)]
    np.testing.assert_allclose(softmax(np.array(found)), wanted, atol=1e-6)


def test_they_are_computed_once_and_a_stopped_computation_goes_on(kept, monkeypatch):
    whole = np.array(kept.complete(quiet=True))
    again = KeptLogits(kept.folder.with_name("again"), kept.teacher, kept.path, kept.shape)
    seen = []
    real = kept_logits.logits_of

    def stopped(teacher, rows):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(len(rows))
        return real(teacher, rows)

    monkeypatch.setattr(kept_logits, "CHUNK", 50)
    monkeypatch.setattr(kept_logits, "logits_of", stopped)
    with pytest.raises(KeyboardInterrupt):
        again.complete(quiet=True)
    assert json.loads((again.folder / ABOUT_FILE).read_text())["done"] == 100
    monkeypatch.setattr(kept_logits, "logits_of", lambda teacher, rows: seen.append(len(rows)) or real(teacher, rows))
    np.testing.assert_allclose(again.complete(quiet=True), whole, atol=1e-6)
    assert seen == [50, 50, 28]
