import hashlib
import json
import shutil
from pathlib import Path

import attrs
import pytest

from onion import Observer, Runner
from onion.errors import CheckpointError, DataError
from onion.models.config import EncoderConfig
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.data.data_files import DataFiles
from onion.tasks.finetune.config_file import read_config, resolve
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.inference import evaluate, predict
from onion.tasks.finetune.initialization import Initialization
from onion.tasks.finetune.run_files import FROZEN, RUN_FILE, SETTINGS_FILE, TASK_FILE, read_json, write_json
from onion.tasks.finetune.run_folder import OWN_FILES, RunFolder, differences, read_record, settings_record
from onion.tasks.finetune.settings import Settings
from onion.tasks.registry import recorded_task
from onion.tasks.token_classification.task import TokenClassification
from onion.testing import Batches, Failing, PlannedError
from tests.tasks.helpers import snapshot

FITTED = Classification(labels=["bad", "good"], pairs=False)


@pytest.fixture
def settings(tmp_path):
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text(name)
    return Settings(task="classification", train=str(tmp_path / "a.tsv"), dev=str(tmp_path / "b.tsv"))


def test_the_record_holds_the_settings_and_the_sums_of_the_files(settings):
    record = settings_record(settings, files_of(settings))
    assert json.loads(json.dumps(record)) == record
    assert (record["passes"], record["learning_rate"], record["encoder"]) == (3, 5e-5, "minilm")
    assert record["train_sha256"] == hashlib.sha256(b"a.tsv").hexdigest()
    assert record["dev_sha256"] == hashlib.sha256(b"b.tsv").hexdigest()


def test_a_file_that_went_away(settings, tmp_path):
    (tmp_path / "b.tsv").unlink()
    with pytest.raises(DataError, match=r"b\.tsv: there is no such file"):
        settings_record(settings, files_of(settings))


@pytest.fixture
def folder_of(settings, encoder_folder):
    """A RunFolder; keyword arguments change the settings."""
    tokenizer, config = Tokenizer.from_pretrained(encoder_folder), EncoderConfig.read(encoder_folder)

    def make(out, task=FITTED, force=False, **changes):
        notes = {"a.tsv": {"texts cut": 2}}
        changed = attrs.evolve(settings, **changes)
        return RunFolder(out, changed, task, files_of(changed), tokenizer, config, notes, force)

    return make


def files_of(settings):
    return DataFiles(Path(settings.train), Path(settings.dev))


def run(folder, *items):
    return Runner(folder, *items, Batches(1)).run(passes=1)


def test_a_new_folder_is_made_claimed_and_filled(tmp_path, folder_of, settings, caplog):
    out = tmp_path / "deep" / "out"
    run(folder_of(out))
    record = read_record(out)
    assert {name: record[name] for name in settings_record(settings, files_of(settings))} == json.loads(
        json.dumps(settings_record(settings, files_of(settings)))
    )
    assert {path.name for path in out.iterdir()} == {RUN_FILE, *OWN_FILES} - {FROZEN}  # of adapters
    assert recorded_task(read_json(out, TASK_FILE), out).labels.names == ("bad", "good")
    assert "run_folder" in (out / "onion.txt").read_text()
    assert caplog.messages == ["a.tsv: texts cut: 2"]


def test_the_same_training_finds_its_folder_again(tmp_path, folder_of):
    for _ in range(2):
        run(folder_of(tmp_path / "out"))


def test_the_settings_are_a_config_file(tmp_path, folder_of):
    run(folder_of(tmp_path, learning_rate=1e-3, options={"max_length": 9, "labels": ["a", "b"]}))
    found = resolve(read_config(tmp_path / SETTINGS_FILE))
    assert (found.learning_rate, found.options) == (1e-3, {"max_length": 9, "labels": ["a", "b"]})


def test_another_run_is_refused_and_the_differences_are_told(tmp_path, folder_of):
    out = tmp_path / "out"
    run(folder_of(out))
    before = snapshot(out)
    (tmp_path / "a.tsv").write_text("something else")
    for attempt in (lambda: folder_of(out, learning_rate=1.0).look(), lambda: run(folder_of(out, learning_rate=1.0))):
        with pytest.raises(CheckpointError, match="another run") as caught:
            attempt()
        assert "learning_rate 5e-05 there, 1.0 here" in str(caught.value)
        assert "the train file has other content" in str(caught.value)
        assert "dev" not in str(caught.value).replace(str(tmp_path), "")
    assert snapshot(out) == before


