import json

import attrs
import pytest

from onion.errors import DataError
from onion.tasks.classification import Classification
from onion.tasks.data.features.fit_cache import fitted_task, kept
from onion.tasks.masked_lm.task import MaskedLM
from onion.tasks.matching import Matching
from onion.tasks.multilabel import MultiLabel
from onion.tasks.question_answering.task import QuestionAnswering
from onion.tasks.regression import Regression
from onion.tasks.token_classification.task import TokenClassification
from tests.tasks.helpers import films, write_tsv
from tests.tasks.squad_files import squad
from tests.tasks.tagged import tagged

TASKS = [
    Classification(class_weights={"good": 2}, label_smoothing=0.1),
    Regression(),
    Matching(margin=0.2),
    MultiLabel(threshold=0.3),
    TokenClassification(decoder="crf"),
    QuestionAnswering(n_best=3),
    MaskedLM(whole_words=True),
]


def file_for(task, folder):
    """A file to learn this task from."""
    if isinstance(task, QuestionAnswering):
        return squad(folder / "a.json", ("a film", "film", [("film", 2)]), ("a plot", "film", []))
    if isinstance(task, TokenClassification):
        return write_tsv(folder / "a.tsv", tagged(9, seed=1))
    names = ("good", "bad") if isinstance(task, Classification) else ("1", "0")
    rows = [(text, "b", label) for text, label in films(9, 1, *names)]
    return write_tsv(folder / "a.tsv", rows, ("text_a", "text_b", "label"))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_file_is_read_once_for_what_it_tells(tmp_path, monkeypatch, task):
    path = file_for(task, tmp_path)
    wanted = task.fitted(path)
    assert fitted_task(task, path) == wanted
    monkeypatch.setattr(type(task), "fitted", None)  # would be called
    monkeypatch.setattr(type(task), "rows", None)
    assert fitted_task(task, path) == wanted


def test_all_that_decides_is_in_the_key(tmp_path, folder):
    path, other = file_for(TASKS[0], tmp_path), write_tsv(tmp_path / "b.tsv", films(20, 1))
    for task in (Classification(), Classification(max_length=9), Classification(labels=["good", "bad"])):
        for data in (path, other):
            assert fitted_task(task, data) == task.fitted(data)
    assert len(list(folder.iterdir())) == 6
    moved = tmp_path / "moved.tsv"
    moved.write_bytes(path.read_bytes())
    fitted_task(Classification(), moved)
    assert len(list(folder.iterdir())) == 6  # what is in a file counts, not where it stands


def test_a_label_map_beside_the_file_counts_too(tmp_path):
    path = file_for(TokenClassification(), tmp_path)
    alphabetical = fitted_task(TokenClassification(), path)
    for names in (["O", "I-bad", "B-bad", "B-good", "I-good"], ["I-bad", "O", "B-bad", "B-good", "I-good"]):
        (tmp_path / "label_map.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
        assert fitted_task(TokenClassification(), path).labels.names == tuple(names)
        assert fitted_task(attrs.evolve(TokenClassification(), labels=["O", "x"]), path).labels.names == ("O", "x")
    named = tmp_path / "named.json"
    named.write_text('{"x": 0}')
    assert fitted_task(TokenClassification(label_map=str(named)), path).labels.names == ("x",)
    (tmp_path / "label_map.json").unlink()
    assert fitted_task(TokenClassification(), path) == alphabetical


def test_a_file_that_nothing_can_be_learned_from_is_told_each_time(tmp_path, folder):
    path = write_tsv(tmp_path / "a.tsv", [("a", "good")])
    for _ in range(2):
        with pytest.raises(DataError, match=r"a\.tsv: all rows have the label 'good'"):
            fitted_task(Classification(), path)
    assert not folder.exists()


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    path, fitted = write_tsv(tmp_path / "a.tsv", films(9, 1)), Classification.fitted

    def changing(self, data):
        found = fitted(self, data)
        path.write_bytes(path.read_bytes() + b"a\tso so\n")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Classification, "fitted", changing)
        with pytest.raises(DataError, match=r"a\.tsv: changed while it was read"):
            fitted_task(Classification(), path)
    assert fitted_task(Classification(), path).labels.names == ("bad", "good", "so so")


# -- small values ------------------------------------------------------------------------------------------------------


def refuse():
    raise AssertionError("made again")


VALUE = {"labels": ["中", "b"], "pairs": None, "share": 0.1}


def test_a_value_is_made_once_a_key(folder):
    assert kept("a.tsv", lambda: "key", lambda: VALUE) == VALUE
    assert kept("a.tsv", lambda: "key", refuse) == VALUE
    assert kept("a.tsv", lambda: "other", lambda: 5) == 5
    assert sorted(path.name for path in folder.iterdir()) == ["key.json", "other.json"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"value": 1}', b'{"value": 1, "sum": 1}', b"\xff", b"[" * 9999]
)
def test_what_is_not_as_it_was_written_is_made_anew(folder, content):
    kept("a.tsv", lambda: "key", lambda: VALUE)
    (folder / "key.json").write_bytes(content)
    assert kept("a.tsv", lambda: "key", lambda: 7) == 7
    assert kept("a.tsv", lambda: "key", refuse) == 7


def test_a_value_that_was_tampered_with(folder):
    kept("a.tsv", lambda: "key", lambda: VALUE)
    record = json.loads((folder / "key.json").read_text())
    record["value"]["labels"].reverse()
    (folder / "key.json").write_text(json.dumps(record))
    assert kept("a.tsv", lambda: "key", lambda: VALUE) == VALUE


def test_a_file_that_changed_meanwhile(folder):
    keys = iter("ab")
    with pytest.raises(DataError, match=r"a\.tsv: changed while it was read .*; start again"):
        kept("a.tsv", lambda: next(keys), lambda: VALUE)
    assert not folder.exists()


def test_a_place_where_no_value_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"cannot write .*key\.json: .*\$ONION_HOME"):
        kept("a.tsv", lambda: "key", lambda: VALUE)
