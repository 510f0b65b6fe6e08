"""The page's modules by themselves, in a browser."""

import json
from itertools import pairwise

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def module(tab, serve):
    """Run the body of an async function in a tab of the service."""
    tab.goto(serve().url + "/static/icon.svg")  # a page of the same origin on which nothing runs
    return lambda code, arg=None: tab.evaluate(f"async (arg) => {{ {code} }}", arg)


SERIES = """
    const { OLDER, RECENT, Series } = await import("/static/series.js");
    const series = new Series();
    for (const [x, y] of arg) series.add(x, y);
    const [x, y] = series.points;
    return { x, y, length: series.length, last: series.last };
"""
PARSER = """
    const { EventParser } = await import("/static/stream.js");
    const parser = new EventParser();
    return arg.map((text) => parser.feed(text));
"""


def test_a_series_has_its_points(module):
    assert module(SERIES, []) == {"x": [], "y": [], "length": 0, "last": None}
    assert module(SERIES, [[1, 5], [2, 6]]) == {"x": [1, 2], "y": [5, 6], "length": 2, "last": 6}


def test_a_later_point_at_the_same_or_an_earlier_step_replaces_what_was_there(module):
    assert module(SERIES, [[1, 5], [2, 6], [2, 7]])["y"] == [5, 7]
    assert module(SERIES, [[1, 5], [2, 6], [3, 7], [2, 8]])["y"] == [5, 8]


def test_the_last_5000_points_stay_and_the_older_ones_are_thinned_evenly(module):
    kept = module(SERIES, [[step, -step] for step in range(1, 30_001)])
    assert kept["x"][-5000:] == list(range(25_001, 30_001))
    assert kept["y"] == [-step for step in kept["x"]]
    older = kept["x"][:-5000]
    assert 1250 <= len(older) <= 2500
    assert {later - step for step, later in pairwise(older)} == {16}
    assert older[0] == 1


def test_a_run_that_goes_far_back_removes_older_points(module):
    kept = module(SERIES, [*([step, 0] for step in range(1, 10_001)), [101, 1]])
    assert kept["x"] == [*range(1, 101, 2), 101]
    assert kept["last"] == 1


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_read_however_lines_end_and_wherever_they_are_cut(module, end):
    text = end.join(
        [": a heartbeat", "", "event: status", 'data: {"a":', "data:1}", "", "data: b", "", "event: c", "", ""]
    )
    wanted = [{"kind": "status", "data": '{"a":\n1}'}, {"kind": "message", "data": "b"}]
    for size in (1, 2, 7, len(text)):
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        assert [event for found in module(PARSER, [*pieces, ":\n"]) for event in found] == wanted


def test_an_incomplete_event_is_none(module):
    assert module(PARSER, ["data: a"]) == [[]]
    assert module(PARSER, ["data: a\n", "\n"]) == [[], [{"kind": "message", "data": "a"}]]


@pytest.mark.parametrize("text", ["data: " + "a" * 5_000_000, ("data: " + "a" * 1000 + "\n") * 5000])
def test_an_endless_event_is_an_error(module, text):
    code = PARSER.replace("return", "try { return").rstrip() + "} catch (error) { return error.message; }"
    assert module(code, [text]) == "The run sent an event that is too long."


def test_numbers_are_short(module):
    code = 'const { short } = await import("/static/dom.js"); return arg.map(short);'
    shown = {
        0: "0",
        12: "12",
        123456: "123456",
        0.1 + 0.2: "0.3",
        0.693147: "0.69315",
        1.5e-7: "1.50e-7",
        1234567.5: "1.23e+6",
        10**12: "1.00e+12",
        None: "-",
    }
    assert dict(zip(shown, module(code, list(shown)), strict=True)) == shown


def test_a_table_is_filled_again_without_new_rows(module):
    code = """
        const { fill } = await import("/static/dom.js");
        const body = document.createElementNS("http://www.w3.org/1999/xhtml", "tbody");
        fill(body, [["a", "b"], ["c", "d"]]);
        const first = body.rows[0];
        fill(body, [["<i>", "b"]]);
        return [first === body.rows[0], body.rows.length, body.textContent];
    """
    assert json.dumps(module(code)) == '[true, 1, "<i>b"]'
