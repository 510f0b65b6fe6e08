"""Trainings with LoRA and gradient checkpointing, from settings to predictions."""

import shutil

import numpy as np
import pytest

from onion.checkpointing.run_state import best_checkpoint
from onion.errors import CheckpointError, CompositionError, DataError
from onion.models.lora import merge_lora
from onion.tasks.finetune.fine_tune import Job, train
from onion.tasks.finetune.inference import evaluate, predict_texts
from onion.tasks.finetune.multitask_settings import MultiTaskSettings
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.run_files import FROZEN
from tests.tasks.helpers import of_dev, snapshot

LORA = {"lora_rank": 4, "lora_targets": ["*"], "learning_rate": 3e-2, "passes": 4}
TEXTS = ["a lovely film", "the plot was awful and sad"]


@pytest.fixture(scope="module")
def adapted(make_settings, tmp_path_factory):
    """The folder and the report of a training with adapters."""
    out = tmp_path_factory.mktemp("adapted") / "out"
    return out, train(make_settings(**LORA), out).report


def test_it_learns_and_the_best_checkpoint_is_evaluated_and_predicts(adapted, films_folder):
    out, report = adapted
    assert report["dev.accuracy"] > report["majority_accuracy"] + 0.15
    found = evaluate(out, films_folder / "dev.tsv")
    assert {name: found[name] for name in of_dev(report)} == pytest.approx(of_dev(report), abs=1e-6)
    assert [each["label"] for each in predict_texts(out, TEXTS)] == ["good", "bad"]


def test_a_checkpoint_has_what_is_trained_and_the_folder_the_rest_once(adapted):
    out, _ = adapted
    saved = best_checkpoint(out).items
    assert all(
        "_lora." in path or path.startswith(("encoder.pooler.", "classifier.")) for path in saved["gradient_machine"]
    )
    moved = {key.rpartition("/")[0].removeprefix("gradient_machine.") for key in saved["parameter_updater"]} - {""}
    assert moved == {path for path in saved["gradient_machine"] if not path.endswith(".scale")}
    assert (out / FROZEN).is_file()
    assert not list(out.glob(f"step-*/{FROZEN}"))


def test_merged_predictions_equal_those_of_the_adapters(make_settings, tmp_path):
    job = Job.prepare(make_settings(**LORA, test_every=8))
    runner = job.onion(tmp_path)
    runner.run(passes=1)
    predictor, loaded = Predictor(job.task, runner, job.tokenizer), Predictor.load(tmp_path)

    def probabilities(predictor):
        return [[*each["probabilities"].values()] for each in predictor(job.task.text_rows(TEXTS))]

    unmerged = probabilities(predictor)
    np.testing.assert_allclose(probabilities(loaded), unmerged, atol=1e-5)
    assert loaded.network.state_dict().keys() == Job.prepare(make_settings()).network.state_dict().keys()
    merge_lora(job.network)
    np.testing.assert_allclose(probabilities(predictor), unmerged, atol=1e-5)


def test_it_resumes_to_the_bit_with_the_encoder_that_it_began_with(make_settings, encoder_folder, tmp_path):
    encoder = shutil.copytree(encoder_folder, tmp_path / "encoder")
    settings = make_settings(**LORA, encoder=str(encoder), ema_decay=0.9, gradient_checkpointing=True, keep_last=9)
    Job.prepare(settings).onion(tmp_path / "whole").run(passes=2)
    Job.prepare(settings).onion(tmp_path / "cut").run(steps=7)
    spoil(encoder / "model.safetensors", np.float32(0.25).tobytes())
    Job.prepare(settings).onion(tmp_path / "cut").run(passes=2)
    one, other = (snapshot(tmp_path / name) for name in ("whole", "cut"))
    compared = [name for name in one if name.startswith((FROZEN, "step-00000016")) and name.endswith(".safetensors")]
    assert len(compared) == 4
    assert all(one[name] == other[name] for name in compared)


def test_another_training_starts_from_the_merged_weights(adapted, make_settings):
    out, _ = adapted
    learned = dict(Predictor.load(out).network.named_parameters())
    plain = Job.prepare(make_settings(init_from=str(out), init_head=True)).network
    assert all((parameter == learned[path]).all() for path, parameter in plain.named_parameters())
    checkpoint = str(next(out.glob("step-*")))
    again = Job.prepare(make_settings(init_from=checkpoint, lora_rank=2)).network
    fresh = dict(again.named_parameters())
    assert fresh.keys() > learned.keys()
    assert (fresh["encoder.embeddings.layer_norm.weight"] == learned["encoder.embeddings.layer_norm.weight"]).all()
    assert not fresh["encoder.encoder.layers.0.self_attn.v_proj.weight_lora.B"].numpy().any()


def test_tasks_over_one_encoder_share_its_adapters(make_settings, films_folder, tmp_path):
    entry = {"task": "classification", "train": str(films_folder / "train.tsv"), "max_length": 16}
    tasks = {"one": {**entry, "dev": str(films_folder / "dev.tsv")}, "two": entry}
    usual = make_settings()
    settings = MultiTaskSettings(tasks=tasks, encoder=usual.encoder, learning_rate=1e-2, passes=1, lora_rank=2)
    report = train(settings, tmp_path / "out").report
    assert evaluate(tmp_path / "out", films_folder / "dev.tsv", task_name="one")["accuracy"] == report["one.accuracy"]
    saved = best_checkpoint(tmp_path / "out").items["gradient_machine"]
    assert {path.partition(".")[0] for path in saved if "_lora." in path} == {"encoder"}
    assert not any("word_embeddings" in path for path in saved)


@pytest.mark.parametrize("harm", [lambda path: path.unlink(), lambda path: spoil(path, b"\0\0\0?")])
def test_a_run_without_its_frozen_encoder_is_refused(adapted, make_settings, tmp_path, harm):
    out = shutil.copytree(adapted[0], tmp_path / "out")
    harm(out / FROZEN)
    told = rf"{FROZEN}: (no such file|damaged; .*)\. It holds the encoder of a run"
    with pytest.raises(CheckpointError, match=told):
        Predictor.load(out)
    with pytest.raises(CheckpointError, match=told):
        Job.prepare(make_settings(**LORA)).onion(out).run(passes=4)


@pytest.mark.parametrize(
    ("settings", "error", "what"),
    [
        ({"lora_alpha": 4}, DataError, "lora_alpha needs lora_rank, the rank of the adapters; set both or neither"),
        ({"lora_targets": ["q_proj"]}, DataError, "lora_targets needs lora_rank"),
        ({"lora_rank": 2, "lora_targets": ["query"]}, CompositionError, "is called 'query'; there are 'q_proj'"),
        ({"lora_rank": 64}, CompositionError, "rank 64 is more than q_proj has"),
        ({"lora_rank": 2, "freeze": ["encoder.*"]}, DataError, "freeze matches all adapters"),
        ({"lora_rank": 0}, DataError, "lora_rank must be an integer >= 1, got 0"),
    ],
)
def test_senseless_settings_are_refused(make_settings, settings, error, what):
    with pytest.raises(error, match=what):
        Job.prepare(make_settings(**settings))


def test_adapters_of_some_layers_may_be_frozen(make_settings):
    assert Job.prepare(make_settings(lora_rank=2, freeze=["encoder.encoder.layers.0.*"], layerwise_decay=0.8))


def spoil(path, end):
    """Write other bytes at the end of a file."""
    path.write_bytes(path.read_bytes()[: -len(end)] + end)
