"""BatchDecisions: made by the clock and recorded, or read from the journal that a run follows."""

import json
from contextlib import contextmanager
from datetime import timedelta

import pytest

from onion import State
from onion.online.journal.journal import Journal
from onion.online.stream.batch_decisions import BatchDecisions
from tests.online.toys import rows_in

LONG, NONE = timedelta(hours=9), timedelta(0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


@contextmanager
def kept(path, *rows):
    """Yield the BatchDecisions of a run that follows these rows first."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    journal = Journal(path)
    with contextmanager(journal.initialize)(State()):
        yield BatchDecisions(journal)


# -- by the clock ------------------------------------------------------------------------------------------------------


def test_a_batch_that_is_cut_short_is_recorded_and_a_full_one_is_not(path):
    with kept(path) as decisions:
        decisions.given(0, samples=4, wanted=4)
        decisions.given(1, samples=3, wanted=4)
        assert (decisions.size(1), decisions.waits(1)) == (None, False)
    assert rows_in(path) == [{"batch": 1, "samples": 3}]


def test_rejected_samples_are_skipped_from_a_limit_on(path):
    with kept(path) as decisions:
        assert [decisions.passed_by(2, rejected, limit=4) for rejected in (0, 3, 4, 9)] == [0, 0, 4, 9]
    assert rows_in(path) == [{"batch": 2, "skipped": 4}, {"batch": 2, "skipped": 9}]


def test_a_pass_by_time_ends_after_a_batch_and_is_recorded_once(path):
    with kept(path) as decisions:
        decisions.begin_pass(LONG)
        assert not decisions.ends_pass(0, begun=True)
        decisions.begin_pass(NONE)
        assert [decisions.ends_pass(1, begun) for begun in (False, True, True, False)] == [False, True, True, True]
        decisions.begin_pass(NONE)
        assert not decisions.ends_pass(1, begun=False)
    assert rows_in(path) == [{"batch": 1, "pass_end": True}]


def test_without_a_journal_decisions_are_the_same():
    decisions = BatchDecisions()
    decisions.given(0, samples=3, wanted=4)
    decisions.begin_pass(NONE)
    assert (decisions.size(1), decisions.waits(1), decisions.passed_by(1, 5, limit=4)) == (None, False, 5)
    assert decisions.ends_pass(1, begun=True)


def test_after_the_run_nothing_is_recorded(path):
    with kept(path) as decisions:
        decisions.begin_pass(NONE)
        decisions.close()
        assert decisions.ends_pass(3, begun=True)
    assert rows_in(path) == []


# -- by the journal ----------------------------------------------------------------------------------------------------


def test_a_followed_batch_has_the_samples_that_it_had_and_waits_for_them(path):
    row = {"batch": 1, "samples": 3}
    with kept(path, row) as decisions:
        assert (decisions.size(0), decisions.waits(0)) == (None, True)
        decisions.given(0, samples=4, wanted=4)
        for _ in range(2):  # until the batch is given
            assert (decisions.size(1), decisions.waits(1)) == (3, True)
        decisions.given(1, samples=3, wanted=3)
        assert (decisions.size(2), decisions.waits(2)) == (None, False)
    assert rows_in(path) == [row]


def test_the_followed_numbers_of_rejected_samples_are_skipped(path):
    rows = [{"batch": 1, "skipped": 6}, {"batch": 1, "skipped": 5}]
    with kept(path, *rows) as decisions:
        assert decisions.passed_by(0, 9, limit=4) == 0
        assert [decisions.passed_by(1, rejected, limit=4) for rejected in (4, 5, 6)] == [0, 0, 6]
        assert [decisions.passed_by(1, rejected, limit=4) for rejected in (4, 8)] == [0, 5]
        assert rows_in(path) == rows
        assert decisions.passed_by(1, 4, limit=4) == 4  # there is nothing left to follow


def test_a_followed_pass_ends_where_it_did_whatever_the_clock_says(path):
    row = {"batch": 2, "pass_end": True}
    with kept(path, row) as decisions:
        decisions.begin_pass(NONE)
        assert not decisions.ends_pass(1, begun=True)
        decisions.begin_pass(LONG)
        assert decisions.ends_pass(2, begun=True)
        assert decisions.ends_pass(2, begun=True)
    assert rows_in(path) == [row]
