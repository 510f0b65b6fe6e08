"""ERNIE 1.0's lines: what is written is read back equal, and malformed lines are refused with file and line."""

import gzip
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.pretraining.corpus.ernie_examples import ErnieExamples
from onion.tasks.pretraining.corpus.ernie_lines import (
    ListedFile,
    read_file_list,
    read_samples,
    write_file_list,
    write_samples,
)
from tests.tasks.pretraining.samples import sample, some_samples

LINE = b"1 17 57 2 66 2;0 0 0 0 1 1;0 1 2 3 4 5;-1 0 1 -1 0 -1;1"


def equal(one, other):
    fields = ("ids", "sentences", "units", "label")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in fields)


def packed(path, *lines):
    path.write_bytes(gzip.compress(b"\n".join(lines) + b"\n"))
    return path


def test_a_line_is_a_sample(tmp_path):
    (found,) = read_samples(packed(tmp_path / "one.gz", LINE))
    assert equal(found, sample([[17, 57]], [[66]]))
    assert found.words.tolist() == [-1, 0, 0, -1, 1, -1]


@given(some_samples)
def test_what_is_written_is_read_back(tmp_path_factory, samples):
    path = tmp_path_factory.mktemp("lines") / "data.gz"
    write_samples(path, samples)
    assert all(equal(one, other) for one, other in zip(samples, read_samples(path), strict=True))
    first = path.read_bytes()
    write_samples(path, samples)
    assert path.read_bytes() == first


WRONG = {
    "1 2;0 0;0 1;-1 -1": "4 fields between semicolons; there are five: token ids, sentences",
    "1 2 ;0 0;0 1;-1 -1;1": "token ids: integers joined by single spaces are expected, not '1 2 '",
    "1 1_0;0 0;0 1;-1 0;1": "token ids: integers joined by single spaces",
    "1 two;0 0;0 1;-1 -1;1": "token ids: integers joined by single spaces are expected, not '1 two'",
    ";;;;": "token ids: integers",
    "1 2;0;0 1;-1 -1;1": "different lengths: 2 token ids, 1 sentences, 2 positions, 2 units",
    "1 -2;0 0;0 1;-1 -1;1": "token ids must not be negative; one is -2",
    "1 2;0 2;0 1;-1 -1;1": "sentences must be 0 or 1; one is 2",
    "1 2;0 0;1 2;-1 -1;1": "positions must count from 0 to 1",
    "1 2;0 0;0 1;-1 3;1": "units must be -1, 0 or 1; one is 3",
    "1 2;0 0;0 1;-1 1;1": "a 1 stands where no unit has begun",
    "1 2;0 0;0 1;-1 -1;2": "label must be 1",
    "1 2;0 0;0 1;-1 -1;1 1": "label must be 1",
}


@pytest.mark.parametrize("line", WRONG)
def test_malformed_lines_are_refused_with_file_and_line(line, tmp_path):
    path = packed(tmp_path / "wrong.gz", LINE, line.encode())
    with pytest.raises(DataError) as told:
        list(read_samples(path))
    assert str(told.value).startswith(f"{path}:2: ")
    assert WRONG[line] in str(told.value)


def test_ids_beyond_the_vocabulary_are_refused_with_file_and_line(tmp_path):
    path = packed(tmp_path / "other.gz", b"1 2;0 0;0 1;-1 -1;1", LINE)
    assert len(list(read_samples(path, vocab_size=67))) == 2
    with pytest.raises(DataError, match=r"other\.gz:2: token id 66 is not in the vocabulary, whose ids are 0 to 65"):
        ErnieExamples.read([path], vocab_size=66)


@given(st.data())
def test_no_spoilt_line_raises_anything_else(tmp_path_factory, data):
    spoilt = bytearray(LINE)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(spoilt) - 1))
        spoilt[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        if not spoilt:
            break
    path = packed(tmp_path_factory.mktemp("spoilt") / "data.gz", bytes(spoilt))
    with suppress(DataError):
        for found in read_samples(path):
            assert len(found.ids) == len(found.sentences) == len(found.units) == len(found.words)


def test_files_that_are_not_gzip_or_cut_off(tmp_path):
    (tmp_path / "plain.gz").write_bytes(LINE)
    whole = packed(tmp_path / "whole.gz", *[LINE] * 50).read_bytes()
    (tmp_path / "cut.gz").write_bytes(whole[:-9])
    for name, told in (("plain.gz", "plain.gz:1: the file is not gzip"), ("cut.gz", "or was cut off here")):
        with pytest.raises(DataError, match=told):
            list(read_samples(tmp_path / name))
    with pytest.raises(DataError, match=r"end in \.gz; compress the file with gzip"):
        list(read_samples(tmp_path / "data.txt"))


def test_a_list_is_read_as_it_was_written(tmp_path):
    files = [ListedFile(packed(tmp_path / f"{name}.gz"), share) for name, share in (("a", 1.1), ("b", 0.25))]
    write_file_list(tmp_path / "train", files)
    assert read_file_list(tmp_path / "train") == files
    with pytest.raises(DataError, match=r"a list of files cannot have it; rename the file"):
        write_file_list(tmp_path / "train", [*files, ListedFile(tmp_path / "a\tb.gz", 1.0)])
    assert read_file_list(tmp_path / "train") == files


def test_a_list_names_files_and_how_they_are_masked(tmp_path, monkeypatch):
    (tmp_path / "lists").mkdir()
    beside, here = packed(tmp_path / "lists" / "beside.gz"), packed(tmp_path / "here.gz")
    monkeypatch.chdir(tmp_path)
    listed = tmp_path / "lists" / "train"
    listed.write_text("beside.gz\t1.1\n\nhere.gz\t0\n")
    found = read_file_list(listed)
    assert [(each.path.resolve(), each.word_share) for each in found] == [(beside, 1.1), (here, 0.0)]
    for line, told in (
        ("here.gz", "train:1: a path, a tab, and the probability of masking by words"),
        ("here.gz\tmany", "train:1: a path, a tab"),
        ("here.gz\t-1", "train:1: a path, a tab"),
        ("gone.gz\t1", "train:1: there is no file gone.gz, neither from the working directory nor beside the list"),
        ("", "the list is empty"),
    ):
        listed.write_text(line)
        with pytest.raises(DataError, match=told):
            read_file_list(listed)
