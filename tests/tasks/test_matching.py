import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from onion.errors import DataError
from onion.tasks.finetune.inference import evaluate, predict, predict_lines, predict_texts
from onion.tasks.finetune.run_files import read_json
from onion.tasks.matching import Matching
from onion.tasks.registry import get_task
from tests.tasks.arrays import features_of
from tests.tasks.helpers import BAD, DATA, GOOD, IDS, needs_data, of_dev, write_jsonl, write_tsv

JUDGED = ("text_a", "text_b", "label")
ASKED, PAIRS = (*JUDGED, "qid"), ("text_a", "text_b", "text_b_neg")


# -- files -------------------------------------------------------------------------------------------------------------


def test_what_a_training_file_tells(tmp_path):
    rows = write_tsv(tmp_path / "a.tsv", [("a", "b", "yes"), ("a", "c", "no")], JUDGED)
    asked = write_tsv(tmp_path / "b.tsv", [("a", "b", "0", "q"), ("a", "c", "1", "q")], ASKED)
    pairs = write_tsv(tmp_path / "c.tsv", [("a", "b", "c")], PAIRS)
    assert Matching().fitted(rows) == Matching(learning="pointwise", labels=["no", "yes"], fits="yes")
    assert Matching().fitted(asked) == Matching(learning="pointwise", labels=["0", "1"], fits="1", questions=True)
    assert Matching().fitted(pairs) == Matching(learning="pairwise", labels=["0", "1"], fits="1")
    assert Matching(labels=["yes", "no"]).fitted(rows).labels.names == ("yes", "no")
    assert [task.monitor for task in (Matching().fitted(rows), Matching().fitted(asked))] == ["accuracy", "mrr"]


def test_the_label_that_fits_may_be_named(tmp_path):
    rows = write_tsv(tmp_path / "a.tsv", [("a", "b", "entailment"), ("a", "c", "not_entailment")], JUDGED)
    task = Matching(fits="entailment").fitted(rows)
    assert (task.labels.names, task.fits) == (("not_entailment", "entailment"), "entailment")
    assert [task.targets(row) for row in task.rows(rows, labelled=True)] == [{"label": 1}, {"label": 0}]
    assert task.fitted(rows) == task
    assert Matching(labels=["not_entailment", "entailment"]).fitted(rows) == task
    pairs = write_tsv(tmp_path / "c.tsv", [("a", "b", "c")], PAIRS)
    assert Matching(fits="0").fitted(pairs).labels.names == ("1", "0")
    with pytest.raises(DataError, match="fits: there is no label 'yes', only 'entailment', 'not_entailment'"):
        Matching(fits="yes").fitted(rows)


def test_predictions_say_the_label_where_labels_were_learned():
    judged = Matching(learning="pointwise", labels=["no", "yes"])
    assert list(judged.predictions([], [], [0.5, 0.5000004, 0.125])) == [
        {"score": 0.5, "label": "no"},
        {"score": 0.5, "label": "yes"},
        {"score": 0.125, "label": "no"},
    ]
    assert list(Matching(learning="pairwise").predictions([], [], [0.75])) == [{"score": 0.75}]


def test_a_file_of_both_kinds_is_learned_in_pairs_unless_told(tmp_path):
    path = write_tsv(tmp_path / "a.tsv", [("a", "b", "c", "0"), ("a", "b", "c", "1")], (*PAIRS, "label"))
    assert Matching().fitted(path).learning == "pairwise"
    task = Matching(learning="pointwise").fitted(path)
    assert [dict(row.cells) for row in task.rows(path, labelled=True)] == [
        {"text_a": "a", "text_b": "b", "label": label} for label in "01"
    ]


@pytest.mark.parametrize(
    ("header", "rows", "options", "told"),
    [
        (("text_a", "label"), [("a", "1")], {}, r"a\.tsv:1: the header has no column 'text_b'"),
        (("text_a", "text_b"), [("a", "b")], {}, r"a\.tsv:1: the header has no column 'label'"),
        (JUDGED, [("a", "b", "1")], {}, r"a\.tsv: matching needs rows with two labels; all rows have '1'$"),
        (JUDGED, [("a", "b", each) for each in "012"], {}, r"a\.tsv:4: a third label, '2'; matching needs exactly two"),
        (JUDGED, [("a", "b", "1")], {"learning": "pairwise"}, r"a\.tsv: there is no column 'text_b_neg', which"),
    ],
)
def test_files_that_nothing_can_be_learned_from(tmp_path, header, rows, options, told):
    with pytest.raises(DataError, match=told):
        Matching(**options).fitted(write_tsv(tmp_path / "a.tsv", rows, header))


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"text_a": "a", "text_b": "b"}, "there is no 'text_b_neg' in this object"),
        ({"text_a": "a", "text_b": "b", "text_b_neg": 5}, "text_b_neg is 5, not a string"),
        ({"text_a": "a", "text_b": None, "text_b_neg": "c"}, "there is no column 'text_b'|text_b is None"),
    ],
)
def test_rows_unlike_the_first(tmp_path, row, told):
    path = write_jsonl(tmp_path / "a.jsonl", {"text_a": "a", "text_b": "b", "text_b_neg": "c"}, row)
    with pytest.raises(DataError, match=rf"a\.jsonl:2: ({told})"):
        list(Matching().rows(path, labelled=True))


