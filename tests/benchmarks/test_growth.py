"""benchmarks/growth: straight lines are told as such; all of our own sides run, on small sizes."""

import pytest

from benchmarks.frame.section import Section
from benchmarks.growth import __main__ as growth
from benchmarks.growth import rows, steps
from benchmarks.growth.__main__ import AXES, Axis


def test_growth_is_per_doubling_and_a_note_tells_why():
    assert growth.growth({1: [3.0, 5.0, 4.0], 2: [8.0], 8: [128.0], 16: [128.0]}) == pytest.approx([2.0, 4.0, 1.0])
    assert growth.growth_note("A step", {10: [1.0], 20: [2.0], 40: [3.0]}, "straight") == (
        "A step, growth per doubling from 10 to 40: 2.00, 1.50. Straight."
    )


def test_times_are_told_in_the_axis_unit():
    assert all(list(axis.sizes) == sorted(set(axis.sizes)) for axis in AXES)
    axis = Axis("rings", "a batch by items", (10,), "", unit="µs", scale=1e6)
    (figure,) = growth.of_axis(axis, {10: [1e-6, 3e-6]})
    assert figure.cells()[:2] == ("a batch by items: 10", "2.00 µs")


def test_memory_is_told_by_row():
    found = {
        1000: [{"first": 0.1, "order": 0.01, "own": 4e6, "peak": 5e6}],
        2000: [{"first": 0.2, "order": 0.02, "own": 80000, "peak": 6e6}],
    }
    assert [figure.median for figure in growth.of_rows(found)] == pytest.approx([100, 10, 4, 5, 200, 20, 0.08, 6])
    notes = growth.notes_of_rows(found)
    assert notes[0].startswith("First batch of cached features, growth per doubling from 1,000 to 2,000: 2.00.")
    assert notes[-1].startswith("Memory of its own with the first batch of 2,000 rows: 40 bytes a row; ")


@pytest.mark.parametrize("name", steps.BASE)
def test_an_encoder_steps_at_any_size(name, monkeypatch):
    monkeypatch.setattr(steps, "VOCABULARY", 1010)
    monkeypatch.setattr(steps, "BASE", {"batch": 2, "length": 4, "layers": 1, "width": 64})
    steps.network.cache_clear()
    larger = 2 * steps.BASE[name]
    assert steps.encoder({"threads": 1, "axes": {name: [larger]}})()[name][str(larger)] > 0
    steps.network.cache_clear()


@pytest.mark.parametrize(("name", "size"), [("tasks", 3), ("rings", 5)])
def test_loops_run_at_any_size(name, size, monkeypatch):
    monkeypatch.setattr(steps, "BATCHES", 12)
    assert steps.seconds_of_batch(name, size) > 0


def test_rows_are_opened_ordered_and_read(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "CHUNK", 30)
    few, more = (rows.write_rows(tmp_path / str(count), count) for count in (40, 70))
    assert len(rows.open_store(more)) == 70
    found = rows.prepare({"folder": str(more), "warm": str(few)})()
    assert {"first", "order", "own", "peak"} == set(found)
    assert found["first"] > 0


def test_a_round_of_rings_in_a_process_of_its_own():
    axis = Axis("rings", "a batch by items", (1, 2), "straight", "steps:loops", "µs", 1e6)
    section = Section("growth", "Growth", "", 2)
    growth.grow([axis], section)
    assert [len(figure.values) for figure in section.figures] == [2, 2]
    assert section.notes[0].startswith("A batch by items, growth per doubling from 1 to 2: ")
    assert "paddlepaddle" in section.versions
