"""The frame of comparisons: sides, their turns, what was measured, and the page of all."""

import json
import os
from argparse import Namespace
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import __main__ as bench
from benchmarks.common import limits, sides
from benchmarks.common.measured import Figure, Measured, of_memory, read, versions_of
from benchmarks.common.processes import FailedError
from benchmarks.common.rounds import alternate, figures, ratios
from benchmarks.common.sides import Side, Visitor, all_ready
from onion.host.math_library import SPINNING, VARIABLE

WORKER = """
import os
from benchmarks.common.worker import serve

def prepare(job):
    print("libraries print")
    if job == "fail":
        raise ValueError("no such model")
    calls = []

    def work(ask=None):
        print("again")
        calls.append(ask)
        if ask == "die":
            os._exit(3)
        return {"job": job, "calls": calls, "environment": dict(os.environ)}

    return work

serve(prepare, ["numpy"])
"""


@pytest.fixture
def side(tmp_path):
    """Make a side whose process tells what it was asked."""
    (tmp_path / "told.py").write_text(WORKER, encoding="utf-8")
    made = []

    def make(name="one", job="job", kind=Side, **variables):
        made.append(kind(name, "told", job, environment={"PYTHONPATH": str(tmp_path), **variables}))
        return made[-1]

    yield make
    for each in made:
        each.end()


def test_a_side_stays_and_answers_each_round(side):
    one = side()
    with all_ready([one]):
        assert one.round(ask=1)["calls"] == [1]
        told = one.round(ask=2, **{})
    assert told["calls"] == [1, 2]
    assert told["job"] == "job"
    assert told["environment"]["OMP_NUM_THREADS"] == "2"
    assert one.last["peak_bytes"] > 1_000_000
    assert list(one.last["versions"]) == ["numpy"]


def test_a_visitor_comes_anew_for_each_round_and_goes(side):
    one = side(kind=Visitor)
    with all_ready([one]):
        told = [one.round(ask=1), one.round(ask=2)]
    assert [each["calls"] for each in told] == [[1], [2]]
    assert one.last["peak_bytes"] > 0
    assert "numpy" in one.last["versions"]


def test_a_visitor_tells_the_most_memory_of_all_its_visits(side):
    one = side(kind=Visitor)
    one.last = {"peak_bytes": 1 << 50}
    one.round()
    assert one.last["peak_bytes"] == 1 << 50


def test_a_visitor_that_fails_is_told_in_its_round(side):
    one = side("lost", "fail", Visitor)
    with all_ready([one]), pytest.raises(FailedError, match=r"(?s)lost: ended with status 1; .*no such model"):
        one.round()


def test_a_side_that_fails_is_told_with_its_last_words(side):
    with (
        pytest.raises(FailedError, match=r"(?s)one: ended with status 1; .*no such model"),
        all_ready([side(job="fail")]),
    ):
        pass


def test_a_side_that_dies_in_a_round_is_told(side):
    one = side()
    with pytest.raises(FailedError, match="one: ended with status 3"), all_ready([one]):
        one.round(ask="die")


def test_peers_do_not_inherit_what_onion_has_set(monkeypatch):
    monkeypatch.setenv(VARIABLE, "7")
    monkeypatch.setenv(SPINNING, "1")
    monkeypatch.setenv("OTHER", "x")
    assert {VARIABLE, SPINNING, "OTHER"} <= sides._inherited(None).keys()
    assert {VARIABLE, SPINNING, "OTHER"} & sides._inherited("transformers").keys() == {"OTHER"}


class Asked:
    """A side that notes when it is asked."""

    def __init__(self, name, order):
        self.name, self.order = name, order

    def round(self, **asked):
        self.order.append(self.name)
        return {"seconds": {"a": 1.0, "b": 4.0}[self.name], **asked}


def test_who_begins_goes_round():
    order = []
    rounds = alternate([Asked("a", order), Asked("b", order)], 3, ask="train")
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [each["a"]["ask"] for each in rounds] == ["train"] * 3
    assert ratios(rounds, "b", "a", "seconds") == [4.0] * 3
    assert figures(rounds, "b", "seconds") == [4.0] * 3