@pytest.mark.parametrize("columns", [("qid",), ("text_b_neg",), ("qid", "text_b_neg")])
def test_what_begins_in_a_later_row_is_not_passed_over(tmp_path, columns):
    first = {"text_a": "a", "text_b": "b", "label": 1}
    path = write_jsonl(tmp_path / "a.jsonl", first, first | dict.fromkeys(columns, "c"))
    told = rf"a\.jsonl:2: ({'|'.join(columns)}) is here but not in the first row; give it in all rows or in none"
    with pytest.raises(DataError, match=told):
        list(Matching().rows(path, labelled=True))
    assert len(list(Matching().rows(path, labelled=False))) == 2


def test_one_number_is_one_label_however_json_writes_it(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text_a": "a", "text_b": "b", "label": {label}}}\n' for label in ("1", "1.0", "0e0")))
    task = get_task("matching", {"fits": 0}).fitted(path)
    assert task.labels.names == ("1", "0")
    assert [task.targets(row)["label"] for row in task.rows(path, labelled=True)] == [0, 0, 1]


def test_an_unknown_label(tmp_path, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [("a", "b", "1"), ("a", "b", "yes")], JUDGED)
    with pytest.raises(DataError, match=r"a\.tsv:3: the label 'yes' is unknown; the setting labels has '0', '1'"):
        features_of(Matching(learning="pairwise", labels=["0", "1"]), path, tokenizer)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a\tb\t1\tq\na\tb\t0\t\n", r":3: qid is empty; fill it in or remove the row"),
        ("a\tb\t1\t \na\tb\t0\tq\n", r":2: qid is empty"),
    ],
)
def test_a_row_of_no_question_is_refused_wherever_questions_are(tmp_path, tokenizer, content, told):
    path = tmp_path / "a.tsv"
    path.write_text("text_a\ttext_b\tlabel\tqid\n" + content)
    known = Matching(learning="pointwise", labels=["0", "1"], questions=True)
    for use in (Matching().fitted, known.metric, lambda path: features_of(known, path, tokenizer)):
        with pytest.raises(DataError, match=rf"a\.tsv{told}"):
            use(path)


def test_where_training_had_questions_others_need_them(tmp_path):
    path = write_tsv(tmp_path / "a.tsv", [("a", "b", "1")], JUDGED)
    with pytest.raises(DataError, match=r"a\.tsv:1: the header has no column 'qid'"):
        Matching(questions=True).metric(path)


def test_a_batch_of_judged_rows(tmp_path, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [("a", "film", "yes"), ("a", "plot", "no")], JUDGED)
    task = Matching().fitted(path)
    batch = task.collate(features_of(task, path, tokenizer)[:], pad_id=0)
    assert (batch["labels"].tolist(), batch["places"]) == ([1, 0], [0, 1])
    assert batch["input_ids"].tolist()[0] == [IDS[token] for token in ("[CLS]", "a", "[SEP]", "film", "[SEP]")]
    assert task.baseline([{"label": 1}, {"label": 0}, {"label": 0}]) == {"majority_accuracy": pytest.approx(2 / 3)}


def test_a_batch_of_pairs_is_one_batch_of_twice_as_many_rows(tmp_path, tokenizer):
    path = write_tsv(tmp_path / "a.tsv", [("a", "film", "the plot"), ("it", "is", "cold")], PAIRS)
    task = Matching().fitted(path)
    examples = features_of(task, path, tokenizer)
    batch = task.collate([examples[1], examples[0]], pad_id=0)
    texts = [("it", "[SEP]", "is"), ("a", "[SEP]", "film"), ("it", "[SEP]", "cold"), ("a", "[SEP]", "the", "plot")]
    wanted = [[IDS[token] for token in ("[CLS]", *text, "[SEP]")] for text in texts]
    assert [row[:length] for row, length in zip(batch["input_ids"].tolist(), batch["lengths"], strict=True)] == wanted
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 1, 1, 0]] * 3 + [[0, 0, 0, 1, 1, 1]]
    assert batch["places"] == [1, 0]
    assert "labels" not in batch
    assert task.baseline(examples) == {}


