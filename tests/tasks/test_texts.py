import json
import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.errors import DataError
from onion.models.tokenizer import Encoding, Tokenizer
from onion.tasks.labels import Labels
from onion.tasks.texts import (
    TextExample,
    TextExamples,
    arguments,
    batch_of,
    check_max_length,
    encode,
    label_names,
    read_table,
    tell_cut,
)
from tests.tasks.helpers import VOCAB, write_tsv

IDS = {token: index for index, token in enumerate(VOCAB)}
CLS, SEP = IDS["[CLS]"], IDS["[SEP]"]


@pytest.fixture
def tokenizer(encoder_folder):
    return Tokenizer.from_pretrained(encoder_folder)


def lines_of(path, *objects):
    path.write_text("".join(json.dumps(each) + "\n" for each in objects), encoding="utf-8")
    return path


def table_of(tmp_path, *rows, header=("text_a", "label")):
    return read_table(write_tsv(tmp_path / "rows.tsv", rows, header), labelled="label" in header)


def encoding(*ids, truncated=False):
    return Encoding(np.array(ids), np.zeros(len(ids), np.int64), truncated)


# -- reading ----------------------------------------------------------------------------------------------------------


def test_columns_in_any_order_and_others_ignored(tmp_path):
    table = table_of(tmp_path, ("x", "good", "b", "a"), header=("other", "label", "text_b", "text_a"))
    assert list(table) == [{"text_a": "a", "label": "good", "text_b": "b"}]


def test_label_is_not_needed_for_prediction(tmp_path):
    assert list(table_of(tmp_path, ("a",), header=("text_a",))) == [{"text_a": "a"}]


def test_numbers_of_json_are_labels(tmp_path):
    rows = [{"text_a": "a", "label": label} for label in (2, 10, 1)]
    table = read_table(lines_of(tmp_path / "a.jsonl", *rows), labelled=True)
    assert label_names(table) == ["2", "10", "1"]
    assert Labels.of(label_names(table)).names == ("1", "2", "10")


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"text_a": 5, "label": "x"}, "text_a is 5, not a text"),
        ({"text_a": None, "label": "x"}, "text_a is None, not a text"),
        ({"text_a": "a", "label": None}, "label is None, not a text"),
        ({"text_a": "a", "label": ["x"]}, r"label is \['x'\], not a text"),
        ({"text_a": "a", "text_b": 1.5, "label": "x"}, "text_b is 1.5, not a text"),
        ({"text_a": "a\ud83d", "label": "x"}, "text_a holds half of a surrogate pair"),
        ({"text_a": "a", "label": "\udc00"}, "label holds half of a surrogate pair"),
    ],
)
def test_what_is_no_text_is_refused_with_its_line(tmp_path, row, what):
    path = lines_of(tmp_path / "a.jsonl", {"text_a": "whole \U0001f600", "text_b": "", "label": "x"}, row)
    with pytest.raises(DataError, match=rf"a\.jsonl:2: {what}"):
        read_table(path, labelled=True)


# -- encoding ---------------------------------------------------------------------------------------------------------


def test_examples_of_single_texts(tmp_path, tokenizer):
    table = table_of(tmp_path, ("a film", "good"), ("", "bad"))
    examples = encode(table, tokenizer, 16, Labels(["bad", "good"]))
    assert len(examples) == 2
    assert [examples[0].row, examples[1].row] == [0, 1]
    assert examples[0].ids.tolist() == [CLS, IDS["a"], IDS["film"], SEP]
    assert examples[1].ids.tolist() == [CLS, SEP]
    assert [example.label for example in examples] == [1, 0]
    assert examples.lengths == [4, 2]
    assert (examples.cut, examples.pairs, examples.majority) == (0, False, 0.5)


def test_examples_of_pairs(tmp_path, tokenizer):
    examples = encode(table_of(tmp_path, ("a film", "plot"), header=("text_a", "text_b")), tokenizer, 16)
    assert examples[0].ids.tolist() == [CLS, IDS["a"], IDS["film"], SEP, IDS["plot"], SEP]
    assert examples[0].types.tolist() == [0, 0, 0, 0, 1, 1]
    assert examples[0].label is None
    assert examples.pairs


def test_an_empty_second_text_is_a_second_text(tmp_path, tokenizer):
    examples = encode(table_of(tmp_path, ("a", ""), header=("text_a", "text_b")), tokenizer, 16)
    assert examples[0].ids.tolist() == [CLS, IDS["a"], SEP, SEP]


def test_long_texts_are_cut_counted_and_said_once(tmp_path, tokenizer, caplog):
    table = table_of(tmp_path, ("a a a a a a",), ("a",), ("a a a a",), header=("text_a",))
    examples = encode(table, tokenizer, 5)
    assert examples.lengths == [5, 3, 5]
    assert examples.cut == 2
    with caplog.at_level(logging.WARNING, "onion"):
        tell_cut("some.tsv", examples, 5)
        tell_cut("other.tsv", encode(table, tokenizer, 16), 16)
    assert caplog.messages == ["some.tsv: 2 of 3 texts are longer than 5 tokens; cut"]


