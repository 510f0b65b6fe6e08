import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.finetune.inference import evaluate, predict, predict_lines, predict_texts
from onion.tasks.finetune.run_files import read_json
from onion.tasks.metrics.chunk_f1 import IGNORED
from onion.tasks.registry import recorded_task
from onion.tasks.token_classification.tagger import TAGGERS
from onion.tasks.token_classification.tags import Tags
from onion.tasks.token_classification.task import TokenClassification
from tests.tasks.helpers import DATA, needs_data, of_dev, write_tsv
from tests.tasks.tagged import LABELS, examples_of, joined, tagged


@pytest.fixture(scope="session")
def tagged_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tagged")
    write_tsv(folder / "train.tsv", tagged(150, seed=1))
    write_tsv(folder / "dev.tsv", [*tagged(40, seed=2), *tagged(10, seed=3, longest=60)])
    return folder


@pytest.fixture(scope="session", params=TAGGERS)
def tagged_run(request, learn, tagged_folder):
    """The folder and the report of a training, by decoder."""
    data, options = (
        (tagged_folder / "train.tsv", tagged_folder / "dev.tsv"),
        {"max_length": 16, "decoder": request.param},
    )
    return learn("token-classification", *data, passes=12, learning_rate=5e-3, options=options)


@pytest.fixture
def words_task():
    return TokenClassification(max_length=8, labels=LABELS, characters=False)


def test_what_the_training_file_tells(tmp_path):
    english = write_tsv(tmp_path / "a.tsv", [joined(["the", "film"], ["O", "I-x"]), joined(["a"], ["B-x"])])
    task = TokenClassification().fitted(english)
    assert (task.labels.names, task.characters, task.label_map) == (("O", "B-x", "I-x"), False, None)
    assert recorded_task(json.loads(json.dumps(task.record())), "x") == task
    chinese = write_tsv(tmp_path / "b.tsv", [joined([*"北京欢迎你在下午", "2008"], ["B-x", "I-x", *"OOOOOOO"])])
    assert TokenClassification().fitted(chinese).characters is False  # 8 of 9
    chinese = write_tsv(tmp_path / "b.tsv", [joined([*"北京欢迎你在下午来", "2008"], ["B-x", "I-x", *"OOOOOOOO"])])
    assert TokenClassification().fitted(chinese).characters is True
    assert TokenClassification(characters=False).fitted(chinese).characters is False


def test_plain_texts_are_split_as_the_training_file_is(tmp_path):
    attached, apart = (["Jo", "left."], ["O", "B-x"]), (["Jo", "left", "."], ["O", "B-x", "O"])
    for rows, words in (([attached], ["It", "left."]), ([attached, apart], ["It", "left", "."])):
        task = TokenClassification().fitted(write_tsv(tmp_path / "a.tsv", [joined(*row) for row in rows]))
        assert [text.words for text in task.text_rows(["It left."])] == [words]
        (text,) = task.adjusted({"punctuation": False}).text_rows(["It left."])
        assert text.words == ["It", "left."]


def test_a_label_map_beside_the_training_file_or_named(tmp_path):
    path = write_tsv(tmp_path / "a.tsv", [joined(["a", "b"], ["O", "B-x"])])
    (tmp_path / "label_map.json").write_text('{"B-x": 0, "I-x": 1, "O": 2}')
    other = tmp_path / "other.json"
    other.write_text('{"O": 0, "B-x": 1}')
    assert TokenClassification().fitted(path).labels.names == ("B-x", "I-x", "O")
    assert TokenClassification(label_map=str(other)).fitted(path).labels.names == ("O", "B-x")
    with pytest.raises(DataError, match="there is no such file"):
        TokenClassification(label_map=str(tmp_path / "third.json")).fitted(path)


def test_one_tag_is_nothing_to_learn(tmp_path):
    with pytest.raises(DataError, match=r"one\.tsv: all words have the tag 'O'"):
        TokenClassification().fitted(write_tsv(tmp_path / "one.tsv", [joined("ab", "OO")]))


