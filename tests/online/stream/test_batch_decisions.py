"""BatchDecisions: decided by the clock and noted, or as the journal tells that a run follows."""

import json
from contextlib import contextmanager
from datetime import timedelta

from onion import State
from onion.online.journal.journal import Journal
from onion.online.stream.batch_decisions import BatchDecisions

LONG, NONE = timedelta(hours=9), timedelta(0)


@contextmanager
def kept(path, *rows):
    """BatchDecisions of a run that follows these rows first."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    journal = Journal(path)
    with contextmanager(journal.initialize)(State()):
        yield BatchDecisions(journal)


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


# -- by the clock ------------------------------------------------------------------------------------------------------


def test_a_batch_that_is_cut_short_is_noted_and_a_full_one_is_not(tmp_path):
    with kept(tmp_path / "journal.jsonl") as decisions:
        decisions.given(0, samples=4, wanted=4)
        decisions.given(1, samples=3, wanted=4)
        assert (decisions.size(1), decisions.waits(1)) == (None, False)
    assert rows(tmp_path / "journal.jsonl") == [{"batch": 1, "samples": 3}]


def test_bad_samples_are_passed_by_once_there_are_many(tmp_path):
    with kept(tmp_path / "journal.jsonl") as decisions:
        assert [decisions.passed_by(2, rejected, many=4) for rejected in (0, 3, 4, 9)] == [0, 0, 4, 9]
    assert rows(tmp_path / "journal.jsonl") == [{"batch": 2, "skipped": 4}, {"batch": 2, "skipped": 9}]


def test_a_pass_whose_time_is_up_ends_behind_a_batch_and_is_noted_once(tmp_path):
    with kept(tmp_path / "journal.jsonl") as decisions:
        decisions.begin_pass(LONG)
        assert not decisions.ends_pass(0, begun=True)
        decisions.begin_pass(NONE)
        assert [decisions.ends_pass(1, begun) for begun in (False, True, True, False)] == [False, True, True, True]
        decisions.begin_pass(NONE)
        assert not decisions.ends_pass(1, begun=False)
    assert rows(tmp_path / "journal.jsonl") == [{"batch": 1, "pass_end": True}]


def test_without_a_record_it_is_the_same_and_nothing_is_noted():
    decisions = BatchDecisions()
    decisions.given(0, samples=3, wanted=4)
    decisions.begin_pass(NONE)
    assert (decisions.size(1), decisions.waits(1), decisions.passed_by(1, 5, many=4)) == (None, False, 5)
    assert decisions.ends_pass(1, begun=True)


def test_after_the_run_nothing_is_noted(tmp_path):
    with kept(tmp_path / "journal.jsonl") as decisions:
        decisions.begin_pass(NONE)
        decisions.close()
        assert decisions.ends_pass(3, begun=True)
    assert rows(tmp_path / "journal.jsonl") == []


# -- by the journal ----------------------------------------------------------------------------------------------------


def test_a_batch_has_the_samples_that_it_had_and_waits_for_them(tmp_path):
    row = {"batch": 1, "samples": 3}
    with kept(tmp_path / "journal.jsonl", row) as decisions:
        assert (decisions.size(0), decisions.waits(0)) == (None, True)
        decisions.given(0, samples=4, wanted=4)
        for _ in range(2):  # however often it is asked, until the batch is given
            assert (decisions.size(1), decisions.waits(1)) == (3, True)
        decisions.given(1, samples=3, wanted=3)
        assert (decisions.size(2), decisions.waits(2)) == (None, False)
    assert rows(tmp_path / "journal.jsonl") == [row]


def test_as_many_bad_samples_are_passed_by_as_were_lot_by_lot(tmp_path):
    told = [{"batch": 1, "skipped": 6}, {"batch": 1, "skipped": 5}]
    with kept(tmp_path / "journal.jsonl", *told) as decisions:
        assert decisions.passed_by(0, 9, many=4) == 0
        assert [decisions.passed_by(1, rejected, many=4) for rejected in (4, 5, 6)] == [0, 0, 6]
        assert [decisions.passed_by(1, rejected, many=4) for rejected in (4, 8)] == [0, 5]
        assert rows(tmp_path / "journal.jsonl") == told
        assert decisions.passed_by(1, 4, many=4) == 4  # it follows no more


def test_a_pass_ends_where_it_did_whatever_the_clock_says(tmp_path):
    row = {"batch": 2, "pass_end": True}
    with kept(tmp_path / "journal.jsonl", row) as decisions:
        decisions.begin_pass(NONE)
        assert not decisions.ends_pass(1, begun=True)
        decisions.begin_pass(LONG)
        assert decisions.ends_pass(2, begun=True)
        assert decisions.ends_pass(2, begun=True)
    assert rows(tmp_path / "journal.jsonl") == [row]
