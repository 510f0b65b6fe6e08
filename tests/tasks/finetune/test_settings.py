"""What the settings of a training do, each seen in the onion that it makes and in what is learned."""

import attrs
import numpy as np
import pytest

from onion import (
    Accumulate,
    EarlyStopping,
    Freeze,
    GradientMachine,
    MixedPrecision,
    MovingAverage,
    ParameterUpdater,
    Saver,
    Tester,
    Tracker,
    UseAverage,
)
from onion.checkpointing.run_state import best_checkpoint
from onion.errors import CompositionError, DataError
from onion.tasks.finetune.declared import GROUPS, declared_in
from onion.tasks.finetune.fine_tune import Job, train
from onion.tasks.finetune.inference import evaluate
from onion.tasks.finetune.learned_weights import weights_in
from onion.tasks.finetune.multitask_settings import TaskSettings
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.settings import Settings
from scripts.settings_page import page
from tests.paths import ROOT
from tests.tasks.helpers import log_rows, snapshot


def onion_of(settings, folder):
    return Job.prepare(settings).onion(folder)


def test_every_setting_is_declared_in_a_group_with_its_help():
    declared = declared_in(Settings)
    assert set(attrs.fields_dict(Settings)) - declared.keys() == {"options"}
    assert {each.group for each, _ in declared.values()} == set(GROUPS)
    assert all(each.help and each.help[0].islower() and not each.help.endswith(".") for each, _ in declared.values())


@pytest.mark.parametrize(
    ("changes", "kind", "shown"),
    [
        ({"gradient_accumulation_steps": 2}, Accumulate, {"k": 2}),
        ({"precision": "bfloat16"}, MixedPrecision, {"dtype": "bfloat16"}),
        ({"early_stopping": 2}, EarlyStopping, {"patience": 2, "monitor": "dev.accuracy", "mode": "max"}),
        ({"ema_decay": 0.9}, MovingAverage, {"decay": 0.9}),
        ({"loggers": ["visualdl"], "log_every": 7}, Tracker, {"name": "visualdl", "every": 7}),
        ({"loggers": "visualdl"}, Tracker, {"name": "visualdl"}),
        ({"freeze": ["encoder.embeddings.*"]}, Freeze, {"pattern": "encoder.embeddings.*"}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_setting_adds_its_item_and_the_default_does_not(make_settings, tmp_path, changes, kind, shown):
    assert kind not in onion_of(make_settings(), tmp_path)
    item = onion_of(make_settings(**changes), tmp_path)[kind]
    assert {name: getattr(item, name) for name in shown} == shown


def test_intervals_count_updates(make_settings, tmp_path):
    plain = onion_of(make_settings(), tmp_path)  # 8 batches a pass
    assert (plain[Tester].every, plain[Saver].every) == (2, 2)
    fewer = onion_of(make_settings(gradient_accumulation_steps=2, save_every=7), tmp_path)
    assert (fewer[Tester].every, fewer[Saver].every) == (1, 7)
    runner = onion_of(make_settings(gradient_accumulation_steps=3), tmp_path)
    assert runner.run(passes=2).step == 6
    assert runner[ParameterUpdater].optimizer.get_lr() == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"shuffle_buffer": 8}, "shuffle_buffer is for stream; without it all examples are shuffled: leave"),
        (
            {"stream": True, "class_balanced": True},
            "class_balanced draws from all examples of the training file, which",
        ),
    ],
)
def test_orders_that_exclude_each_other(make_settings, changes, said):
    with pytest.raises(DataError, match=said):
        make_settings(**changes)
    with pytest.raises(DataError, match=f"tasks: 'a': {said}"):
        TaskSettings.from_config("a", {"task": "classification", "train": "a.tsv", **changes})


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "palm"])
def test_the_schedule(make_settings, tmp_path, schedule):
    runner = onion_of(make_settings(schedule=schedule, warmup_ratio=0.25), tmp_path)
    runner.run(steps=4)
    rate = runner[ParameterUpdater].optimizer.get_lr()
    assert rate == pytest.approx({"palm": 0.75}.get(schedule, 1.0) * 6e-3)
    runner.run(passes=2)
    assert runner[ParameterUpdater].optimizer.get_lr() == pytest.approx(6e-3 if schedule == "constant" else 0, abs=1e-9)


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "palm"])
def test_a_warm_up_in_updates_comes_before_its_share(make_settings, tmp_path, schedule):
    runner = onion_of(make_settings(schedule=schedule, warmup_steps=8, warmup_ratio=0.1), tmp_path)
    runner.run(steps=4)
    assert runner[ParameterUpdater].optimizer.get_lr() == pytest.approx(6e-3 / 2)


