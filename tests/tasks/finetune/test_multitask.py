"""Several tasks over one encoder: from a config file to predictions."""

import json

import numpy as np
import pytest

from onion import Accumulate, ForTask, Forward, GradientMachine, TaskSampler, Tester
from onion.checkpointing.run_state import best_checkpoint
from onion.errors import CheckpointError, DataError
from onion.multitask import strategies
from onion.tasks.finetune.config_file import read_config, resolve
from onion.tasks.finetune.fine_tune import fine_tune, prepare, train
from onion.tasks.finetune.inference import evaluate, predict_texts
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.run_files import RUN_FILE, SETTINGS_FILE, read_json
from onion.tasks.finetune.run_folder import read_record
from tests.tasks.helpers import films, snapshot, write_tsv


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    rows = films(96, seed=1)
    write_tsv(folder / "films.tsv", rows)
    write_tsv(folder / "dev.tsv", films(48, seed=2))
    write_tsv(folder / "other.tsv", films(48, seed=3))
    write_tsv(folder / "scores.tsv", [(text, "1.5" if label == "good" else "-1.5") for text, label in rows])
    (folder / "plain.txt").write_text("\n".join(text for text, _ in rows) + "\n")
    return folder


@pytest.fixture
def config(files, encoder_folder):
    """Return the settings of three tasks; keyword arguments replace some, and `tasks` those of tasks."""

    def make(tasks=None, **changes):
        entries = {
            "films": {"task": "classification", "train": str(files / "films.tsv"), "dev": str(files / "dev.tsv")},
            "scores": {"task": "regression", "train": str(files / "scores.tsv"), "mix_ratio": 0.5, "target": False},
            "words": {"task": "masked-lm", "train": str(files / "plain.txt"), "mix_ratio": 0.5, "target": False},
        }
        for name, entry in (tasks or {}).items():
            entries[name] = {**entries.get(name, {}), **entry}
        usual = {"encoder": str(encoder_folder), "passes": 2, "batch_size": 16, "learning_rate": 6e-3, "max_length": 16}
        return {**usual, **changes, "tasks": entries}

    return make


def onion_of(config, folder):
    return prepare(resolve(config)).onion(folder)


def test_three_tasks_from_a_file_to_predictions(config, files, tmp_path):
    path = tmp_path / "joint.json"
    path.write_text(json.dumps(config()))
    out = tmp_path / "out"
    settings = resolve(read_config(path))
    report = train(settings, out).report
    record = read_record(out)
    assert record["tasks"].keys() == record["fitted"]["tasks"].keys() == {"films", "scores", "words"}
    assert record["tasks"]["films"]["options"] == {"max_length": 16}
    found = evaluate(out, str(files / "dev.tsv"), task_name="films", report=out / "report")
    assert report["films.accuracy"] == found["accuracy"]
    told = read_json(out / "report", "report.json")
    assert (told["task"], told["figures"]) == ("films", found)
    assert report["films.majority_accuracy"] >= 0.5
    (found,) = predict_texts(out, ["a lovely film"], task_name="films")
    assert found["label"] in ("good", "bad")
    (value,) = predict_texts(out, ["a lovely film"], task_name="scores")
    assert isinstance(value["value"], float)
    assert resolve(read_config(out / SETTINGS_FILE)) == settings


def test_the_order_is_that_of_each_task(config, tmp_path):
    own = {"films": {"class_balanced": True}, "words": {"stream": True, "shuffle_buffer": 9}}
    tasks = onion_of(config(own), tmp_path)[TaskSampler].tasks
    orders = [tasks[name].provider.loader.settings for name in ("films", "scores", "words")]
    assert [["weights" in each, each.get("shuffle_buffer")] for each in orders] == [[1, None], [0, None], [0, 9]]


def test_the_plan_follows_the_mix_ratios_and_the_reference_task(config, tmp_path):
    runner = onion_of(config(), tmp_path)
    tasks = runner[TaskSampler].tasks
    assert {name: (task.mix_ratio, task.target) for name, task in tasks.items()} == {
        "films": (1.0, True),
        "scores": (0.5, False),
        "words": (0.5, False),
    }
    assert runner[Tester].every == (6 + 3 + 3) // 4
    state = runner.run(passes=2)
    assert state.metrics["share.films"] == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"strategy": "uniform"}, strategies.Uniform),
        ({"strategy": "temperature", "temperature": 3}, strategies.Temperature),
        ({"strategy": "round-robin"}, strategies.RoundRobin),
        ({"strategy": "by-size"}, strategies.BySize),
        ({"strategy": "by-loss"}, strategies.ByLoss),
        ({}, strategies.MixRatio),
    ],
)
def test_the_strategy(config, tmp_path, changes, kind):
    strategy = onion_of(config(**changes), tmp_path)[TaskSampler].strategy
    assert type(strategy) is kind
    assert getattr(strategy, "temperature", 3 if "temperature" in changes else None) in (3, 1.0, None)


