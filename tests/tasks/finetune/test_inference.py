import json
import shutil

import numpy as np
import pytest

from onion.errors import CheckpointError, DataError, OnionError
from onion.tasks.finetune.fine_tune import train
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


def test_evaluation_of_the_dev_file_gives_what_training_reported(trained, films_folder):
    out, result = trained
    figures = evaluate(out, str(films_folder / "dev.tsv"))
    assert figures == {
        "accuracy": result.report["dev.accuracy"],
        "f1": result.report["dev.f1"],
        "f1_macro": result.report["dev.f1_macro"],
        "matthews": result.report["dev.matthews"],
        "rows": 70,
    }


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


def test_formats_and_orders_of_columns_give_the_same(folder, tmp_path):
    rows = films(5, seed=7)
    tsv = write_tsv(tmp_path / "a.tsv", [(label, "?", text) for text, label in rows], ("label", "id", "text_a"))
    csv = tmp_path / "a.csv"
    csv.write_text("label,text_a\n" + "".join(f'{label},"{text}"\n' for text, label in rows))
    lines = tmp_path / "a.jsonl"
    lines.write_text("".join(json.dumps({"text_a": text, "label": label}) + "\n" for text, label in rows))
    assert predicted(folder, tsv) == predicted(folder, csv) == predicted(folder, lines)
    assert evaluate(folder, str(tsv)) == evaluate(folder, str(csv)) == evaluate(folder, str(lines))


def test_labels_and_texts_of_any_language(make_settings, tmp_path):
    good, bad = "très bien 👍", '不好 \\ "quoted"'
    rows = films(48, seed=3, good=good, bad=bad)
    data = str(write_tsv(tmp_path / "data.tsv", [(f"{text} 中文 über", label) for text, label in rows]))
    train(make_settings(train=data, dev=data, passes=1), tmp_path / "out")
    line = next(predict(tmp_path / "out", data))
    assert line["probabilities"].keys() == {good, bad}
    assert evaluate(tmp_path / "out", data)["rows"] == 48


def test_numeric_labels_are_in_their_order(make_settings, tmp_path):
    rows = [(text, str(number % 3 + 9)) for number, (text, _) in enumerate(films(30, seed=3))]
    data = str(write_tsv(tmp_path / "data.tsv", rows))
    train(make_settings(train=data, dev=data, passes=1), tmp_path / "out")
    assert list(next(predict(tmp_path / "out", data))["probabilities"]) == ["9", "10", "11"]
    assert evaluate(tmp_path / "out", data).keys() == {"accuracy", "f1_macro", "matthews", "rows"}


def test_a_model_of_pairs_wants_pairs(make_settings, tmp_path, films_folder):
    header = ("text_a", "text_b", "label")
    data = str(write_tsv(tmp_path / "pairs.tsv", [(text, "was it", label) for text, label in films(32, 4)], header))
    out = tmp_path / "out"
    train(make_settings(train=data, dev=data, passes=1), out)
    assert len(predicted(out, data)) == 32
    with pytest.raises(DataError, match="no column 'text_b'"):
        evaluate(out, str(films_folder / "dev.tsv"))
    with pytest.raises(DataError, match="no column 'text_b'"):
        predicted(out, films_folder / "dev.tsv")
    with pytest.raises(DataError, match="--text: this model was trained on pairs"):
        list(predict_texts(out, ["a"]))


def test_a_model_of_single_texts_wants_single_texts(folder, tmp_path):
    data = write_tsv(tmp_path / "pairs.tsv", [("a", "b")], ("text_a", "text_b"))
    with pytest.raises(DataError, match="is a column 'text_b'"):
        predicted(folder, data)


def test_the_best_checkpoint_is_used_and_the_order_of_training_does_not_matter(trained, films_folder, copy):
    _, result = trained
    newest = max(copy.glob("step-*"))
    if newest.name != f"step-{result.report['best_step']:08d}":
        shutil.rmtree(newest)
    assert evaluate(copy, str(films_folder / "dev.tsv"))["accuracy"] == result.report["dev.accuracy"]


def test_settings_that_a_trained_model_has_not(folder, films_folder):
    told = "'max_length' cannot be changed after training; of the task classification no setting can"
    with pytest.raises(DataError, match=told):
        evaluate(folder, str(films_folder / "dev.tsv"), {"max_length": 5})
    with pytest.raises(DataError, match=told):
        list(predict(folder, str(films_folder / "dev.tsv"), {"max_length": 5}))
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


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (shutil.rmtree, "holds no run of onion"),
        (lambda folder: (folder / "run.json").write_text("[]"), r"run\.json is missing or damaged"),
        (lambda folder: (folder / "task.json").unlink(), r"task\.json is missing"),
        (lambda folder: (folder / "task.json").write_text('["a"]'), r"task\.json is damaged"),
        (
            lambda folder: (folder / "task.json").write_text('{"task": "sing"}'),
            "unknown task 'sing'",
        ),
        (
            lambda folder: (folder / "task.json").write_text('{"task": "classification", "labels": ["a"]}'),
            "the saved network does not match: .*classifier",
        ),
        (lambda folder: (folder / "config.json").unlink(), r"config\.json"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "neither tokenizer.json nor"),
        (drop_checkpoints, "holds no checkpoint; train first"),
        (damage_checkpoints, "none of the .* checkpoints in .* is valid"),
    ],
)
def test_a_folder_that_is_not_what_it_should_be(copy, films_folder, harm, message):
    harm(copy)
    with pytest.raises(OnionError, match=message):
        evaluate(copy, str(films_folder / "dev.tsv"))
    with pytest.raises(OnionError, match=message):
        list(predict_texts(copy, ["a"]))


def test_a_file_is_looked_at_before_the_weights(copy, folder, tmp_path):
    drop_checkpoints(copy)
    with pytest.raises(DataError, match="there is no such file"):
        list(predict(copy, str(tmp_path / "none.tsv")))
    with pytest.raises(DataError, match=r"none\.tsv: there is no such file"):
        evaluate(folder, str(tmp_path / "none.tsv"))
    with pytest.raises(CheckpointError):
        list(predict_texts(tmp_path, ["a"]))
