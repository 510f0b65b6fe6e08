"""A teacher's logits: equal to those of its network, computed once, continued after a stop."""

import json
import signal

import numpy as np
import pytest

from onion.errors import CheckpointError
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.probabilities import softmax
from onion.tasks.students import kept_logits
from onion.tasks.students.distill import train
from onion.tasks.students.kept_logits import ABOUT_FILE, KeptLogits
from onion.tasks.students.settings import DistillSettings


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


def test_a_signal_ends_the_training_after_the_chunk_in_which_it_comes(trained, films_folder, tmp_path, monkeypatch):
    files = {name: str(films_folder / f"{name}.tsv") for name in ("train", "dev")}
    settings = DistillSettings.of({"teacher": str(trained[0]), "student": "bow", **files, "passes": 1})
    real, seen = kept_logits.logits_of, []

    def signalled(teacher, rows):
        seen.append(len(rows))
        if len(seen) == 2:
            signal.raise_signal(signal.SIGTERM)
        return real(teacher, rows)

    monkeypatch.setattr(kept_logits, "CHUNK", 20)
    monkeypatch.setattr(kept_logits, "logits_of", signalled)
    stopped = train(settings, tmp_path / "out", quiet=True)
    assert (stopped.signal, stopped.report["step"], seen) == (signal.SIGTERM, 0, [20, 20])
    report = train(settings, tmp_path / "out", quiet=True).report
    assert (report["step"], seen) == (2, [20] * 6 + [8])


def test_other_logits_are_refused_unless_they_may_be_replaced(kept, teacher, films_folder):
    kept.complete(quiet=True)
    other = KeptLogits(kept.folder, teacher, films_folder / "dev.tsv", (70, 2))
    with pytest.raises(CheckpointError, match="holds the logits of another teacher or of other texts; delete it"):
        other.check()
    replacing = KeptLogits(kept.folder, teacher, films_folder / "dev.tsv", (70, 2), replaces=True)
    replacing.check()
    assert replacing.complete(quiet=True).shape == (70, 2)
    assert np.array_equal(other.complete(quiet=True), replacing.complete(quiet=True))