def test_a_head_has_a_rate_of_its_own(config, tmp_path):
    network = onion_of(config({"scores": {"learning_rate": 6e-2}}), tmp_path)[GradientMachine].network
    rates = {path: each.optimize_attr["learning_rate"] for path, each in network.named_parameters()}
    of_scores = {path for path in rates if path.startswith("networks.scores.")}
    assert of_scores
    assert {path: rate for path, rate in rates.items() if rate != 1} == dict.fromkeys(of_scores, pytest.approx(10))


def test_a_shared_head_is_one_object_and_predicts_for_both(config, files, tmp_path):
    tasks = {"more": {"task": "classification", "train": str(files / "other.tsv"), "share_head_with": "films"}}
    out = tmp_path / "out"
    train(resolve(config(tasks)), out)
    one, other = (Predictor.load(out, task_name=name).network.state_dict() for name in ("films", "more"))
    assert all((one[path].numpy() == other[path].numpy()).all() for path in one)
    runner = onion_of(config(tasks), tmp_path / "again")
    networks = runner[GradientMachine].network.networks
    assert networks["more"] is networks["films"]


def test_a_teacher_is_frozen_and_changes_what_is_learned(config, trained, tmp_path):
    taught = {"films": {"teacher": str(trained[0]), "teacher_weight": 1.0}}
    runner = onion_of(config(taught), tmp_path / "taught")
    forward = next(item for item in runner.walk() if isinstance(item, Forward))
    before = {path: each.numpy().copy() for path, each in forward.network.named_parameters()}
    assert [item.task for item in runner.all(ForTask)] == ["films", "films", "words"]
    runner.run(passes=2)
    assert all((each.numpy() == before[path]).all() for path, each in forward.network.named_parameters())
    alone = onion_of(config(), tmp_path / "alone")
    alone.run(passes=2)
    states = [each[GradientMachine].network.state_dict() for each in (runner, alone)]
    names = [name for name in states[0] if name.startswith("networks.films")]
    assert any((states[0][name].numpy() != states[1][name].numpy()).any() for name in names)


def test_accumulation_average_and_resumption_to_the_bit(config, tmp_path):
    given = config(gradient_accumulation_steps=2, ema_decay=0.9, early_stopping=9, keep_last=9)
    assert Accumulate in onion_of(given, tmp_path / "shown")
    onion_of(given, tmp_path / "whole").run(passes=2)
    onion_of(given, tmp_path / "cut").run(steps=4)
    onion_of(given, tmp_path / "cut").run(passes=2)
    last = sorted(path.name for path in (tmp_path / "whole").glob("step-*"))[-1]
    one, other = (snapshot(tmp_path / name / last) for name in ("whole", "cut"))
    assert one.keys() == other.keys() >= {"gradient_machine.safetensors", "moving_average.safetensors"}
    assert all(one[name] == other[name] for name in one if name.endswith(".safetensors"))


def test_another_training_in_the_folder_is_told_by_task(config, files, tmp_path):
    train(resolve(config(passes=1)), tmp_path / "out")
    other = r"holds another run \(passes 1 there, 3 here; scores: mix_ratio 0\.5 there, 0\.25 here\)"
    with pytest.raises(CheckpointError, match=other):
        train(resolve(config({"scores": {"mix_ratio": 0.25}}, passes=3)), tmp_path / "out")
    few = config(passes=1)
    del few["tasks"]["words"]
    with pytest.raises(CheckpointError, match="tasks 'films', 'scores', 'words' there, 'films', 'scores' here"):
        train(resolve(few), tmp_path / "out")


def test_several_tasks_begin_from_another_run(config, trained, tmp_path):
    runner = onion_of(config(init_from=str(trained[0])), tmp_path / "out")
    network, learned = runner[GradientMachine].network, best_checkpoint(trained[0]).items["gradient_machine"]
    own = network.state_dict()
    paths = [path for path in learned if path.startswith("encoder.")]
    assert all((own[path].numpy() == np.asarray(learned[path])).all() for path in paths)