def test_of_a_pair_the_longer_text_is_cut(tmp_path, tokenizer):
    examples = encode(table_of(tmp_path, ("film", "a a a a a"), header=("text_a", "text_b")), tokenizer, 6)
    assert examples[0].ids.tolist() == [CLS, IDS["film"], SEP, IDS["a"], IDS["a"], SEP]
    assert examples.cut == 1


def test_unknown_label_names_file_line_and_what_is_known(tmp_path, tokenizer):
    table = table_of(tmp_path, ("a", "good"), ("a", "so so"))
    with pytest.raises(DataError, match=r"rows\.tsv:3: the label 'so so' .* which has 'bad', 'good'$"):
        encode(table, tokenizer, 16, Labels(["bad", "good"]))
    many = Labels([str(number) for number in range(12)])
    with pytest.raises(DataError, match=r"'8', '9', \.\.\.$"):
        encode(table, tokenizer, 16, many)


def test_second_texts_in_all_rows_or_none(tmp_path, tokenizer):
    path = lines_of(tmp_path / "a.jsonl", {"text_a": "a", "text_b": "b"}, {"text_a": "a"})
    with pytest.raises(DataError, match=r"a\.jsonl:2: text_b is missing"):
        encode(read_table(path, labelled=False), tokenizer, 16)
    neither = lines_of(tmp_path / "b.jsonl", {"text_a": "a"}, {"text_a": "a"})
    assert not encode(read_table(neither, labelled=False), tokenizer, 16).pairs


@pytest.mark.parametrize("pairs", [True, False])
def test_pairs_where_single_texts_were_trained_and_the_other_way_round(tmp_path, tokenizer, pairs):
    header = ("text_a",) if pairs else ("text_a", "text_b")
    table = table_of(tmp_path, ("a",) * len(header), header=header)
    with pytest.raises(DataError, match=r"rows\.tsv: there is .*column 'text_b'; the training file has"):
        encode(table, tokenizer, 16, pairs=pairs)
    assert len(encode(table, tokenizer, 16, pairs=not pairs)) == 1


def test_a_length_without_room_for_text(tmp_path, tokenizer):
    table = table_of(tmp_path, ("a", "b"), header=("text_a", "text_b"))
    with pytest.raises(DataError, match="leaves no room"):
        encode(table, tokenizer, 3)


def test_examples_are_a_sequence():
    examples = TextExamples([encoding(1), encoding(2, 2), encoding(3, truncated=True)], [0, 1, 1])
    assert [example.row for example in examples] == [0, 1, 2]
    assert [example.row for example in examples[1:]] == [1, 2]
    assert examples[-1].ids.tolist() == [3]
    assert examples.majority == pytest.approx(2 / 3)
    assert examples.cut == 1


@pytest.mark.parametrize(("length", "fits"), [(2, False), (3, True), (24, True), (25, False)])
def test_max_length_is_held_against_the_positions(length, fits):
    if fits:
        check_max_length(length, 24)
        return
    with pytest.raises(DataError, match=f"--max-length {length}: the encoder takes 3 to 24 tokens"):
        check_max_length(length, 24)


# -- batches ----------------------------------------------------------------------------------------------------------


def test_batch_by_hand():
    examples = [
        TextExample(7, np.array([2, 9, 3]), np.array([0, 0, 0]), 1),
        TextExample(4, np.array([2, 9, 3, 8, 3]), np.array([0, 0, 0, 1, 1]), 0),
    ]
    batch = batch_of(examples, pad_id=5)
    assert batch["input_ids"].tolist() == [[2, 9, 3, 5, 5], [2, 9, 3, 8, 3]]
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 0], [0, 0, 0, 1, 1]]
    assert batch["input_ids"].dtype == batch["token_type_ids"].dtype == batch["labels"].dtype == np.int64
    assert (batch["lengths"], batch["rows"], batch["labels"].tolist()) == ([3, 5], [7, 4], [1, 0])
    assert arguments(batch)["attention_mask"].tolist() == [[True] * 3 + [False] * 2, [True] * 5]


def test_batch_without_labels():
    assert "labels" not in batch_of([TextExample(0, np.array([1]), np.array([0]), None)])


@settings(derandomize=True, deadline=None)
@given(st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=9), min_size=1, max_size=6))
def test_nothing_is_lost_in_a_batch(texts):
    """Also where a text holds the padding token itself."""
    batch = batch_of(TextExamples([encoding(*ids) for ids in texts])[:], pad_id=7)
    mask = arguments(batch)["attention_mask"]
    assert [row[keep].tolist() for row, keep in zip(batch["input_ids"], mask, strict=True)] == texts
    assert (batch["input_ids"][~mask] == 7).all()
    assert batch["input_ids"].shape[1] == max(map(len, texts))
