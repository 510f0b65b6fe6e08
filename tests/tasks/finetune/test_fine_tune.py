import os
import random
import shutil
import signal

import attrs
import numpy as np
import paddle
import pytest

from onion import Accumulate, DataProvider, GradientMachine, NanGuard, Observer, ParameterUpdater
from onion.checkpointing.checkpoint import newest, read, steps_in
from onion.errors import CheckpointError, DataError, OnionError, WeightsError
from onion.models.config import EncoderConfig
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.data.data_files import DataFiles
from onion.tasks.data.features import hashing
from onion.tasks.finetune.fine_tune import Job, fine_tune, train
from onion.tasks.finetune.run_files import TASK_FILE, read_json
from onion.tasks.finetune.run_folder import RunFolder, read_record, settings_record
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.registry import recorded_task
from tests.tasks.helpers import films, log_rows, snapshot, write_tsv


def test_the_report(trained):
    out, result = trained
    report = result.report
    tests = {row["step"]: row["dev.accuracy"] for row in log_rows(out) if "dev.accuracy" in row}
    assert result.signal is None
    assert report["step"] == 16
    assert sorted(tests) == [2, 4, 6, 8, 10, 12, 14, 16]  # four times a pass of 8 steps
    assert report["dev.accuracy"] == max(tests.values()) == tests[report["best_step"]]
    best = read(out / f"step-{report['best_step']:08d}")
    assert best.run["metrics"]["dev.accuracy"] == report["dev.accuracy"]
    assert report["majority_accuracy"] >= 0.5
    assert {"dev.f1", "dev.f1_macro", "seconds", "output"} < report.keys()


def test_it_learns(make_settings, tmp_path):
    """In 16 steps, as above, a network may be no better than the majority."""
    assert train(make_settings(passes=8), tmp_path / "out").report["dev.accuracy"] > 0.9


