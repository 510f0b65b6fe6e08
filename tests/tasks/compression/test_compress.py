"""Compressed runs: smaller, taught by what they were made of, read like every run; resumed; what is refused."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from onion import Forward, GradientMachine, OnionError
from onion.cli import main
from onion.errors import CheckpointError, DataError
from onion.models.families import read_config
from onion.tasks.compression import compress as module
from onion.tasks.compression.compress import CompressJob, compress, train
from onion.tasks.compression.settings import CompressSettings
from onion.tasks.data.features.cache import cached_features
from onion.tasks.data.features.examples import Examples
from onion.tasks.export.export import export
from onion.tasks.export.manifest import is_exported
from onion.tasks.finetune.fine_tune import train as fine_tuned
from onion.tasks.finetune.inference import evaluate, predict_texts
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.run_files import read_json
from onion.tasks.publishing.push import write
from onion.tasks.teaching.comparison import figures
from onion.testing import assert_resumes_exactly
from tests.models.helpers import arrays_of, assert_equal_bits, close
from tests.tasks.export.conftest import KINDS, run_of  # noqa: F401  a fixture
from tests.tasks.helpers import films, of_dev, snapshot, write_tsv

SHORT = {"batch_size": 16, "learning_rate": 6e-3, "passes": 8, "test_every": "pass"}


@pytest.fixture(scope="module")
def run(make_settings, tmp_path_factory):
    """A run that knows its task well."""
    out = tmp_path_factory.mktemp("teacher") / "out"
    fine_tuned(make_settings(passes=8), out)
    return out


@pytest.fixture
def given(run, films_folder):
    """The settings of a short compression; keyword arguments replace some."""

    def make(**changes):
        files = {"train": str(films_folder / "train.tsv"), "dev": str(films_folder / "dev.tsv")}
        return {"run": str(run), **files, **SHORT, **changes}

    return make


@pytest.mark.parametrize(
    ("sizes", "heads", "neurons", "layers"),
    [({"width": 0.5}, 2, 32, 2), ({"layers": 1}, 4, 64, 1), ({"width": 0.25, "layers": 1}, 1, 16, 1)],
)
def test_a_compressed_run_is_smaller_and_read_like_every_run(
    sizes, heads, neurons, layers, given, films_folder, tmp_path
):
    report = train(CompressSettings.of(given(**sizes)), tmp_path / "out", quiet=True).report
    config = read_config(tmp_path / "out" / "config.json")
    found = config.num_attention_heads, config.intermediate_size, config.num_hidden_layers, config.head_size
    assert found == (heads, neurons, layers, 8)
    assert report["student.parameters"] < report["teacher.parameters"]
    assert report["dev.accuracy"] >= 0.9
    assert evaluate(tmp_path / "out", films_folder / "dev.tsv") == {**of_dev(report), "rows": 70}
    (predicted,) = predict_texts(tmp_path / "out", ["a lovely warm film"])
    assert predicted["label"] == "good"


def job_of(given):
    settings = CompressSettings.of(given)
    return CompressJob.of(settings, module.loaded(settings))


def logits(network, job):
    batch = job.task.collate(Examples.of([job.dev_set[row] for row in range(8)]), job.tokenizer.pad_id)
    network.eval()
    return network(batch).numpy()


def test_it_begins_with_what_matters_most_and_with_the_head(given, run):
    job = job_of(given(width=0.5))
    original = Predictor.load(run)
    close(logits(job.teacher.network, job), logits(original.network, job))  # sorted, and the same
    ours, theirs = (dict(each.named_parameters()) for each in (job.network, job.teacher.network))
    layer = "encoder.encoder.layers.1.linear1.weight"
    np.testing.assert_array_equal(ours[layer].numpy(), theirs[layer].numpy()[:, :32])
    assert (ours[layer].numpy() != dict(original.network.named_parameters())[layer].numpy()[:, :32]).any()
    np.testing.assert_array_equal(ours["classifier.weight"].numpy(), theirs["classifier.weight"].numpy())


def test_layers_alone_are_copies(given, run):
    job = job_of(given(layers=1))
    ours = dict(job.network.named_parameters())
    theirs = dict(Predictor.load(run).network.named_parameters())
    for path, parameter in ours.items():
        np.testing.assert_array_equal(parameter.numpy(), theirs[path].numpy())


def test_the_loss_at_the_full_size_is_none(given, tmp_path, monkeypatch):
    """A student that is its teacher, without dropout, has nothing to learn; the command refuses to train it."""
    monkeypatch.setattr(module, "loaded", lambda settings: Predictor.load(settings.run))
    job = job_of(given(layers=2))
    runner = job.onion(tmp_path / "out")
    student = runner[GradientMachine].network
    student.eval()
    batch = job.task.collate(Examples.of([job.train_set[row] for row in range(8)]), job.tokenizer.pad_id)
    taught = {**batch, "teacher": runner[Forward].network(batch)}
    assert float(runner[GradientMachine].loss(student(batch), taught)) == pytest.approx(0, abs=1e-6)
    assert_equal_bits(arrays_of(job.network), arrays_of(job.teacher.network))


def test_the_teacher_is_not_trained_and_labels_are_not_read(given, films_folder, tmp_path):
    other = films_folder / "train.tsv"
    wrong = write_tsv(tmp_path / "wrong.tsv", [(text, "good") for text, _ in films(128, seed=1)])
    sides = []
    for number, path in enumerate((other, wrong)):
        runner = compress(given()["run"], path, given()["dev"], tmp_path / str(number), layers=1, **SHORT)
        before = arrays_of(runner[Forward].network.network)
        runner.run(steps=3)
        assert_equal_bits(arrays_of(runner[Forward].network.network), before)
        sides.append(arrays_of(runner[GradientMachine].network.network))
    assert_equal_bits(*sides)


@pytest.mark.parametrize("changes", [{"width": 0.5}, {"width": 0.5, "layers": 1, "gradient_accumulation_steps": 2}])
def test_it_resumes_exactly(changes, given, tmp_path):
    def make(folder):
        settings = given(**changes, test_every=3)
        return job_of(settings).onion(folder / "out")

    assert_resumes_exactly(make, tmp_path, steps=6, cuts=[4])


def as_flags(settings):
    return [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def test_the_command_trains_and_the_same_command_tells_the_figures_again(given, tmp_path, capsys):
    command = ["compress", "--output", str(tmp_path / "out"), "--quiet", *as_flags(given(width=0.5, passes=1))]
    reports = []
    for _ in range(2):
        assert main(command) == 0
        reports.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    assert reports[0]["dev.accuracy"] == reports[1]["dev.accuracy"]
    assert reports[0]["times_faster"] > 0


def test_the_best_model_is_exported_into_the_run_in_the_place_of_an_earlier_one(given, films_folder, tmp_path, capsys):
    command = [
        "compress",
        "--output",
        str(tmp_path / "out"),
        "--quiet",
        "--int8",
        "dynamic",
        "--vocab",
        given()["train"],
    ]
    for name, value in given(width=0.5, passes=1).items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    for _ in range(2):
        assert main(command) == 0
        report = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert (
            report["exported.accuracy"] == evaluate(tmp_path / "out" / "export", films_folder / "dev.tsv")["accuracy"]
        )
        assert report["exported.times_faster"] > 0


def test_a_training_is_not_resumed_with_another_teacher(given, make_settings, tmp_path):
    fine_tuned(make_settings(passes=1), tmp_path / "teacher")
    settings = given(run=str(tmp_path / "teacher"), width=0.5, passes=1)
    train(CompressSettings.of(settings), tmp_path / "out", quiet=True)
    shutil.rmtree(tmp_path / "teacher")
    fine_tuned(make_settings(passes=1, seed=2), tmp_path / "teacher")
    with pytest.raises(CheckpointError, match="the weights of the run are different"):
        train(CompressSettings.of(settings), tmp_path / "out", quiet=True)


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_is_compressed_and_exported(kind, run_of, tmp_path):  # noqa: F811
    trained_on = read_json(run_of(kind), "settings.json")
    files = {name: trained_on[name] for name in ("train", "dev")}
    settings = CompressSettings.of({"run": str(run_of(kind)), **files, **SHORT, "passes": 1, "width": 0.5})
    exporting = {"int8": "dynamic", "calibrate": None, "vocab": None}
    report = train(settings, tmp_path / "out", quiet=True, exporting=exporting).report
    for side in ("teacher.", "exported."):
        found = {name.removeprefix(side) for name in report if name.startswith(side)}
        assert found - {"parameters", "seconds_per_1000", "times_faster"} == {*of_dev(report)}
    assert report["student.parameters"] < report["teacher.parameters"]


def test_masked_words_are_those_of_the_tests_of_the_training(run_of, tmp_path):  # noqa: F811
    run = run_of("masked-lm")
    files = {name: read_json(run, "settings.json")[name] for name in ("train", "dev")}
    sizes = {"layers": 1, "passes": 1, "test_batch_size": 2}
    report = train(
        CompressSettings.of({"run": str(run), **files, **SHORT, **sizes}), tmp_path / "out", quiet=True
    ).report
    teacher, dev = Predictor.load(run), files["dev"]
    found = {size: figures(teacher, dev, 1, size)["perplexity"] for size in (2, 64)}
    assert report["teacher.perplexity"] == found[2] != found[64]
    assert evaluate(tmp_path / "out", dev)["perplexity"] == report["dev.perplexity"]


def test_heads_are_measured_where_every_pair_is_beyond_the_margin(run_of):  # noqa: F811
    run = run_of("matching, pairwise")
    files = {name: read_json(run, "settings.json")[name] for name in ("train", "dev")}
    settings = CompressSettings.of({"run": str(run), **files, **SHORT, "width": 0.5})
    teacher = Predictor.load(run)
    teacher.network._margin = -1.0
    before = arrays_of(teacher.network)
    module.sort_by_importance(teacher, cached_features(teacher.task, files["train"], teacher.tokenizer), settings)
    assert any((array != before[path]).any() for path, array in arrays_of(teacher.network).items())


def test_flags_of_the_export_are_checked_before_the_training(given, tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        train(CompressSettings.of(given(width=0.5)), tmp_path / "out", exporting={"vocab": tmp_path / "nothing.txt"})
    assert not (tmp_path / "out").exists()


def test_a_calibration_file_without_rows_is_refused_before_the_training(given, tmp_path):
    (tmp_path / "blank.txt").write_text("\n")
    exporting = {"int8": "static", "calibrate": tmp_path / "blank.txt"}
    with pytest.raises(DataError, match="has no row"):
        train(CompressSettings.of(given(width=0.5)), tmp_path / "out", exporting=exporting)
    assert not (tmp_path / "out").exists()


def test_a_link_is_not_replaced(given, run, tmp_path):
    export(run, tmp_path / "model")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "export").symlink_to(tmp_path / "model")
    with pytest.raises(DataError, match="move it away"):
        train(CompressSettings.of(given(width=0.5)), tmp_path / "out", exporting={"int8": "dynamic"})
    assert (tmp_path / "out" / "export").is_symlink()


def test_an_export_is_not_compressed(given, run, tmp_path):
    export(run, tmp_path / "model")
    with pytest.raises(
        CheckpointError, match="was made by onion export and has no checkpoint; give the run it was made"
    ):
        train(CompressSettings.of(given(run=str(tmp_path / "model"), width=0.5)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_that_was_killed_at_the_exchange_of_its_export_goes_on(given, tmp_path, monkeypatch):
    settings, out = CompressSettings.of(given(width=0.5, passes=1)), tmp_path / "out"
    train(settings, out, quiet=True, exporting={"int8": "dynamic"})
    before = snapshot(out / "export")
    (out / "export").rename(out / ".export.old")
    with monkeypatch.context() as patched:
        patched.setattr(module, "export", no_room)
        with pytest.raises(DataError, match="no room"):
            train(settings, out, quiet=True, exporting={"int8": "dynamic"})
    assert snapshot(out / "export") == before
    train(settings, out, quiet=True, exporting={"int8": "dynamic"})
    assert is_exported(out / "export")
    assert not list(out.glob(".export*"))


def test_what_a_killed_export_left_is_removed(given, tmp_path):
    settings, out = CompressSettings.of(given(width=0.5, passes=1)), tmp_path / "out"
    train(settings, out, quiet=True)
    (out / "..export.new.x1y2z3" / "folder").mkdir(parents=True)
    train(settings, out, quiet=True, exporting={"int8": "dynamic"})
    assert is_exported(out / "export")
    assert not [path for path in out.iterdir() if "export." in path.name]


def test_one_that_is_killed_while_the_earlier_export_is_deleted_goes_on(given, tmp_path, monkeypatch):
    def killed(folder, ignore_errors=False):
        (folder / "export.json").unlink()
        raise KeyboardInterrupt

    settings, out = CompressSettings.of(given(width=0.5, passes=1)), tmp_path / "out"
    train(settings, out, quiet=True, exporting={"int8": "dynamic"})
    with monkeypatch.context() as patched:
        patched.setattr(module, "shutil", SimpleNamespace(rmtree=killed))
        with pytest.raises(KeyboardInterrupt):
            train(settings, out, quiet=True, exporting={"int8": "dynamic"})
    train(settings, out, quiet=True, exporting={"int8": "dynamic"})
    assert is_exported(out / "export")
    assert not [path for path in out.iterdir() if "export." in path.name]


def no_room(*arguments, **more):
    raise DataError("no room")


def test_a_folder_of_someone_else_is_not_replaced(given, tmp_path):
    (tmp_path / "out" / "export").mkdir(parents=True)
    (tmp_path / "out" / "export" / "mine").write_text("mine")
    before = snapshot(tmp_path / "out")
    with pytest.raises(DataError, match="was not made by onion export; move it away"):
        train(CompressSettings.of(given(width=0.5)), tmp_path / "out", exporting={"int8": "dynamic"})
    assert snapshot(tmp_path / "out") == before


def test_an_export_that_fails_leaves_the_earlier_one(given, tmp_path, monkeypatch):
    settings = CompressSettings.of(given(width=0.5, passes=1))
    train(settings, tmp_path / "out", quiet=True, exporting={"int8": "dynamic"})
    before = snapshot(tmp_path / "out" / "export")

    def fail(*arguments, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("onion.tasks.compression.compress.export", fail)
    with pytest.raises(OSError, match="No space left"):
        train(settings, tmp_path / "out", quiet=True, exporting={"int8": "dynamic"})
    assert snapshot(tmp_path / "out" / "export") == before


def test_what_is_compressed_can_be_exported_and_compressed_again(given, films_folder, tmp_path):
    train(CompressSettings.of(given(width=0.5, passes=1)), tmp_path / "half", quiet=True)
    manifest = export(tmp_path / "half", tmp_path / "model")
    assert manifest["compared"]["largest_difference"] < 1e-5
    again = Predictor.load(tmp_path / "model")
    text = ["a lovely warm film"]
    (ours,), (theirs,) = again(again.task.text_rows(text)), predict_texts(tmp_path / "half", text)
    assert ours["label"] == theirs["label"]
    settings = CompressSettings.of(given(run=str(tmp_path / "half"), width=0.5, layers=1, passes=1))
    train(settings, tmp_path / "quarter", quiet=True)
    config = read_config(tmp_path / "quarter" / "config.json")
    assert (config.num_attention_heads, config.intermediate_size, config.head_size) == (1, 16, 8)


def test_it_cannot_be_pushed_since_transformers_has_no_such_encoder(given, tmp_path):
    train(CompressSettings.of(given(width=0.5, passes=1)), tmp_path / "half", quiet=True)
    with pytest.raises(OnionError, match="heads were removed"):
        write(tmp_path / "half", tmp_path / "pushed", "ada/half")
    with pytest.raises(OnionError, match="heads were removed"):
        export(tmp_path / "half", tmp_path / "model", "huggingface")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "nothing becomes smaller"),
        ({"layers": 3}, "--layers 3: the run has 2; choose at most as many"),
        ({"layers": 2}, "nothing would become smaller than"),
        ({"width": 0.999}, "nothing would become smaller than"),
        ({"width": 2}, "width must be a number > 0 and <= 1"),
        ({"width": 0.5, "lora_rank": 2}, "unknown setting 'lora_rank'"),
        ({"layers": 0}, "layers must be an integer >= 1"),
    ],
)
def test_what_is_refused(changes, told, given, tmp_path):
    with pytest.raises(DataError, match=told):
        train(CompressSettings.of(given(**changes)), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_run(given, tmp_path):
    with pytest.raises(CheckpointError, match="holds no run"):
        train(CompressSettings.of(given(run=str(tmp_path), width=0.5)), tmp_path / "out")


def test_another_compression_in_the_folder_is_refused(given, tmp_path):
    train(CompressSettings.of(given(width=0.5, passes=1)), tmp_path / "out", quiet=True)
    before = snapshot(tmp_path / "out")
    with pytest.raises(CheckpointError, match="width"):
        train(CompressSettings.of(given(width=0.25, passes=1)), tmp_path / "out", quiet=True)
    assert snapshot(tmp_path / "out") == before
