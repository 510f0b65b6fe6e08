"""The reports of the tasks: their figures are those of scikit-learn and seqeval, and their errors are the rows."""

import numpy as np
import pytest
from seqeval.metrics import classification_report as seqeval_report
from sklearn.metrics import classification_report, mean_absolute_error, multilabel_confusion_matrix, r2_score

from onion.tasks.classification import Classification
from onion.tasks.matching import Matching
from onion.tasks.multilabel import MultiLabel
from onion.tasks.question_answering.task import QuestionAnswering
from onion.tasks.registry import get_task
from onion.tasks.regression import Regression
from onion.tasks.reports.report import Report
from onion.tasks.task import Task
from onion.tasks.token_classification.tags import Tags
from onion.tasks.token_classification.task import TokenClassification
from tests.tasks.helpers import write_tsv
from tests.tasks.squad_files import TINY, squad
from tests.tasks.tagged import LABELS, examples_of, joined, tagged


def reported(task, path, decoded, examples=()):
    rows = list(task.rows(path, labelled=True))
    return task.report(rows, task.predictions(rows, examples or [{}] * len(rows), decoded))


def averages(report, other):
    for name, scores in report.summary["averages"].items():
        theirs = dict(other[f"{name} avg"])
        assert list(scores.values()) == pytest.approx(
            [theirs[each] for each in ("precision", "recall", "f1-score", "support")]
        )


def test_one_label(tmp_path):
    true = ["bad", "good", "good", "odd", "bad", "good"]
    path = write_tsv(tmp_path / "a.tsv", [(f"text {number}", label) for number, label in enumerate(true)])
    task = Classification().fitted(path)
    chances = np.array([[8, 1, 1], [2, 7, 1], [6, 3, 1], [1, 5, 4], [2, 7, 1], [4, 5, 1]]) / 10
    report = reported(task, path, chances)
    found = ["bad", "good", "bad", "good", "good", "good"]
    theirs = classification_report(true, found, output_dict=True, zero_division=0, labels=task.labels.names)
    assert {name: [*each.values()] for name, each in report.summary["per_class"].items()} == {
        name: pytest.approx([*theirs[name].values()]) for name in ("bad", "good", "odd")
    }
    averages(
        report,
        {**theirs, "micro avg": {**theirs["macro avg"], **dict.fromkeys(["precision", "recall", "f1-score"], 0.5)}},
    )
    assert report.sheets["confusion_matrix.csv"].rows == [["bad", 1, 1, 0], ["good", 1, 2, 0], ["odd", 0, 1, 0]]
    errors = report.sheets["errors.csv"]
    assert errors.columns == ["file", "line", "text_a", "label", "predicted", "confidence"]
    assert errors.rows == [
        [str(path), 6, "text 4", "bad", "good", 0.7],
        [str(path), 4, "text 2", "good", "bad", 0.6],
        [str(path), 5, "text 3", "odd", "good", 0.5],
    ]
    assert report.summary["errors"] == 3


def test_no_error_leaves_a_header(tmp_path):
    path = write_tsv(tmp_path / "a.tsv", [("x", "a"), ("y", "b")])
    report = reported(Classification().fitted(path), path, np.eye(2))
    assert report.sheets["errors.csv"].csv() == "file,line,text_a,label,predicted,confidence\r\n"


def test_matching_has_labels_if_both_sides_have(tmp_path):
    rows = [("a", "b", "0"), ("a", "c", "1"), ("d", "e", "1")]
    path = write_tsv(tmp_path / "a.tsv", rows, ("text_a", "text_b", "label"))
    report = reported(Matching().fitted(path), path, [0.2, 0.9, 0.3])
    assert report.sheets["errors.csv"].rows == [[str(path), 4, "d", "e", "1", "0", 0.7]]
    pairs = write_tsv(tmp_path / "b.tsv", [("a", "b", "c")], ("text_a", "text_b", "text_b_neg"))
    assert reported(Matching().fitted(pairs), pairs, [np.array([0.6, 0.5])]) == Report()
    assert reported(Matching().fitted(pairs), path, [0.2, 0.9, 0.3]) == Report()


def test_several_labels(tmp_path):
    path = write_tsv(tmp_path / "a.tsv", [("t", "x,y"), ("u", ""), ("v", "z"), ("w", "y , x")])
    task = MultiLabel().fitted(path)
    chances = np.array([[0.9, 0.2, 0.1], [0.6, 0.1, 0.1], [0.1, 0.1, 0.8], [0.7, 0.9, 0.3]])
    true, found = np.array([[1, 1, 0], [0, 0, 0], [0, 0, 1], [1, 1, 0]]), (chances > 0.5).astype(int)
    report = reported(task, path, chances)
    theirs = classification_report(true, found, output_dict=True, zero_division=0)
    averages(report, theirs)
    cells = {name: [right, missed, more, none] for name, ((none, more), (missed, right))
             in zip("xyz", multilabel_confusion_matrix(true, found).tolist(), strict=True)}  # fmt: skip
    assert {name: counts for name, *counts in report.sheets["confusion_matrix.csv"].rows} == cells
    assert report.sheets["errors.csv"].rows == [
        [str(path), 2, "t", "x,y", "x", 0.8],
        [str(path), 3, "u", "", "x", 0.6],
    ]