def test_the_folder_holds_all_that_a_reader_of_texts_needs(trained, make_settings, encoder_folder):
    out, result = trained
    settings = make_settings()
    record = settings_record(settings, DataFiles.of(settings.train, settings.dev, {}, 1))
    assert {name: read_record(out)[name] for name in record} == record
    task = recorded_task(read_json(out, TASK_FILE), TASK_FILE)
    assert (task.labels.names, task.pairs, task.max_length) == (("bad", "good"), False, 16)
    assert EncoderConfig.read(out) == EncoderConfig.read(encoder_folder)
    text = ["a lovely film"]
    kept, original = Tokenizer.from_pretrained(out), Tokenizer.from_pretrained(encoder_folder)
    assert kept(text)[0].ids.tolist() == original(text)[0].ids.tolist()
    assert set(steps_in(out)) == {result.report["best_step"], 16}
    assert newest(out).run["counters"]["pass_id"] == 2
    assert "Saver" in (out / "onion.txt").read_text(encoding="utf-8")
    assert (out / "onion.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(trained, make_settings, tmp_path):
    out, result = trained
    again = train(make_settings(), tmp_path / "again").report
    other = train(make_settings(seed=2), tmp_path / "other").report
    name = "step-00000016/gradient_machine.safetensors"
    assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()
    assert (tmp_path / "other" / name).read_bytes() != (out / name).read_bytes()
    assert log_rows(tmp_path / "again") == log_rows(out)
    assert again["dev.accuracy"] == result.report["dev.accuracy"]
    assert other["step"] == 16


@pytest.mark.parametrize("stream", [False, True])
def test_a_second_start_reads_the_training_file_once_for_its_digest(make_settings, tmp_path, monkeypatch, stream):
    path = write_tsv(tmp_path / "train.tsv", films(64, seed=1))
    os.utime(path, (1e9, 1e9))  # nobody writes to it
    settings = make_settings(train=str(path), stream=stream)
    first = Job.prepare(settings)
    hashing._known.clear()  # as in a new process
    rows, read, whole = Classification.rows, hashing._sum, []

    def others_only(self, data, labelled):
        assert data != str(path)
        return rows(self, data, labelled)

    monkeypatch.setattr(Classification, "rows", others_only)
    monkeypatch.setattr(hashing, "_sum", lambda file: whole.append(file.name) or read(file))
    job = Job.prepare(settings)
    job.onion(tmp_path / "out")[RunFolder].look()
    (tmp_path / "out").mkdir()
    job.onion(tmp_path / "out")[RunFolder].look()
    assert (job.task, len(job.train_set)) == (first.task, 64)
    assert whole.count(str(path)) == 1


def test_ctrl_c_leaves_the_program_in_good_order_and_the_next_one_goes_on(make_settings, tmp_path):
    stop = Observer(on_batch_end=lambda state: signal.raise_signal(signal.SIGINT) if state.step == 3 else None)
    runner = Job.prepare(make_settings()).onion(tmp_path / "out").insert_before(DataProvider, stop)
    with pytest.raises(SystemExit) as caught:
        runner.run(passes=2)
    assert caught.value.code == 128 + signal.SIGINT
    assert steps_in(tmp_path / "out")[-1] == 3
    assert runner.without(Observer).run(passes=2).step == 16


def test_no_trace_of_a_training_that_could_not_begin(make_settings, encoder_folder, tmp_path):
    narrow = shutil.copytree(encoder_folder, tmp_path / "narrow")
    config = (narrow / "config.json").read_text()
    (narrow / "config.json").write_text(config.replace('"hidden_size": 32', '"hidden_size": 16'))
    with pytest.raises(WeightsError, match="misshapen"):
        train(make_settings(encoder=str(narrow)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("stream", [False, True])
def test_the_rate_falls_to_nothing_whatever_is_put_into_the_onion(make_settings, tmp_path, stream):
    given = attrs.asdict(make_settings(passes=2, stream=stream), recurse=False)
    own = {name: value for name, value in given.items() if name not in ("task", "train", "dev")}
    whole = fine_tune(given["task"], given["train"], given["dev"], tmp_path / "out", **own)
    runner = whole.insert_before(GradientMachine, Accumulate(3)).without(NanGuard)
    assert runner.run(passes=2).step == 6  # 8 batches a pass: 3, 3 and 2
    assert runner[ParameterUpdater].optimizer.get_lr() == 0


def test_a_folder_of_weights_is_never_taken_for_the_output(make_settings, encoder_folder):
    before = snapshot(encoder_folder)
    with pytest.raises(CheckpointError, match=r"holds config\.json, but no run of onion"):
        train(make_settings(), encoder_folder)
    assert snapshot(encoder_folder) == before


def test_test_every_and_fewer_examples_than_a_batch(make_settings, tmp_path):
    path = write_tsv(tmp_path / "few.tsv", [("a", "good"), ("lovely", "bad"), ("film", "good")])
    report = train(make_settings(train=str(path), passes=3, test_every=2, batch_size=64), tmp_path / "out").report
    assert report["step"] == 3
    assert [row["step"] for row in log_rows(tmp_path / "out") if "dev.accuracy" in row] == [2]


def test_no_test_within_the_run(make_settings, tmp_path):
    report = train(make_settings(passes=1, test_every=100), tmp_path / "out").report
    assert (report["step"], report["best_step"]) == (8, 8)
    assert "dev.accuracy" not in report


@pytest.mark.parametrize("monitor", ["acuracy", "dev.f1_makro", "dev.dev.accuracy"])
def test_a_figure_that_the_test_does_not_have_is_refused_before_anything_is_written(monitor, make_settings, tmp_path):
    with pytest.raises(
        DataError, match=f"monitor: the test has no metric '{monitor}'; it has accuracy, f1_macro, matthews, f1"
    ):
        train(make_settings(monitor=monitor), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_best_of_an_error_is_the_smallest(make_settings, tmp_path):
    rows = [(text, str(float(label == "good"))) for text, label in films(40, seed=4)]
    data, out = str(write_tsv(tmp_path / "numbers.tsv", rows)), tmp_path / "out"
    settings = {"train": data, "dev": data, "passes": 4, "learning_rate": 1e-3, "test_every": 1}
    report = train(make_settings(task="regression", monitor="mean_squared_error", **settings), out).report
    errors = [row["dev.mean_squared_error"] for row in log_rows(out) if "dev.mean_squared_error" in row]
    assert report["dev.mean_squared_error"] == min(errors) < max(errors)


def test_a_training_that_has_gone_astray_ends_with_an_error(make_settings, tmp_path, encoder_folder):
    with pytest.raises(OnionError, match="nan_guard: step 50 has the loss nan; a smaller learning rate"):
        train(make_settings(passes=7, learning_rate=1e30), tmp_path / "out")


def test_seeds():
    drawn = []
    for seed in (5, 5, 6):
        seed_everything(seed)
        drawn.append((random.random(), np.random.rand(), paddle.rand([1]).item()))
    assert drawn[0] == drawn[1]
    assert all(one != other for one, other in zip(drawn[1], drawn[2], strict=True))


@pytest.mark.parametrize("task", ["classification", Classification()])
def test_a_setting_that_there_is_not(films_folder, tmp_path, task):
    data = films_folder / "train.tsv"
    with pytest.raises(DataError, match=r"unknown setting 'max_length'; a training has .*; .* in options="):
        fine_tune(task, data, data, tmp_path / "out", max_length=8)