@pytest.mark.parametrize(
    ("goal", "met", "told"),
    [
        ({"at_most": 2}, True, "at most 2: met"),
        ({"at_most": 1.5}, False, "at most 1.5: **missed**"),
        ({"at_least": 2}, True, "at least 2: met"),
        ({"at_least": 3}, False, "at least 3: **missed**"),
        ({}, None, ""),
    ],
)
def test_a_figure_is_held_against_its_goal(goal, met, told):
    figure = Figure("what", "s", [1.0, 2.0, 9.0], **goal)
    assert figure.met is met
    assert figure.cells() == ("what", "2.00 s", "1.50 to 5.50", told)


def test_a_single_round_has_no_quartiles():
    assert Figure("what", "", [1234.5], digits=1).cells() == ("what", "1,234.5", "", "")


@pytest.fixture
def measured():
    figure = Figure("a step", "s", [1.0, 3.0], at_most=2.0)
    return Measured("loop", "The loop", "How.", 2, [figure], ["A note."], {"torch": "9"}, "2 cores", "2020-02-03")


def test_what_was_kept_is_read_again(measured, tmp_path):
    measured.keep(tmp_path)
    assert read(tmp_path / "loop.json") == measured
    assert json.loads((tmp_path / "loop.json").read_text())["figures"][0]["values"] == [1.0, 3.0]


def test_the_page_has_a_section_of_all_that_was_kept(measured, tmp_path):
    assert bench.page(tmp_path).strip() == bench.HEAD.strip()
    measured.keep(tmp_path)
    page = bench.page(tmp_path)
    for told in (
        "## The loop",
        "How.",
        "| a step | 2.00 s |",
        "- A note.",
        "2 rounds on 2 cores, 2020-02-03, with torch 9.",
    ):
        assert told in page


def is_package(name):
    return (Path(bench.__file__).parent / name).is_dir()


def test_every_benchmark_can_be_run_by_its_name():
    for name in {section.partition("-")[0] for section in bench.NAMES}:
        assert callable(import_module(f"benchmarks.{name}.__main__" if is_package(name) else f"benchmarks.{name}").main)


def test_a_limited_section_is_that_of_the_benchmark_with_the_option(monkeypatch, tmp_path):
    commands = []
    monkeypatch.setattr(bench, "PAGE", tmp_path / "results.md")
    monkeypatch.setattr(
        bench.subprocess, "run", lambda command, cwd: commands.append(command[1:]) or Namespace(returncode=0)
    )
    assert bench.main(["finetune", "finetune-avx2"]) == 0
    assert commands == [["-m", "benchmarks.finetune", "--keep"], ["-m", "benchmarks.finetune", "--avx2", "--keep"]]


@pytest.mark.parametrize("avx2", [False, True])
def test_the_limit_is_set_for_the_sides_and_told(avx2, monkeypatch):
    for name in limits.VARIABLES:
        monkeypatch.setenv(name, "as it was")
    name, title, how = limits.limited(Namespace(avx2=avx2), "speed", "Speed", "By clock.")
    assert (name, title) == (("speed-avx2", "Speed, without AVX-512") if avx2 else ("speed", "Speed"))
    assert how == ("By clock.\n\n" + limits.HOW if avx2 else "By clock.")
    expected = limits.VARIABLES if avx2 else dict.fromkeys(limits.VARIABLES, "as it was")
    assert {name: os.environ[name] for name in limits.VARIABLES} == expected


def test_an_unknown_benchmark_is_refused(capsys):
    with pytest.raises(SystemExit):
        bench.main(["speed"])
    assert "there is no benchmark 'speed'" in capsys.readouterr().err


def test_versions_of_all_sides():
    assert versions_of([{"versions": {"a": "1"}}, {}, {"versions": {"b": "2"}}]) == {"a": "1", "b": "2"}


def test_the_most_memory_of_each_side():
    lasts = {"one": {"peak_bytes": 3 << 20}, "other": {"peak_bytes": 5 << 20}}
    assert [figure.cells()[:2] for figure in of_memory(lasts, "long, ")] == [
        ("long, peak memory: one", "3 MiB"),
        ("long, peak memory: other", "5 MiB"),
    ]
