"""Every released format is read by this version, and a run goes on from it to where it would have come."""

import json
import shutil

import pytest

from onion.checkpointing import checkpoint
from tests.abilities import needs_draws_again
from tests.museum.make import MUSEUM, end_of
from tests.museum.onions import CUT, EXHIBITS, STEPS

ROOMS = sorted(MUSEUM.glob("format-*"))


def exhibits():
    return [pytest.param(room, name, id=f"{room.name}-{name}") for room in ROOMS for name in EXHIBITS]


def test_every_format_has_a_room():
    assert [room.name for room in ROOMS] == [f"format-{number + 1}" for number in range(checkpoint.FORMAT)]


@pytest.mark.parametrize(("room", "name"), exhibits())
def test_an_exhibit_is_whole_and_small(room, name):
    saved = checkpoint.read(checkpoint.folder_of(room / name, CUT))
    assert (saved.step, saved.run["counters"]["step"]) == (CUT, CUT)
    assert sum(path.stat().st_size for path in (room / name).rglob("*") if path.is_file()) < 120_000


@needs_draws_again
@pytest.mark.parametrize(("room", "name"), exhibits())
def test_a_run_goes_on_from_an_exhibit_to_where_it_would_have_come(room, name, tmp_path):
    """To rounding: it was written by another math library on another processor."""
    folder = tmp_path / name
    shutil.copytree(room / name, folder)
    state = EXHIBITS[name](folder).run(steps=STEPS)
    expected, there = json.loads((folder / "end.json").read_text()), end_of(folder)
    assert state.step == STEPS
    assert (there["counters"], there["rows"]) == (expected["counters"], expected["rows"])
    assert there["metrics"] == pytest.approx(expected["metrics"], rel=1e-4)
    assert there["arrays"].keys() == expected["arrays"].keys()
    for key, values in expected["arrays"].items():
        assert there["arrays"][key] == pytest.approx(values, rel=1e-3, abs=1e-6), key