def test_an_unknown_tag_names_file_line_and_word(tmp_path, words_task, tokenizer):
    path = write_tsv(tmp_path / "b.tsv", [joined(["a"], ["O"]), joined(["a", "plot"], ["O", "B-odd"])])
    told = r"b\.tsv:3: the tag 'B-odd' of word 2, 'plot', is unknown; the training file has 'O', 'B-bad', "
    with pytest.raises(DataError, match=told):
        examples_of(words_task, tokenizer, path)


def test_features_by_hand(tmp_path, words_task, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [joined(["a", "film.", "", "plot"], ["O", "B-bad", "I-bad", "B-good"])])
    _, (example,) = examples_of(words_task, tokenizer, path)
    assert example["firsts"].tolist() == [1, 2, 4, 5]
    assert example["tags"].tolist() == [0, 1, 3, 2]
    assert (example["row"], example["word"], example["own"].tolist()) == (0, 0, [0, 4])


def test_a_long_text_is_told_and_each_of_its_words_is_learned_once(tmp_path, words_task, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [joined("a" * 9, ["B-bad"] + ["O"] * 8), joined("a", "O")])
    notes = Counter()
    examples = words_task.features(list(words_task.rows(path, True)), tokenizer, True, notes)
    assert notes == {"texts longer than 8 tokens, read through windows": 1}
    assert [example["row"] for example in examples] == [0, 0, 1]  # words 0-5 and, from the fifth token on, 4-8
    assert [example["tags"].tolist() for example in examples] == [[1, 0, 0, 0, 0, IGNORED], [IGNORED, 0, 0, 0, 0], [0]]


UNICODE = st.text(st.characters(exclude_characters="\x02", exclude_categories=["Cs"]), max_size=3)
ODD = st.sampled_from(["", "\a", "\u200d", "\ufffd", "\u3000", "e\u0301", "👩\u200d🚀", "中", "ＡＢ", "[SEP]", "film."])
WORDS = st.lists(st.tuples(st.one_of(UNICODE, ODD), st.sampled_from(LABELS)), min_size=1, max_size=15)


