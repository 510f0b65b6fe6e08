import json
import shutil

import numpy as np
import pytest

from onion.data import iter_rows
from onion.errors import CheckpointError, DataError, OnionError
from onion.tasks.finetune.inference import evaluate, predict, predict_texts
from onion.tasks.finetune.predictor import Predictor
from tests.tasks.helpers import films, write_tsv


@pytest.fixture
def folder(trained):
    return trained[0]


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def predicted(folder, path):
    return list(predict(folder, str(path)))


def test_predictions_stand_in_the_order_of_the_file_and_agree_with_the_evaluation(trained, films_folder):
    out, result = trained
    found = predicted(out, films_folder / "dev.tsv")
    truth = [label for _, label in films(70, seed=2)]
    assert [each["index"] for each in found] == list(range(70))
    right = [each["label"] == label for each, label in zip(found, truth, strict=True)]
    assert np.mean(right) == pytest.approx(result.report["dev.accuracy"])
    for each in found:
        assert each["probabilities"].keys() == {"bad", "good"}
        assert sum(each["probabilities"].values()) == pytest.approx(1, abs=2e-6)
        assert each["probabilities"][each["label"]] == max(each["probabilities"].values())


def test_columns_are_carried_beside_the_predictions(folder, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,sentence,label\n7,a lovely film,bad\n8,grim,good\n")
    first, second = predict(folder, path, columns={"text_a": "sentence"}, carry=["id", "text_a", "label"])
    assert list(first)[:4] == ["index", "id", "text_a", "input.label"]
    assert (first["id"], first["text_a"], first["input.label"]) == ("7", "a lovely film", "bad")
    assert second["input.label"] == "good"
    with pytest.raises(DataError, match=r"a\.csv:2: there is no 'nope' in this object"):
        list(predict(folder, path, columns={"text_a": "sentence"}, carry=["nope"]))
    half = tmp_path / "half.jsonl"
    half.write_text('{"text_a": "a", "id": "\\ud800"}\n')
    with pytest.raises(DataError, match=r"half\.jsonl:1: id has an unpaired surrogate .* --carry cannot write"):
        list(predict(folder, half, carry=["id"]))


def test_predictions_do_not_depend_on_the_company(folder, films_folder, tmp_path):
    together = predicted(folder, films_folder / "dev.tsv")
    rows = [(text,) for text, _ in films(70, seed=2)]
    backwards = predicted(folder, write_tsv(tmp_path / "backwards.tsv", rows[::-1], ("text_a",)))
    assert [each["index"] for each in backwards] == list(range(70))
    for one, other in zip(together, backwards[::-1], strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
    for place in (0, 13, 69):
        alone = predicted(folder, write_tsv(tmp_path / "alone.tsv", [rows[place]], ("text_a",)))
        assert alone[0]["probabilities"] == pytest.approx(together[place]["probabilities"], abs=1e-5)


def test_texts_without_a_file(folder, films_folder, caplog):
    texts = [text for text, _ in films(70, seed=2)][:3]
    found = list(predict_texts(folder, [*texts, "", "lovely " * 30]))
    assert [each["text_a"] for each in found] == [*texts, "", "lovely " * 30]
    for one, other in zip(found[:3], predicted(folder, films_folder / "dev.tsv")[:3], strict=True):
        assert one["label"] == other["label"]
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
    assert caplog.messages == ["--text: texts longer than 16 tokens, cut: 1"]


def test_the_best_checkpoint_is_used_and_the_order_of_training_does_not_matter(trained, films_folder, copy):
    _, result = trained
    newest = max(copy.glob("step-*"))
    if newest.name != f"step-{result.report['best_step']:08d}":
        shutil.rmtree(newest)
    assert evaluate(copy, str(films_folder / "dev.tsv"))["accuracy"] == result.report["dev.accuracy"]


def test_a_report_agrees_with_the_figures_and_the_predictions(folder, tmp_path):
    rows = [{"sentence": text, "gold": label, "text_b": None} for text, label in films(70, seed=2)]
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "dev.parquet")
    data, columns = str(tmp_path / "dev.parquet"), {"text_a": "sentence", "label": "gold"}
    figures = evaluate(folder, data, columns=columns, report=tmp_path / "report")
    assert figures == evaluate(folder, data, columns=columns)
    told = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert told["figures"] == figures
    assert told["averages"]["macro"]["f1"] == figures["f1_macro"]
    found = list(predict(folder, data, columns=columns))
    wrong = [number for number, row in enumerate(rows) if row["gold"] != found[number]["label"]]
    errors = list(iter_rows(tmp_path / "report" / "errors.csv"))
    assert told["errors"] == len(errors) == len(wrong) > 0
    confidences = [float(row["confidence"]) for _, row in errors]
    assert confidences == sorted(confidences, reverse=True)
    assert sorted(int(row["line"]) - 1 for _, row in errors) == wrong
    for _, row in errors:
        each = found[int(row["line"]) - 1]
        assert (row["file"], row["predicted"]) == (data, each["label"])
        assert float(row["confidence"]) == pytest.approx(each["probabilities"][each["label"]], abs=1e-5)


def test_a_folder_for_the_report_is_looked_at_before_anything_is_computed(folder):
    with pytest.raises(DataError, match="is not empty, and nothing is overwritten"):
        evaluate(folder, "none.tsv", report=folder)


@pytest.mark.parametrize("use", [evaluate, lambda *given: list(predict(*given))], ids=["evaluate", "predict"])
def test_settings_that_a_trained_model_has_not(folder, films_folder, use):
    told = "'max_length' cannot be changed after training; of the task classification no setting can"
    with pytest.raises(DataError, match=told):
        use(folder, str(films_folder / "dev.tsv"), {"max_length": 5})
    with pytest.raises(DataError, match=told):
        list(predict_texts(folder, ["a"], {"max_length": 5}))


def test_the_network_is_in_evaluation_mode(folder):
    predictor = Predictor.load(folder)
    task = predictor.task
    assert not predictor.network.training
    assert (task.max_length, task.pairs, task.labels.names) == (16, False, ("bad", "good"))


def damage_checkpoints(folder):
    for path in folder.glob("step-*/gradient_machine.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])


def drop_checkpoints(folder):
    for path in folder.glob("step-*"):
        shutil.rmtree(path)


def written(name, content):
    return lambda folder: (folder / name).write_text(content)


def removed(name):
    return lambda folder: (folder / name).unlink()


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (shutil.rmtree, "holds no run of onion"),
        (written("run.json", "[]"), r"run\.json is missing or damaged"),
        (removed("task.json"), r"task\.json is missing"),
        (written("task.json", '["a"]'), r"task\.json is damaged"),
        (written("task.json", '{"task": "sing"}'), "unknown task 'sing'"),
        (
            written("task.json", '{"task": "classification", "labels": ["a"]}'),
            "the saved network does not match: .*classifier",
        ),
        (removed("config.json"), r"config\.json"),
        (removed("tokenizer.json"), "neither tokenizer.json nor"),
        (drop_checkpoints, "holds no checkpoint; train first"),
        (damage_checkpoints, "none of the .* checkpoints in .* is valid"),
    ],
)
def test_a_folder_that_is_not_what_it_should_be(copy, films_folder, harm, message):
    harm(copy)
    for use in (lambda: evaluate(copy, str(films_folder / "dev.tsv")), lambda: list(predict_texts(copy, ["a"]))):
        with pytest.raises(OnionError, match=message):
            use()


def test_a_file_is_looked_at_before_the_weights(copy, folder, tmp_path):
    drop_checkpoints(copy)
    with pytest.raises(DataError, match="there is no such file"):
        list(predict(copy, str(tmp_path / "none.tsv")))
    with pytest.raises(DataError, match=r"none\.tsv: there is no such file"):
        evaluate(folder, str(tmp_path / "none.tsv"))
    with pytest.raises(CheckpointError):
        list(predict_texts(tmp_path, ["a"]))
