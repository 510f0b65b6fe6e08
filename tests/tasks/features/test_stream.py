import os

import pytest

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.features.cache import cached_features
from onion.tasks.features.stream import FeatureStream
from tests.tasks.helpers import films, write_tsv


@pytest.fixture(scope="module")
def tokenizer(encoder_folder):
    return Tokenizer.from_pretrained(encoder_folder)


def plain(example):
    return {name: value.tolist() if name in ("ids", "types") else value for name, value in example.items()}


def test_a_stream_gives_what_the_cache_has_anew_in_each_pass(tmp_path, tokenizer):
    data = write_tsv(tmp_path / "a.tsv", films(300, seed=3))  # more than a chunk
    task = Classification(max_length=6).fitted(data)
    stream, kept = FeatureStream(task, data, tokenizer), cached_features(task, data, tokenizer)
    assert len(stream) == len(kept) == 300
    assert stream.notes == kept.notes
    assert stream.notes
    for _ in range(2):
        assert list(map(plain, stream)) == list(map(plain, kept))


def test_every_row_is_checked_before_the_first_is_learned(tmp_path, tokenizer):
    task = Classification(labels=["bad", "good"], pairs=False)
    data = write_tsv(tmp_path / "a.tsv", [*films(300, seed=3), ("a", "ugly")])
    with pytest.raises(DataError, match=r"a\.tsv:302: the label 'ugly'"):
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