def test_in_python_a_mapping_or_a_list(config, tmp_path):
    given = config()
    tasks = {name: {**entry, "max_length": 16} for name, entry in given["tasks"].items()}
    general = {name: value for name, value in given.items() if name not in ("tasks", "max_length")}
    by_name = fine_tune(tasks, output=tmp_path / "a", **general)
    as_list = fine_tune([{**entry, "name": name} for name, entry in tasks.items()], output=tmp_path / "b", **general)
    assert by_name.run(steps=5).metrics == as_list.run(steps=5).metrics
    with pytest.raises(DataError, match="two tasks are called 'classification'; give each a name"):
        fine_tune([{"task": "classification"}, {"task": "classification"}], output=tmp_path / "c")
    with pytest.raises(DataError, match="each of several tasks has its own train and dev"):
        fine_tune(tasks, "a.tsv", "b.tsv", tmp_path / "c")
    with pytest.raises(DataError, match="unknown setting 'options'"):
        fine_tune(tasks, output=tmp_path / "c", options={})


@pytest.mark.parametrize(
    ("tasks", "changes", "what"),
    [
        ({"films": {"taks": 1}}, {}, "tasks: 'films': unknown setting 'taks'; the task classification has max_length"),
        ({"films": {"mix_ratio": 0}}, {}, "tasks: 'films': mix_ratio must be a number > 0, got 0"),
        ({"new": {"task": "classification"}}, {}, "tasks: 'new' has no train; add it to its entry"),
        ({"new": {"train": "a.tsv"}}, {}, "tasks: 'new' has no task; add it to its entry"),
        ({"words": {"share_head_with": "film"}}, {}, "share_head_with names 'film'; did you mean 'films'?"),
        ({"words": {"share_head_with": "films"}}, {}, "'films' is of the kind classification, which has another head"),
        ({"scores": {"teacher": "run"}}, {}, "a teacher is for the kinds classification, matching, not regression"),
        ({"films": {"target": False}}, {}, "all are auxiliary, so the training would never end; make one a target"),
        ({"films": {"dev": None}}, {"early_stopping": 1}, "early_stopping needs a task with a dev file to test on"),
        ({"films": {"dev": None}}, {"monitor": "films.f1"}, "monitor needs a task with a dev file to test on"),
        ({}, {"strategy": "mixed"}, "strategy must be one of mix-ratio, uniform"),
        ({}, {"reference": "nope"}, "reference must be one of the targets 'films', got 'nope'"),
        ({}, {"reference": "scores"}, "reference must be one of the targets 'films', got 'scores'"),
        (
            {"films": {"stream": True}},
            {},
            "'films' is a stream, by whose passes no others can be planned; name a target",
        ),
        ({"a.b": {"task": "masked-lm", "train": "x"}}, {}, "tasks: a name cannot have a '.'"),
        ({}, {"columns": {"text_a": "x"}}, "columns is a setting of one task; with several, write it into the entry"),
        ({}, {"train": "a.tsv"}, "train is a setting of one task; with several, write it into the entry of a task"),
        ({}, {"shuffle_buffer": 9}, "shuffle_buffer is a setting of one task; with several, write it into the entry"),
        ({}, {"init_head": True}, "init_head is a setting of one task; leave it out with several"),
        ({}, {"max_lenght": 9}, "unknown setting 'max_lenght': neither a training nor one of its tasks has it"),
        ({}, {"monitor": "accuracy"}, "monitor: 'accuracy' names no task that is tested; write TASK.METRIC"),
        ({}, {"monitor": "films.f2"}, "the test has no metric 'f2'; it has accuracy"),
    ],
)
def test_what_is_refused(config, tmp_path, tasks, changes, what):
    with pytest.raises(DataError, match=what.replace("?", r"\?")):
        onion_of(config(tasks, **changes), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_dev_files_the_newest_checkpoint_predicts(config, tmp_path):
    report = train(resolve(config({"films": {"dev": None}}, passes=1)), tmp_path / "out").report
    assert report["best_step"] == report["step"]
    assert len(list(predict_texts(tmp_path / "out", ["a", "b"], task_name="films"))) == 2


@pytest.mark.parametrize("tasks", [None, {}, [], "films", {"films": None}, {"films": ["a"]}])
def test_tasks_that_are_none(tasks):
    with pytest.raises(DataError, match="tasks"):
        resolve({"tasks": tasks})


def test_a_run_of_several_tasks_wants_the_name_of_one(config, trained, files, tmp_path):
    out = tmp_path / "out"
    train(resolve(config(passes=1)), out)
    with pytest.raises(DataError, match="holds several tasks, 'films', 'scores', 'words'; choose one with --task"):
        list(predict_texts(out, ["a"]))
    with pytest.raises(DataError, match="there is no 'film'"):
        evaluate(out, str(files / "dev.tsv"), task_name="film")
    with pytest.raises(DataError, match="holds one task; leave it out"):
        evaluate(trained[0], str(files / "dev.tsv"), task_name="films")
    assert (out / RUN_FILE).exists()


def test_settings_are_json_and_back(config):
    settings = resolve(config())
    assert resolve(json.loads(json.dumps(settings.as_file()))) == settings
