import logging
from collections import Counter

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.batches import arguments, batch_of
from onion.tasks.classification import Classification
from onion.tasks.data.features.examples import Examples
from onion.tasks.data.texts import check_max_length, tell_notes
from tests.tasks.helpers import IDS, write_jsonl, write_tsv

CLS, SEP = IDS["[CLS]"], IDS["[SEP]"]
TASK = Classification(max_length=16, labels=["bad", "good"])


@pytest.fixture
def features(tmp_path, tokenizer):
    """Examples and notes of some rows."""

    def make(*rows, header=("text_a",), **changes):
        path, notes = write_tsv(tmp_path / "rows.tsv", rows, header), Counter()
        task = attrs.evolve(TASK, pairs="text_b" in header, **changes)
        return task.features(list(task.rows(path, "label" in header)), tokenizer, "label" in header, notes), notes

    return make


def ids(examples):
    return [example["ids"].tolist() for example in examples]


def test_pairs_are_told_by_the_first_row(tmp_path):
    one = write_tsv(tmp_path / "one.tsv", [("a", "good"), ("b", "bad")])
    two = write_tsv(tmp_path / "two.tsv", [("a", "", "good"), ("b", "c", "bad")], ("text_a", "text_b", "label"))
    assert (Classification().fitted(one).pairs, Classification().fitted(two).pairs) == (False, True)


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([{"text_a": "a", "text_b": "b"}, {"text_a": "a"}], "text_b is missing here but not in the first row"),
        ([{"text_a": "a"}, {"text_a": "a", "text_b": "b"}], "text_b is here but not in the first row"),
        ([{"text_a": "a"}, {"text_a": 5}], "text_a is 5, not a string"),
        ([{"text_a": "a", "text_b": "b"}, {"text_a": "a", "text_b": 1.5}], "text_b is 1.5, not a string"),
        ([{"text_a": "a"}, {"text_a": "\ud83d"}], "text_a has an unpaired surrogate"),
    ],
)
def test_rows_that_do_not_do(tmp_path, rows, what):
    path = write_jsonl(tmp_path / "a.jsonl", *rows)
    with pytest.raises(DataError, match=rf"a\.jsonl:2: {what}"):
        list(Classification().rows(path, labelled=False))


@pytest.mark.parametrize("pairs", [True, False])
def test_pairs_where_single_texts_were_trained_and_the_other_way_round(tmp_path, pairs):
    header = ("text_a",) if pairs else ("text_a", "text_b")
    path = write_tsv(tmp_path / "rows.tsv", [("a",) * len(header)], header)
    with pytest.raises(DataError, match=r"rows\.tsv:2: there is .*column 'text_b'; the training file has"):
        list(Classification(pairs=pairs).rows(path, labelled=False))
    assert len(list(Classification(pairs=not pairs).rows(path, labelled=False))) == 1


def test_lines_are_rows_too():
    assert [dict(row.cells) for row in TASK.line_rows(["a film", '{"text_a": "b"}'])] == [
        {"text_a": "a film"},
        {"text_a": "b"},
    ]
    (row,) = attrs.evolve(TASK, pairs=True).line_rows(["a\tb"])
    assert dict(row.cells) == {"text_a": "a", "text_b": "b"}


def test_examples_of_single_texts(features):
    examples, notes = features(("a film", "good"), ("", "bad"), header=("text_a", "label"))
    assert ids(examples) == [[CLS, IDS["a"], IDS["film"], SEP], [CLS, SEP]]
    assert [(example["row"], example["label"]) for example in examples] == [(0, 1), (1, 0)]
    assert not notes


def test_examples_of_pairs(features):
    (example, empty), _ = features(("a film", "plot"), ("a", ""), header=("text_a", "text_b"))
    assert example["ids"].tolist() == [CLS, IDS["a"], IDS["film"], SEP, IDS["plot"], SEP]
    assert example["types"].tolist() == [0, 0, 0, 0, 1, 1]
    assert "label" not in example
    assert empty["ids"].tolist() == [CLS, IDS["a"], SEP, SEP]  # an empty second text is a second text


def test_long_texts_are_cut_counted_and_told(features, caplog):
    examples, notes = features(("a a a a a a",), ("a",), ("a a a a",), max_length=5)
    assert [len(each) for each in ids(examples)] == [5, 3, 5]
    with caplog.at_level(logging.WARNING, "onion"):
        tell_notes("some.tsv", notes)
        tell_notes("other.tsv", {})
    assert caplog.messages == ["some.tsv: texts longer than 5 tokens, cut: 2"]


@pytest.mark.parametrize(("length", "fits"), [(2, False), (3, True), (24, True), (25, False)])
def test_max_length_is_held_against_the_positions(length, fits):
    if fits:
        check_max_length(length, 24)
        return
    with pytest.raises(DataError, match=f"--max-length {length}: the encoder takes 3 to 24 tokens"):
        check_max_length(length, 24)


def example(*numbers, **more):
    return {"ids": np.array(numbers), "types": np.zeros(len(numbers), np.int64), **more}


def test_batch_by_hand():
    pair = {"ids": np.array([2, 9, 3, 8, 3]), "types": np.array([0, 0, 0, 1, 1]), "label": 0, "place": 4}
    batch = batch_of([example(2, 9, 3, label=1, place=7), pair], pad_id=5)
    assert batch["input_ids"].tolist() == [[2, 9, 3, 5, 5], [2, 9, 3, 8, 3]]
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 0], [0, 0, 0, 1, 1]]
    assert batch["input_ids"].dtype == batch["token_type_ids"].dtype == batch["labels"].dtype == np.int64
    assert (batch["lengths"], batch["places"], batch["labels"].tolist()) == ([3, 5], [7, 4], [1, 0])
    assert arguments(batch)["attention_mask"].tolist() == [[True] * 3 + [False] * 2, [True] * 5]


def test_batch_without_labels_and_with_numbers_to_learn():
    assert "labels" not in batch_of([example(1)])
    assert batch_of([example(1, label=0.5)])["labels"].dtype == np.float32


@given(st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=9), min_size=1, max_size=6))
def test_nothing_is_lost_in_a_batch(texts):
    """Also where a text holds the padding token itself."""
    examples = Examples.of([example(*numbers, row=row) for row, numbers in enumerate(texts)])
    batch = batch_of(examples[:], pad_id=7)
    mask = arguments(batch)["attention_mask"]
    assert [row[keep].tolist() for row, keep in zip(batch["input_ids"], mask, strict=True)] == texts
    assert (batch["input_ids"][~mask] == 7).all()
    assert batch["input_ids"].shape[1] == max(map(len, texts))


def test_the_encoder_gets_ids_of_tasks_where_the_batch_has_them():
    batch = batch_of([{"ids": np.array([CLS, SEP]), "types": np.array([0, 0])}])
    assert "task_type_ids" not in arguments(batch)
    assert arguments({**batch, "task_type_ids": 2})["task_type_ids"] == 2