def test_another_run_is_let_in_knowingly_and_the_folder_is_its_own_then(tmp_path, folder_of, caplog):
    run(folder_of(tmp_path / "out"))
    run(folder_of(tmp_path / "out", learning_rate=1.0, force=True))
    differs = f"continuing in {tmp_path / 'out'} although it differs: learning_rate 5e-05 there, 1.0 here"
    assert differs in caplog.messages
    run(folder_of(tmp_path / "out", learning_rate=1.0))
    with pytest.raises(PlannedError):  # as where the checkpoint that is there does not fit
        run(folder_of(tmp_path / "out", learning_rate=2.0, force=True), Failing("initialize"))
    run(folder_of(tmp_path / "out", learning_rate=1.0))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"holds config\.json, but no run of onion"):
        run(folder_of(tmp_path / "mine", force=True))


def test_other_labels_are_another_run_though_every_file_and_setting_is_the_same(tmp_path, folder_of):
    """As when label_map.json was changed between two starts."""
    run(folder_of(tmp_path))
    with pytest.raises(CheckpointError, match=r"labels \['bad', 'good'\] there, \['good', 'bad'\] here"):
        run(folder_of(tmp_path, Classification(labels=["good", "bad"], pairs=False)))


def test_the_same_bytes_under_another_ending_are_another_run(tmp_path, folder_of, settings):
    run(folder_of(tmp_path / "out"))
    for name in ("other.tsv", "a.txt"):
        (tmp_path / name).write_text("a.tsv")
    run(folder_of(tmp_path / "out", train=str(tmp_path / "other.tsv")))
    with pytest.raises(CheckpointError, match=r"another run \(the train file ends in \.tsv there, in \.txt here\)"):
        run(folder_of(tmp_path / "out", train=str(tmp_path / "a.txt")))


@pytest.mark.parametrize(("there", "here"), [("0.1", "0.2"), ("0.1", "1/5"), ("1/5", "2/5"), ("1/5", "b.tsv")])
def test_another_part_of_the_training_file_is_no_file_with_an_ending(there, here):
    assert list(differences({"dev": there}, {"dev": here})) == [f"dev {there} there, {here} here"]
    assert not list(differences({"dev": there}, {"dev": there}))


def test_an_option_is_told_by_its_name_and_what_is_said_twice_is_no_difference(tmp_path, folder_of):
    run(folder_of(tmp_path, options={"max_length": 128}))
    run(folder_of(tmp_path))
    with pytest.raises(CheckpointError, match=r"another run \(max_length 128 there, 64 here\)"):
        run(folder_of(tmp_path, Classification(pairs=False, max_length=64, labels=["bad", "good"])))


def test_another_tokenizer_is_another_run(tmp_path, folder_of):
    run(folder_of(tmp_path))
    folder = folder_of(tmp_path)
    folder._tokenizer.settings["do_lower_case"] = False
    with pytest.raises(CheckpointError, match="the tokenizer file has other content"):
        run(folder)


@pytest.mark.parametrize("name", [*OWN_FILES, "step-00000004"])
def test_a_folder_that_holds_what_a_run_would_overwrite_is_refused(tmp_path, folder_of, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("precious")
    for attempt in (folder_of(out).look, lambda: run(folder_of(out))):
        with pytest.raises(CheckpointError, match=f"holds {name}, but no run of onion"):
            attempt()
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).read_text() == "precious"


def test_a_folder_with_other_things_is_taken(tmp_path, folder_of):
    (tmp_path / "notes.txt").write_text("mine")
    run(folder_of(tmp_path))
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_file_in_the_place_of_the_folder(tmp_path, folder_of):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(CheckpointError, match=r"cannot write .*run\.json"):
        run(folder_of(tmp_path / "out"))


def test_looking_writes_nothing(tmp_path, folder_of):
    folder_of(tmp_path / "out").look()
    assert not (tmp_path / "out").exists()


def test_one_process_at_a_time_and_the_second_changes_nothing(tmp_path, folder_of):
    def second(state):
        before = (tmp_path / RUN_FILE).read_bytes()
        other = folder_of(tmp_path, learning_rate=1.0)
        for attempt in (other.look, lambda: run(other)):
            with pytest.raises(CheckpointError, match="is in use by"):
                attempt()
        assert (tmp_path / RUN_FILE).read_bytes() == before

    run(folder_of(tmp_path), Observer(initialize=second))
    run(folder_of(tmp_path))  # it let go


