"""What may be given as data, and what it becomes."""

import sys
import traceback

import numpy as np
import pytest

from onion.data.files import Table
from onion.data.source import Indexed, PassSource, Stream, as_source, examples_of_pass, say_where
from onion.errors import DataError
from tests.data import loaders
from tests.data.computed import Anew


class Squares:
    def __getitem__(self, index):
        return index * index

    def __len__(self):
        return 4


class Endless:
    """As paddle.io.IterableDataset: inherits an indexing and a length that only raise."""

    def __getitem__(self, index):
        raise RuntimeError("not for an iterable dataset")

    def __len__(self):
        raise RuntimeError("not for an iterable dataset")

    def __iter__(self):
        return iter([1, 2, 3])


@pytest.mark.parametrize("given", [[0, 1, 4, 9], (0, 1, 4, 9), np.array([0, 1, 4, 9]), Squares(), range(0, 10)])
def test_what_has_a_length_and_indices_is_indexed(given):
    source = as_source(given)
    assert isinstance(source, Indexed)
    assert source is given
    assert source[1] in (0, 1)


def test_what_has_a_length_and_passes_needs_no_indices():
    source = Anew([{"x": 1.0}])
    assert as_source(source) is source
    assert isinstance(source, PassSource)
    assert examples_of_pass(source, 3)[0] == source.of_pass(3)[0]
    with pytest.raises(DataError, match=r"the data source \(Anew\) is empty"):
        as_source(Anew([]))


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_a_path_is_read(tmp_path, kind):
    path = tmp_path / "a.tsv"
    path.write_text("a\n1\n")
    source = as_source(kind(path))
    assert isinstance(source, Table)
    assert list(source) == [{"a": "1"}]


def count_to_three():
    yield from (1, 2, 3)


@pytest.mark.parametrize(
    "given", [Endless(), count_to_three, lambda: [1, 2, 3], lambda: iter([1, 2, 3]), dict.fromkeys([1, 2, 3]).keys]
)
def test_what_can_be_iterated_again_is_a_stream_for_every_pass(given):
    source = as_source(given)
    assert isinstance(source, Stream)
    assert list(source.examples()) == [1, 2, 3]
    assert list(source.examples()) == [1, 2, 3]


@pytest.mark.parametrize("given", [count_to_three(), iter([1, 2, 3]), map(int, "123")])
def test_an_iterator_serves_one_pass(given):
    source = as_source(given)
    assert list(source.examples()) == [1, 2, 3]
    message = "the iterator is exhausted; pass a list, or a function that returns a new iterator"
    with pytest.raises(DataError, match=message):
        source.examples()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "the data source .list. is empty"),
        (np.zeros((0, 3)), "the data source .ndarray. is empty"),
        ({"a": 1}, "a dict has no first, second and third example"),
        ({1, 2}, "a set has no first"),
        (5, "cannot read examples from a int"),
        (None, "cannot read examples from a NoneType"),
        ("none.tsv", "no such file"),
    ],
)
def test_what_is_no_data(given, message):
    with pytest.raises(DataError, match=message):
        as_source(given)


@pytest.mark.parametrize("given", [lambda: [], lambda: iter(()), iter(())])
def test_an_empty_stream_says_so_at_its_first_example(given):
    examples = as_source(given).examples()
    with pytest.raises(DataError, match="no examples in this pass"):
        next(examples)


def test_a_function_that_returns_the_same_iterator_again_or_no_iterable():
    same = iter([1])
    source = as_source(lambda: same)
    assert list(source.examples()) == [1]
    with pytest.raises(DataError, match="exhausted by an earlier one"):
        list(source.examples())
    with pytest.raises(DataError, match="the data function returned a NoneType; it must return an iterable"):
        as_source(lambda: None).examples()


def test_paddle_datasets():
    assert isinstance(as_source(loaders.Numbers()), Indexed)
    assert list(as_source(loaders.Stream(3)).examples()) == [0, 1, 2]


class OwnError(DataError):
    pass


@pytest.mark.parametrize(("kind", "more"), [(OwnError, (5,)), (DataError, ())])
def test_a_data_error_has_the_place_in_its_message(kind, more):
    error = kind("line 5 is broken", *more)
    say_where(error, "example 7")
    say_where(error, "data, batch 1")
    assert (type(error), error.args) == (kind, ("data, batch 1: example 7: line 5 is broken", *more))


def test_any_other_error_gets_notes():
    error = ValueError("no number")
    say_where(error, "example 7")
    say_where(error, "data, batch 1")
    assert (str(error), error.__notes__) == ("no number", ["example 7", "data, batch 1"])
    if sys.version_info >= (3, 11):
        notes = ["ValueError: no number\n", "example 7\n", "data, batch 1\n"]
        assert traceback.format_exception_only(error) == notes
