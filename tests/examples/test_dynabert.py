"""The example of DynaBERT: every size is measured, the whole one is none the worse, and it goes on where it was."""

import shutil

import numpy as np
import pytest

from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.inference import evaluate
from onion.tasks.finetune.learned_weights import best_weights
from onion.tasks.finetune.settings import Settings
from tests.examples.in_process import run_example
from tests.tasks.helpers import films, tiny_encoder, write_tsv


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the data and a trained classifier."""
    place = tmp_path_factory.mktemp("dynabert")
    write_tsv(place / "train.tsv", films(256, seed=1))
    write_tsv(place / "dev.tsv", films(48, seed=2))
    files = {name: str(place / f"{name}.tsv") for name in ("train", "dev")}
    options = {"passes": 6, "batch_size": 16, "learning_rate": 6e-3, "options": {"max_length": 16}}
    train(Settings(task="classification", encoder=str(tiny_encoder(place / "tiny")), **files, **options), place / "run")
    return place


def test_every_size_is_trained_and_measured(place):
    words = [place / "run", place, "--output", place / "out", "--passes", "2"]
    told, drawing = run_example("dynabert.py", *words)
    assert list(told["accuracy"]) == [
        f"width {width}, {depth} layers" for width in (1.0, 0.75, 0.5) for depth in (2, 1)
    ]
    assert told["accuracy"]["width 1.0, 2 layers"] >= evaluate(place / "run", place / "dev.tsv")["accuracy"] - 0.1
    assert np.mean(list(told["accuracy"].values())) > 0.6
    assert "Widths(widths=[1.0, 0.75, 0.5])" in drawing
    assert "Depths(depths=[2, 1])" in drawing
    again, _ = run_example("dynabert.py", *words)
    assert again["accuracy"] == told["accuracy"]
    weights = best_weights(place / "out" / "depths")
    shutil.rmtree(place / "out" / "depths")  # it was killed between its two trainings
    run_example("dynabert.py", *words)
    resumed = best_weights(place / "out" / "depths")
    assert all(np.array_equal(resumed[name], weights[name]) for name in weights)
