"""Predictor: the runner that trained, and the folder that it left, predict the same."""

import paddle
import pytest

from onion import Forward, GradientMachine, Runner
from onion.models.encoder import Encoder
from onion.tasks.classification import Classification
from onion.tasks.finetune.fine_tune import fine_tune
from onion.tasks.finetune.inference import predict
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.masked_lm.masking import Masker
from onion.tasks.masked_lm.task import MaskedLM
from onion.tasks.networks.classifier import Classifier

TEXTS = ["a good film", "a bad film", "films are long", ""]


@pytest.fixture(scope="module")
def task(films_folder):
    return Classification(max_length=16).fitted(films_folder / "dev.tsv")


def fine_tuned(task, films_folder, encoder_folder, out):
    files = films_folder / "train.tsv", films_folder / "dev.tsv"
    return fine_tune(
        task, *files, out, encoder=str(encoder_folder), passes=1, batch_size=16, learning_rate=3e-3, test_every=8
    )


def test_the_very_runner_that_trained_predicts_what_the_folder_that_it_left_does(
    task, films_folder, encoder_folder, tokenizer, tmp_path
):
    runner = fine_tuned(task, films_folder, encoder_folder, tmp_path / "run")
    before = list(Predictor(task, runner, tokenizer)(task.text_rows(TEXTS)))
    runner.run(passes=1)  # 8 steps; the only test, and so the best checkpoint, is at its end
    after = list(Predictor(task, runner, tokenizer)(task.text_rows(TEXTS)))
    assert after != before
    rows = list(task.rows(films_folder / "dev.tsv", labelled=False))
    told = [{"index": place, **each} for place, each in enumerate(Predictor(task, runner, tokenizer)(rows))]
    assert told == list(predict(tmp_path / "run", str(films_folder / "dev.tsv")))


def test_predicting_leaves_the_networks_modes_and_weights(task, encoder_folder, tokenizer):
    network = Classifier(Encoder.from_pretrained(encoder_folder), 2)
    network.train()
    before = [each.numpy().tobytes() for each in network.parameters()]
    predictor = Predictor(task, Runner(GradientMachine(network)), tokenizer)
    assert len(list(predictor(task.text_rows(TEXTS)))) == len(TEXTS)
    assert network.dropout.training
    assert [each.numpy().tobytes() for each in network.parameters()] == before
    assert predictor.network is network


def test_the_chunk_does_not_matter(task, encoder_folder, tokenizer):
    paddle.seed(1)
    predictor = Predictor(task, Runner(Forward(Classifier(Encoder.from_pretrained(encoder_folder), 2))), tokenizer)
    whole, one_by_one = (list(predictor(task.text_rows(TEXTS), chunk=chunk)) for chunk in (100, 1))
    for one, other in zip(whole, one_by_one, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)


def test_rings_that_are_for_training_only_are_left_out(encoder_folder, tokenizer):
    task = MaskedLM(max_length=16)
    network = task.network(Encoder.from_pretrained(encoder_folder))
    predictor = Predictor(task, Runner(Masker(tokenizer, seed=1), GradientMachine(network)), tokenizer)
    assert [type(item) for item in predictor.onion] == [Forward]
    (found,) = predictor(task.text_rows(["a [MASK] film"]))
    assert found