def test_texts_that_are_cut_are_counted_on_both_sides(tmp_path, tokenizer):
    notes = Counter()
    path = write_tsv(tmp_path / "a.tsv", [("a", "film film", "a " * 9), ("a", "a " * 9, "a " * 9)], PAIRS)
    task = Matching(max_length=6).fitted(path)
    features_of(task, path, tokenizer, notes=notes)
    assert notes == {"texts longer than 6 tokens, cut": 3}


@needs_data
@pytest.mark.parametrize(
    ("name", "count"), [("glue/mrpc/train.tsv", 3668), ("glue/mrpc/dev.tsv", 408), ("lcqmc/dev.tsv", 4397)]
)
def test_real_files_are_read_whole(name, count):
    task = Matching().fitted(DATA / name)
    assert task == Matching(learning="pointwise", labels=["0", "1"], fits="1")
    assert len([task.targets(row) for row in task.rows(DATA / name, labelled=True)]) == count


# -- from file to prediction -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files in which good second texts fit; a question has a good one and two bad ones, in no order."""
    folder, chance = tmp_path_factory.mktemp("matching"), random.Random(5)
    found = {}
    for name, count in (("train", 60), ("dev", 25)):
        asked, pairs = [], []
        for question in range(count):
            good, *bad = (chance.choice(words) + " film" for words in (GOOD, BAD, BAD))
            rows = [("was it", good, "1"), *[("was it", text, "0") for text in bad]]
            chance.shuffle(rows)
            asked += [(*row, f"q{question}") for row in rows]
            pairs += [("was it", good, text) for text in bad]
        found[f"{name} asked"] = str(write_tsv(folder / f"{name}_asked.tsv", asked, ASKED))
        found[f"{name} judged"] = str(write_tsv(folder / f"{name}_judged.tsv", [row[:3] for row in asked], JUDGED))
        found[f"{name} pairs"] = str(write_tsv(folder / f"{name}_pairs.tsv", pairs, PAIRS))
    return found


@pytest.mark.parametrize(
    ("train_on", "dev_on", "names", "examples"),
    [
        ("train judged", "dev judged", {"accuracy", "f1"}, 75),
        ("train asked", "dev asked", {"accuracy", "f1", "mrr", "map"}, 75),
        ("train judged", "dev asked", {"accuracy", "f1", "mrr", "map"}, 75),
        ("train pairs", "dev pairs", {"accuracy"}, 50),
        ("train pairs", "dev judged", {"accuracy"}, 75),
        ("train pairs", "dev asked", {"accuracy", "mrr", "map"}, 75),
    ],
)
def test_trainings_and_what_they_measure(learn, files, train_on, dev_on, names, examples, tmp_path):
    out, report = learn("matching", files[train_on], files[dev_on], passes=6)
    found = evaluate(out, files[dev_on], report=tmp_path / "report")
    told = read_json(tmp_path / "report", "report.json")
    if train_on == "train pairs":  # which have no labels
        assert told["files"] == []
    else:
        assert told["averages"]["micro"]["f1"] == pytest.approx(found["accuracy"])
    assert found.pop("rows") == examples
    assert found == of_dev(report)
    assert found.keys() == names
    assert found["mrr" if train_on == "train asked" else "accuracy"] > 0.8  # what the best checkpoint is chosen by
    assert ("majority_accuracy" in report) == (train_on != "train pairs")


@pytest.fixture(scope="module")
def in_pairs(learn, files):
    return learn("matching", files["train pairs"], files["dev pairs"], passes=6)[0]


def test_scores_come_in_the_order_of_the_file_and_are_those_of_the_figures(in_pairs, files, tmp_path):
    rows = [line.split("\t") for line in Path(files["dev pairs"]).read_text().splitlines()[1:]]
    predicted = []
    for column in (1, 2):
        path = write_tsv(tmp_path / f"{column}.tsv", [(row[0], row[column]) for row in rows], ("text_a", "text_b"))
        found = list(predict(in_pairs, str(path)))
        assert [row["index"] for row in found] == list(range(50))
        predicted.append([row["score"] for row in found])
    better, worse = predicted
    assert np.mean(np.array(better) > worse) == pytest.approx(evaluate(in_pairs, files["dev pairs"])["accuracy"])
    lines = [f"{row[0]}\t{row[2]}\n".encode() for row in rows]
    assert [row["score"] for row in predict_lines(in_pairs, lines)] == pytest.approx(worse, abs=1e-5)
    assert [row["score"] for row in predict(in_pairs, files["dev pairs"])] == pytest.approx(better, abs=1e-5)


def test_single_texts_cannot_be_matched(in_pairs):
    with pytest.raises(DataError, match="trained on pairs of texts"):
        list(predict_texts(in_pairs, ["a film"]))
