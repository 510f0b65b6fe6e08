"""Tally: what was taken of a stream, saved and taken back."""

from onion.online.gathering import Gathered, Rejected
from onion.online.source import Sample
from onion.online.tally import Tally


def counted(folder):
    tally = Tally()
    tally.rejects.open(folder / "rejected.jsonl")
    tally.add(Gathered(["a", "b"], 2, [], "2"))
    tally.add(Gathered(["d"], 1, [Rejected(Sample("c", "3"), "ValueError: no")], "4"))
    tally.batches = 2
    return tally


def test_it_counts_and_is_behind_all_that_was_taken(tmp_path):
    tally = counted(tmp_path)
    assert (tally.position, tally.samples, tally.in_pass, tally.rejects.count) == ("4", 3, 3, 1)


def test_what_it_saves_is_what_comes_back(tmp_path):
    tally = counted(tmp_path)
    tally.in_pass = 1
    saved = tally.state_dict()
    assert saved == {
        "position": "4",
        "batches": 2,
        "samples": 3,
        "in_pass": 1,
        "rejected": 1,
        "rejected_bytes": (tmp_path / "rejected.jsonl").stat().st_size,
    }
    again = Tally.of({**saved, "like": "null"})
    assert again.state_dict() == saved
    again.rejects.open(tmp_path / "rejected.jsonl")
    again.add(Gathered(["e"], 1, [], "5"))
    assert (again.position, again.samples, again.in_pass) == ("5", 4, 2)
    assert tally.position == "4"


def test_a_new_one_is_at_the_beginning():
    tally = Tally.of(Tally().state_dict())
    assert (tally.position, tally.batches, tally.samples, tally.in_pass, tally.rejects.count) == ("", 0, 0, 0, 0)
