"""Where an error came up: in a DataError's message, in a note of any other."""

import sys
import traceback

import pytest

from onion.data.error_location import say_where
from onion.errors import DataError


class OwnError(DataError):
    """One of somebody's own."""


def test_a_data_error_is_told_by_its_message():
    error = OwnError("line 5 is broken", 5)
    say_where(error, "example 7")
    say_where(error, "data, batch 1")
    assert error.args == ("data, batch 1: example 7: line 5 is broken", 5)
    error = DataError("line 5 is broken")
    say_where(error, "example 7")
    assert (str(error), type(error)) == ("example 7: line 5 is broken", DataError)


def test_any_other_gets_notes():
    error = ValueError("no number")
    say_where(error, "example 7")
    say_where(error, "data, batch 1")
    assert (str(error), error.__notes__) == ("no number", ["example 7", "data, batch 1"])


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes are shown from 3.11 on")
def test_the_notes_are_shown():
    error = ValueError("no number")
    say_where(error, "example 7")
    assert traceback.format_exception_only(error) == ["ValueError: no number\n", "example 7\n"]