@settings(max_examples=150)
@given(st.lists(WORDS, min_size=1, max_size=4), st.integers(3, 12), st.sampled_from([None, 1, 2, 5, 100]))
def test_tags_never_shift(tokenizer, tmp_path_factory, rows, max_length, stride):
    """Through file, features, batch, prediction and metric, whatever the words are made of."""
    path = tmp_path_factory.getbasetemp() / "shift.jsonl"
    lines = [{"text_a": [word for word, _ in row], "label": [tag for _, tag in row]} for row in rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    task = TokenClassification(max_length=max_length, stride=stride, labels=LABELS, characters=True)
    texts, examples = examples_of(task, tokenizer, path)
    batch = task.collate(examples[:], pad_id=0)
    assert len(batch["tags"]) == len(batch["firsts"]) == sum(batch["words"])
    decoded = []
    metric = task.metric(path)
    for example in examples:  # what a network would give that is always right
        begin, end = example["own"]
        decoded.append(Tags(example["tags"][begin:end], np.full(end - begin, 0.75)))
    metric.update(decoded, batch)
    figures = metric.result()
    assert figures["accuracy"] == 1
    assert figures["f1"] == float(any(tag != "O" for line in lines for tag in line["label"]))
    for line, predicted in zip(lines, task.predictions(texts, examples, decoded), strict=True):
        assert (predicted["tokens"], predicted["tags"]) == (line["text_a"], line["label"])
        assert predicted["probabilities"] == [0.75] * len(line["label"])
        text = "".join(line["text_a"])
        assert all(span["text"] == text[span["begin"] : span["end"]] for span in predicted["spans"])


def test_a_baseline(tmp_path, words_task, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [joined("a" * 9, ["B-bad"] * 2 + ["O"] * 7), joined("a", ["B-bad"])])
    assert words_task.baseline(examples_of(words_task, tokenizer, path)[1]) == {"majority_accuracy": 0.7}


def test_tags_are_learned_and_measured_again(tagged_run, tagged_folder, tmp_path):
    out, report = tagged_run
    assert report["dev.f1"] > 0.9 > report["majority_accuracy"]
    again = evaluate(out, str(tagged_folder / "dev.tsv"), report=tmp_path / "report")
    told = read_json(tmp_path / "report", "report.json")
    assert told["averages"]["micro"]["f1"] == pytest.approx(again["f1"])
    assert {name: scores["f1"] for name, scores in told["per_class"].items()} == pytest.approx(
        {name: again[f"f1.{name}"] for name in ("bad", "good")}
    )
    assert again == {**of_dev(report), "rows": 50}
    assert again.keys() > {"f1", "precision", "recall", "accuracy", "f1.bad", "f1.good"}


def test_predictions_of_a_file_are_what_was_measured(tagged_run, tagged_folder):
    """Of long texts too, and counted by hand."""
    out, report = tagged_run
    lines = (tagged_folder / "dev.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [[cell.split("\x02") for cell in line.split("\t")] for line in lines]
    assert max(len(words) for words, _ in rows) > 40
    right = total = 0
    for (words, tags), predicted in zip(rows, predict(out, str(tagged_folder / "dev.tsv")), strict=True):
        assert predicted["tokens"] == words
        right += sum(one == other for one, other in zip(tags, predicted["tags"], strict=True))
        total += len(tags)
    assert right / total == pytest.approx(report["dev.accuracy"])


def test_plain_texts(tagged_run):
    out, _ = tagged_run
    text = "  the lovely bright\tfilm was \u3000 poor sad it " + "the film was " * 20 + "warm fine it"
    (predicted,) = predict_texts(out, [text])
    assert predicted["tokens"] == text.split()
    assert len(predicted["tags"]) == len(text.split())
    found = [(span["type"], span["text"]) for span in predicted["spans"]]
    assert found == [("good", "lovely bright"), ("bad", "poor sad"), ("good", "warm fine")]
    for span in predicted["spans"]:
        assert text[span["begin"] : span["end"]] == span["text"]


def test_lines_of_any_form(tagged_run):
    out, _ = tagged_run
    lines = ["a cold grim", "a\x02cold\x02grim", '{"text_a": ["a", "cold", "grim"]}', "", "   "]
    found = list(predict_lines(out, [line.encode() for line in lines]))
    wanted = {"tokens": ["a", "cold", "grim"], "tags": ["O", "B-bad", "I-bad"]}
    spans = [{"type": "bad", "begin": 2, "end": 11, "text": "cold grim"}]
    for each in found:
        assert len(each.pop("probabilities")) == len(each["tokens"])
    assert found[:3] == [{"index": index, **wanted, "spans": spans} for index in range(3)]
    assert found[3:] == [{"index": index, "tokens": [], "tags": [], "spans": []} for index in (3, 4)]


@needs_data
@pytest.mark.parametrize(
    ("name", "tags", "count"), [("weibo_ner", 17, 1350), ("msra_ner", 7, 2318), ("cluener", 21, 1343)]
)
def test_real_files_are_read_whole(name, tags, count, tokenizer):
    path = DATA / name / ("train.tsv" if name == "weibo_ner" else "dev.tsv")
    task = TokenClassification(max_length=24).fitted(path)
    assert (len(task.labels), task.labels.names[-1], task.characters) == (tags, "O", True)  # label_map.json
    rows, examples = examples_of(task, tokenizer, path)
    assert len(rows) == count
    found = [[] for _ in rows]
    for example in examples:
        begin, end = example["own"]
        found[example["row"]] += [task.labels.names[tag] for tag in example["tags"][begin:end]]
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    assert found == [line.split("\t")[1].split("\x02") for line in lines]
