import os

import numpy as np
import pytest

from onion.errors import DataError
from onion.tasks.classification import Classification
from onion.tasks.data.features.cache import cached_features
from onion.tasks.data.features.stream import FeatureStream
from onion.tasks.masked_lm.task import MaskedLM
from onion.tasks.matching import Matching
from onion.tasks.token_classification.task import TokenClassification
from tests.tasks.helpers import films, write_tsv
from tests.tasks.tagged import tagged


def plain(example):
    return {name: np.asarray(value).tolist() for name, value in example.items()}


def test_a_stream_gives_what_the_cache_has_anew_in_each_pass(tmp_path, tokenizer, caplog):
    data = write_tsv(tmp_path / "a.tsv", films(300, seed=3))  # more than a chunk
    task = Classification(max_length=6).fitted(data)
    stream, kept = FeatureStream(task, data, tokenizer), cached_features(task, data, tokenizer)
    assert len(stream) == len(kept) == 300
    for _ in range(2):
        assert list(map(plain, stream)) == list(map(plain, kept))
    (cut,) = kept.notes.values()
    assert stream.notes == kept.notes
    assert caplog.messages == [f"{data}: texts longer than 6 tokens, cut: {cut}"]  # once, when they are known


def test_rows_are_counted_without_a_tokenizer_where_each_is_an_example(tmp_path, tokenizer, monkeypatch):
    data = write_tsv(tmp_path / "a.tsv", films(300, seed=3))
    task = Classification().fitted(data)
    with monkeypatch.context() as patch:
        patch.setattr(Classification, "features", None)  # would be called
        assert len(FeatureStream(task, data, tokenizer)) == 300


@pytest.mark.parametrize(
    "task", [Classification(), TokenClassification(max_length=6), MaskedLM(max_length=6)], ids=type
)
def test_examples_are_counted_once_for_a_file(tmp_path, tokenizer, monkeypatch, task):
    rows = tagged(40, seed=1) if task.name == "token-classification" else films(40, seed=1)
    data = write_tsv(tmp_path / "a.tsv", [*rows, ("", "O")] if task.name == "masked-lm" else rows)
    task = task.fitted(data)
    examples = len(cached_features(task, data, tokenizer))
    assert (examples == 40) == (task.name == "classification")  # else texts are cut into several, or left out
    assert len(FeatureStream(task, data, tokenizer)) == examples
    with monkeypatch.context() as patch:
        patch.setattr(type(task), "rows", None)
        patch.setattr(type(task), "features", None)
        assert len(FeatureStream(task, data, tokenizer)) == examples


@pytest.mark.parametrize(
    ("task", "made"),
    [(Classification(max_length=6), 150), (Matching(max_length=12), 150), (TokenClassification(max_length=6), 300)],
    ids=type,
)
def test_skipped_examples_are_not_tokenized_where_each_row_is_one(tmp_path, tokenizer, monkeypatch, task, made):
    rows = films(300, seed=3)
    if task.name == "matching":
        data = write_tsv(tmp_path / "a.tsv", [(*row[:1], *row) for row in rows], ("text_a", "text_b", "label"))
    else:
        data = write_tsv(tmp_path / "a.tsv", tagged(300, seed=3) if task.name == "token-classification" else rows)
    task = task.fitted(data)
    stream = FeatureStream(task, data, tokenizer)
    whole = list(map(plain, stream))
    seen, features = [], type(task).features
    monkeypatch.setattr(
        type(task), "features", lambda self, rows, *more: seen.extend(rows) or features(self, rows, *more)
    )
    skipped = [place % 2 for place in range(len(whole))]
    for skip, example, expected in zip(skipped, stream.skipping(skipped), whole, strict=True):
        assert skip or plain(example) == expected
    assert len(seen) == made


@pytest.mark.parametrize("rows", [100, 310])
def test_a_file_that_changes_while_a_pass_is_resumed_is_told(tmp_path, tokenizer, rows):
    data = write_tsv(tmp_path / "a.tsv", films(300, seed=3))
    task = Classification(max_length=6).fitted(data)
    stream = FeatureStream(task, data, tokenizer)
    write_tsv(data, films(rows, seed=3))
    for unseen in (False, True):  # by its size and time, and where those are the same
        if unseen:
            stream._refuse_change = lambda: None
        with pytest.raises(DataError, match=r"a\.tsv: changed since the training began"):
            list(stream.skipping([0] * 300))


def test_a_file_without_an_example_is_nothing_to_learn(tmp_path, tokenizer):
    data = write_tsv(tmp_path / "a.tsv", [(" ",), (" ",)], ("text_a",))
    for _ in range(2):
        with pytest.raises(DataError, match=r"a\.tsv: holds no example to learn from"):
            FeatureStream(MaskedLM(pairs=False), data, tokenizer)


def test_every_row_is_checked_before_the_first_is_learned(tmp_path, tokenizer):
    task = Classification(labels=["bad", "good"], pairs=False)
    data = write_tsv(tmp_path / "a.tsv", [*films(300, seed=3), ("a", "ugly")])
    with pytest.raises(DataError, match=r"a\.tsv:302: the label 'ugly' is unknown"):
        FeatureStream(task, data, tokenizer)


@pytest.mark.parametrize("rows", [100, 310])
def test_a_file_that_changes_between_passes_is_told(tmp_path, tokenizer, rows):
    data = write_tsv(tmp_path / "a.tsv", films(300, seed=3))
    stream = FeatureStream(Classification(max_length=6).fitted(data), data, tokenizer)
    list(stream)
    write_tsv(data, films(rows, seed=3))
    with pytest.raises(DataError, match=r"a\.tsv: changed since the training began"):
        list(stream)


def test_a_file_that_changes_within_a_pass_is_told(tmp_path, tokenizer):
    data = write_tsv(tmp_path / "a.tsv", films(30_000, seed=3))
    stream = FeatureStream(Classification(max_length=6).fitted(data), data, tokenizer)
    examples = iter(stream)
    next(examples)
    os.truncate(data, data.stat().st_size // 2)
    with pytest.raises(DataError, match=r"a\.tsv"):
        list(examples)