@pytest.mark.parametrize(("most", "every", "accumulated"), [(2, 1, 1), (12, 2, 1), (10, 1, 2)])
def test_max_steps_comes_before_passes_and_is_what_the_learning_rate_is_planned_for(
    make_settings, tmp_path, most, every, accumulated
):
    settings = make_settings(passes=1, max_steps=most, gradient_accumulation_steps=accumulated)  # 8 batches a pass
    assert onion_of(settings, tmp_path / "tests")[Tester].every == every
    assert train(settings, tmp_path / "out").report["step"] == most
    halfway = onion_of(settings, tmp_path / "half")
    halfway.run(steps=most // 2)
    rising = round(0.1 * most)
    falling = (most - most // 2) / (most - rising)
    assert halfway[ParameterUpdater].optimizer.get_lr() == pytest.approx(6e-3 * falling)


def test_adams_constants(make_settings, tmp_path):
    optimizer = onion_of(make_settings(adam_beta1=0.8, adam_beta2=0.98, adam_epsilon="1e-6"), tmp_path)[
        ParameterUpdater
    ].optimizer
    assert (optimizer._beta1, optimizer._beta2, optimizer._epsilon) == (0.8, 0.98, 1e-6)
    usual = onion_of(make_settings(), tmp_path)[ParameterUpdater].optimizer
    assert (usual._beta1, usual._beta2, usual._epsilon) == (0.9, 0.999, 1e-8)


def test_tests_and_checkpoints_after_each_pass(make_settings, tmp_path):
    settings = make_settings(test_every="pass", keep_last=9)
    assert onion_of(settings, tmp_path)[Saver].every == "pass"
    report = train(settings, tmp_path / "out").report
    assert [path.name for path in sorted((tmp_path / "out").glob("step-*"))] == ["step-00000008", "step-00000016"]
    assert {row["step"] for row in log_rows(tmp_path / "out") if "dev.accuracy" in row} == {8, 16}
    assert report["best_step"] in (8, 16)


def test_frozen_parameters_keep_their_bits_and_others_do_not(make_settings, tmp_path):
    runner = onion_of(make_settings(freeze=["encoder.*"]), tmp_path)
    network = runner[GradientMachine].network
    before = {path: parameter.numpy().copy() for path, parameter in network.named_parameters()}
    runner.run(steps=2)
    moved = {path for path, parameter in network.named_parameters() if (parameter.numpy() != before[path]).any()}
    assert moved == {path for path in before if not path.startswith("encoder.")}


def test_a_pattern_without_a_parameter_is_refused(make_settings, tmp_path):
    with pytest.raises(CompositionError, match=r"no parameter of Classifier matches 'encodr\.\*'; there are encoder"):
        onion_of(make_settings(freeze=["encodr.*"]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_moving_average_is_tested_saved_and_predicts(make_settings, tmp_path, films_folder):
    settings = make_settings(ema_decay=0.9)
    report = train(settings, tmp_path / "out").report
    assert UseAverage in onion_of(settings, tmp_path / "other")[Tester].runner
    best = best_checkpoint(tmp_path / "out")
    average, last = best.items["moving_average"], best.items["gradient_machine"]
    assert any((average[path] != last[path]).any() for path in average)
    assert weights_in(best, tmp_path) is average
    loaded = Predictor.load(tmp_path / "out").network.state_dict()
    assert all((loaded[path].numpy() == np.asarray(average[path])).all() for path in average)
    assert evaluate(tmp_path / "out", str(films_folder / "dev.tsv"))["accuracy"] == report["dev.accuracy"]


def test_early_stopping_ends_the_training(make_settings, tmp_path):
    report = train(make_settings(learning_rate=1e-12, early_stopping=1), tmp_path / "out").report
    assert report["step"] == 4  # the second test is no better than the first one


def test_all_at_once_resumes_to_the_bit(make_settings, tmp_path):
    settings = make_settings(
        ema_decay=0.9, gradient_accumulation_steps=2, freeze=["encoder.embeddings.*"], schedule="cosine", keep_last=9
    )
    onion_of(settings, tmp_path / "whole").run(passes=2)
    onion_of(settings, tmp_path / "cut").run(steps=3)
    onion_of(settings, tmp_path / "cut").run(passes=2)
    one, other = (snapshot(tmp_path / name / "step-00000008") for name in ("whole", "cut"))
    assert one.keys() == other.keys() >= {"gradient_machine.safetensors", "moving_average.safetensors"}
    assert all(one[name] == other[name] for name in one if name.endswith(".safetensors"))


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("adam_beta2", 1, "adam_beta2 must be a number >= 0 and < 1, got 1"),
        ("adam_epsilon", 0, "adam_epsilon must be a number > 0, got 0"),
        ("max_steps", 0, "max_steps must be an integer >= 1, got 0"),
        ("warmup_steps", 0.1, r"warmup_steps must be an integer >= 0, got 0\.1"),
        ("test_every", "epoch", "test_every must be an integer >= 1, or pass, got 'epoch'"),
        ("schedule", "liner", "schedule must be one of linear, cosine, constant, palm, got 'liner'"),
        ("precision", "fp16", "precision must be one of float32, bfloat16, float16, got 'fp16'"),
        ("ema_decay", 1, "ema_decay must be a number >= 0 and < 1, got 1"),
        ("gradient_accumulation_steps", 0, "gradient_accumulation_steps must be an integer >= 1, got 0"),
        ("freeze", [1], "freeze must be a list of strings"),
        ("freeze", 1, "freeze must be a list of strings, got 1"),
        ("layerwise_decay", 0, "layerwise_decay must be a number > 0 and <= 1, got 0"),
    ],
)
def test_values_that_are_refused(make_settings, name, value, what):
    with pytest.raises(DataError, match=what):
        make_settings(**{name: value})


def test_the_page_of_settings_is_up_to_date():
    """`make settings-page` writes it."""
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == page()


def test_gradient_checkpointing_changes_no_bit(make_settings, tmp_path):
    for name, switch in (("kept", False), ("recomputed", True)):
        job = Job.prepare(make_settings(gradient_checkpointing=switch))
        assert job.network.encoder.gradient_checkpointing is switch
        job.onion(tmp_path / name).run(passes=1)
    one, other = (snapshot(tmp_path / name) for name in ("kept", "recomputed"))
    names = [name for name in one if name.endswith(".safetensors")]
    assert names
    assert all(one[name] == other[name] for name in names)