def test_numbers(tmp_path):
    path = write_tsv(tmp_path / "a.tsv", [("t", "1"), ("u", "2.5"), ("v", "-3")])
    report = reported(Regression().fitted(path), path, [1.5, 0.5, -3.0])
    figures, true, found = report.summary["residuals"], [1, 2.5, -3], [1.5, 0.5, -3]
    assert figures["mean_absolute"] == pytest.approx(mean_absolute_error(true, found))
    assert figures["r2"] == pytest.approx(r2_score(true, found))
    assert (figures["mean"], figures["largest"]) == (-0.5, 2)
    assert [(row[1], row[-1]) for row in report.sheets["errors.csv"].rows] == [(3, -2), (2, 0.5), (4, 0)]
    assert report.pictures["residuals.svg"].count("<circle") == 3


def test_chunks_against_seqeval(tmp_path, tokenizer):
    task = TokenClassification(max_length=16, labels=LABELS, characters=False)
    path = write_tsv(tmp_path / "a.tsv", tagged(40, seed=1))
    texts, examples = examples_of(task, tokenizer, path)
    draw = np.random.default_rng(2)
    decoded = []
    for example in examples:
        begin, end = example["own"]
        true = example["tags"][begin:end]
        tags = np.where(draw.random(len(true)) < 0.8, true, draw.integers(0, len(LABELS), len(true)))
        decoded.append(Tags(tags, draw.random(len(true))))
    report = reported(task, path, decoded, examples)
    predicted = [each["tags"] for each in task.predictions(texts, examples, decoded)]
    true = [list(text.tags) for text in texts]
    theirs = seqeval_report(true, predicted, output_dict=True, zero_division=0)
    averages(report, theirs)
    for name, scores in report.summary["per_class"].items():
        assert list(scores.values()) == pytest.approx(list(theirs[name].values()))
    counts = np.array([row[1:] for row in report.sheets["confusion_matrix.csv"].rows])
    assert np.diag(counts).sum() + report.summary["errors"] == counts.sum()
    assert counts.sum(axis=1)[:2].tolist() == [theirs[name]["support"] for name in ("bad", "good")]


def test_chunks_that_are_wrong(tmp_path):
    task = TokenClassification(labels=["O", "B-PER", "I-PER", "B-LOC"], characters=True)
    path = write_tsv(tmp_path / "a.tsv", [joined("王小明在北京", ["B-PER", "I-PER", "I-PER", "O", "B-LOC", "B-LOC"])])
    tags = Tags(np.array([1, 2, 0, 0, 1, 3]), np.array([0.5, 0.7, 0.9, 1, 0.8, 1]))
    report = reported(task, path, [tags], [{"row": 0}])
    text = "王小明在北京"
    columns = "file line begin end chunk label predicted confidence text_a"
    assert list(report.sheets["errors.csv"].columns) == columns.split()
    assert report.sheets["errors.csv"].rows == [
        [str(path), 2, 4, 5, "北", "LOC", "PER", 0.8, text],
        [str(path), 2, 0, 3, "王小明", "PER", "O", 0.7, text],
        [str(path), 2, 0, 2, "王小", "O", "PER", 0.6, text],
    ]
    assert report.sheets["confusion_matrix.csv"].rows == [["LOC", 1, 1, 0], ["PER", 0, 0, 1], ["O", 0, 1, 0]]


def test_questions(tmp_path):
    path = squad(
        tmp_path / "a.json",
        ("a warm film", "what", [("warm", 2)]),
        ("a plot", "film", []),
        ("is it", "x", [("is it", 0)]),
    )
    task = QuestionAnswering(**TINY, with_negative=True, language="en")
    rows = list(task.rows(path, labelled=True))
    answers = [("warm", 0.6), ("plot", 0.5), ("it", 0.9)]
    predicted = [{"answer": text, "nbest": [{"text": text, "probability": sure}]} for text, sure in answers]
    report = task.report(rows, predicted)
    assert report.summary == {"errors": 2}
    sheet = report.sheets["questions.csv"]
    assert [row[1:] for row in sheet.rows] == [
        ["q1", "film", "[]", "plot", 0.0, 0.0, 0.5],
        ["q2", "x", '["is it"]', "it", 0.0, pytest.approx(2 / 3), 0.9],
        ["q0", "what", '["warm"]', "warm", 1.0, 1.0, 0.6],
    ]
    assert sheet.rows[0][0].startswith(f"{path}: data[0].paragraphs[1].qas[0]")


def test_a_task_without_one_is_not_asked_for_predictions():
    """What masked-lm decodes in an evaluation is no prediction."""
    task = get_task("masked-lm", {})
    assert task.report([], (1 / 0 for _ in "x")) == Report()
    assert type(task).report is Task.report