OLD_RECORD = """{
 "task": "classify", "train": "a.tsv", "dev": "b.tsv", "encoder": "minilm", "init": null, "init_head": false,
 "passes": 3, "batch_size": 32, "lr": 5e-05, "seed": 1, "test_every": null, "warmup": 0.1, "weight_decay": 0.01,
 "clip": 1.0, "best": "f1", "stream": false, "options": {},
 "train_sha256": "0aec", "dev_sha256": "7e2f", "tokenizer_sha256": "51c3",
 "fitted": {"task": "classify", "max_length": 128, "pairs": false, "labels": ["bad", "good"]}
}"""


def test_a_record_with_the_old_names_is_read_with_the_new_ones(tmp_path):
    (tmp_path / RUN_FILE).write_text(OLD_RECORD)
    old = json.loads(OLD_RECORD)
    renamed = {"task", "init", "lr", "warmup", "clip", "best", "fitted"}
    assert read_record(tmp_path) == {
        **{name: value for name, value in old.items() if name not in renamed},
        **{"task": "classification", "init_from": None, "learning_rate": 5e-5, "warmup_ratio": 0.1},
        **{"max_grad_norm": 1.0, "monitor": "f1", "fitted": {**old["fitted"], "task": "classification"}},
    }


def with_old_names(folder):
    """Write the records of a run as they were before settings and tasks were renamed."""
    record, task = read_json(folder, RUN_FILE), read_json(folder, TASK_FILE)
    old = json.loads(OLD_RECORD)
    places = ["init_from", "learning_rate", "warmup_ratio", "max_grad_norm", "monitor"]
    for new, name in zip(places, ["init", "lr", "warmup", "clip", "best"], strict=True):
        assert name in old
        record[name] = record.pop(new)
    for each in (record, record["fitted"], task):
        each["task"] = "classify"
    write_json(folder / RUN_FILE, record)
    write_json(folder / TASK_FILE, task)


def test_a_run_with_the_old_names_is_resumed_evaluated_and_predicted_from(trained, make_settings, tmp_path):
    folder, result = shutil.copytree(trained[0], tmp_path / "old"), trained[1]
    written, dev = (folder / RUN_FILE).read_bytes(), make_settings().dev
    with_old_names(folder)
    assert b'"lr": ' in (folder / RUN_FILE).read_bytes()
    assert read_record(folder) == json.loads(written)
    assert evaluate(folder, dev) == evaluate(trained[0], dev)
    assert list(predict(folder, dev)) == list(predict(trained[0], dev))
    start = Initialization.of(make_settings(init_from=str(folder), init_head=True))
    start.network(recorded_task(read_json(folder, TASK_FILE), TASK_FILE))
    with pytest.raises(CheckpointError, match=r"another run \(learning_rate 0\.006 there, 1\.0 here\)"):
        train(make_settings(learning_rate=1.0), folder)
    again = train(make_settings(task="classify"), folder).report
    assert {**again, "output": None, "seconds": None} == {**result.report, "output": None, "seconds": None}
    assert (folder / RUN_FILE).read_bytes() == written


@pytest.mark.parametrize("told", [{"punctuation"}, {"stride"}])
def test_a_setting_that_came_later_is_a_difference_if_it_affects_the_training(tmp_path, folder_of, told):
    task = TokenClassification(labels=["O", "B-PER"], punctuation=True, stride=4)
    run(folder_of(tmp_path, task))
    record = read_json(tmp_path, RUN_FILE)
    write_json(tmp_path / RUN_FILE, {**record, "fitted": {k: v for k, v in record["fitted"].items() if k not in told}})
    if told == {"stride"}:
        with pytest.raises(CheckpointError, match=r"another run \(stride None there, 4 here\)"):
            run(folder_of(tmp_path, task))
    else:
        run(folder_of(tmp_path, task))
        assert read_json(tmp_path, RUN_FILE) == record
        with pytest.raises(CheckpointError, match="punctuation True there, False here"):
            run(folder_of(tmp_path, attrs.evolve(task, punctuation=False)))


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff", b"[]"])
def test_a_record_that_is_missing_or_damaged(tmp_path, content):
    if content is not None:
        (tmp_path / RUN_FILE).write_bytes(content)
    with pytest.raises(CheckpointError, match=r"run\.json is missing or damaged"):
        read_record(tmp_path)


def test_json_of_any_language_comes_back(tmp_path):
    write_json(tmp_path / "x.json", ["so so", "中立", "é"])
    assert read_json(tmp_path, "x.json") == ["so so", "中立", "é"]
    assert "中立" in (tmp_path / "x.json").read_text(encoding="utf-8")
