"""Places in a Redis Stream: written, read, and what may come next."""

import pytest

from onion.online.sources.redis_place import Place, order


@pytest.mark.parametrize("place", [Place(), Place("1700-2"), Place("1700-2", 5)])
def test_a_place_can_be_written_and_read(place):
    assert Place.parse(str(place)) == place


def test_ids_are_sorted_as_numbers():
    assert sorted(["10-0", "9-11", "9-2"], key=order) == ["9-2", "9-11", "10-0"]


@pytest.mark.parametrize(
    ("before", "entry", "number", "behind"),
    [
        (Place(), "5-0", 1, Place("5-0", 1)),
        (Place(), "5-0", 7, Place("5-0", 7)),
        (Place("5-0", 1), "5-1", 2, Place("5-1", 2)),
        (Place("5-0", 1), "5-1", None, Place("5-1", 1)),
        (Place("5-0", 1), "5-1", 3, None),
        (Place("5-0", 1), "5-1", 1, None),
        (Place("5-0", 1), "5-0", 2, None),
        (Place("5-0"), "4-9", None, None),
    ],
)
def test_only_what_comes_next_is_behind(before, entry, number, behind):
    assert before.then(entry, number) == behind
