import json
from pathlib import Path

import numpy as np
import pytest

from onion.checkpointing.checkpoint import steps_in
from onion.errors import CheckpointError, DataError
from onion.tasks import registry
from onion.tasks.classification import Classification
from onion.tasks.finetune.fine_tune import fine_tune, train
from onion.tasks.finetune.inference import evaluate, predict_texts
from onion.tasks.finetune.initialization import Initialization
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.finetune.settings import Settings
from tests.tasks.helpers import films, write_tsv


@pytest.fixture
def folder(trained):
    return trained[0]


def network(folder, make_settings, head, labels=("bad", "good")):
    seed_everything(9)
    start = Initialization.of(make_settings(init_from=str(folder), init_head=head))
    return start.network(Classification(labels=labels)), start.learned


@pytest.mark.parametrize("head", [False, True])
def test_the_encoder_and_if_asked_for_the_head(folder, make_settings, head):
    made, learned = network(folder, make_settings, head)
    for name, parameter in made.state_dict().items():
        same = np.array_equal(parameter.numpy(), learned[name])
        assert same == (head or name.startswith("encoder.")) or name == "classifier.bias"


def test_the_best_checkpoint_or_the_one_that_is_named(trained, make_settings):
    out, result = trained
    best, newest = f"step-{result.report['best_step']:08d}", f"step-{steps_in(out)[-1]:08d}"
    weights = {}
    for place in (out, out / best, out / newest):
        start = Initialization.of(make_settings(init_from=str(place)))
        assert start.folder == out
        weights[place.name] = start.learned["encoder.pooler.dense.weight"]
    assert np.array_equal(weights[out.name], weights[best])
    assert best == newest or not np.array_equal(weights[best], weights[newest])


@pytest.mark.parametrize("labels", [("good", "bad"), ("a", "b")])
def test_a_head_means_what_its_labels_say(folder, make_settings, labels):
    with pytest.raises(CheckpointError, match=r"its head belongs to another training \(labels"):
        network(folder, make_settings, head=True, labels=labels)


def test_a_head_of_another_task_is_refused_its_encoder_taken(folder, make_settings):
    with pytest.raises(CheckpointError, match=r"out: .* \(labels \['bad', 'good'\] there, \['a', 'b', 'c'\] here\)"):
        network(folder, make_settings, head=True, labels=("a", "b", "c"))
    made, _ = network(folder, make_settings, head=False, labels=("a", "b", "c"))
    assert made.classifier.weight.shape == [32, 3]


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir, Path.touch])
def test_what_is_no_run(tmp_path, make_settings, make):
    make(tmp_path / "a")
    with pytest.raises(CheckpointError, match="a: neither a folder of onion train nor a checkpoint in one"):
        Initialization.of(make_settings(init_from=str(tmp_path / "a")))


def test_a_training_that_goes_on_elsewhere_begins_where_the_other_ended(trained, make_settings, tmp_path, films_folder):
    out, result = trained
    settings = make_settings(init_from=str(out), init_head=True, passes=1, test_every=1, learning_rate=1e-9)
    train(settings, tmp_path / "next")
    first = json.loads((tmp_path / "next" / "metrics.jsonl").read_text().splitlines()[0])
    assert first["dev.accuracy"] == result.report["dev.accuracy"]


def test_fine_tune_gives_an_onion_to_take_apart(encoder_folder, tmp_path):
    data = write_tsv(tmp_path / "a.tsv", films(40, seed=5))
    settings = {"encoder": str(encoder_folder), "options": {"max_length": 16}, "passes": 2}
    runner = fine_tune("classification", data, data, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()
    state = runner.without("saver", "logger", "dev", "run_folder").run(passes=2)
    assert state.step == 4
    assert not (tmp_path / "out").exists()


def test_what_fine_tune_leaves_is_a_run(encoder_folder, tmp_path, caplog):
    data = write_tsv(tmp_path / "a.tsv", films(40, seed=5))
    settings = {"encoder": str(encoder_folder), "options": {"max_length": 6}, "passes": 1}
    fine_tune("classification", data, data, tmp_path / "out", **settings).run(passes=1)
    assert [message for message in caplog.messages if "texts longer than 6 tokens" in message]
    assert evaluate(tmp_path / "out", str(data))["rows"] == 40
    assert len(list(predict_texts(tmp_path / "out", ["a film"]))) == 1
    Initialization.of(Settings(task="classification", train="x", dev="x", init_from=str(tmp_path / "out")))
    with pytest.raises(CheckpointError, match=r"another run \(learning_rate "):
        fine_tune("classification", data, data, tmp_path / "out", learning_rate=1.0, **settings).run(passes=1)


class Own(Classification):
    name = "own"

    def collate(self, examples, pad_id):
        Own.asked = True
        return super().collate(examples, pad_id)


def test_a_task_of_ones_own(encoder_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "TASKS", dict(registry.TASKS))
    data = write_tsv(tmp_path / "a.tsv", films(40, seed=5))
    settings = {"encoder": str(encoder_folder), "passes": 1}
    fine_tune(Own(max_length=16), data, data, tmp_path / "out", **settings).run(passes=1)
    assert Own.asked
    assert evaluate(tmp_path / "out", str(data))["rows"] == 40

    class Other(Classification):
        name = "own"

    with pytest.raises(DataError, match="the name 'own' belongs to another task"):
        fine_tune(Other(), data, data, tmp_path / "other", **settings)
