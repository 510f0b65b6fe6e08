"""The frame of benchmarks: sides and their turns, sections and their page, studies whose runs are kept."""

import json
import os
import signal
from argparse import Namespace
from importlib import import_module

import pytest

from benchmarks import __main__ as bench
from benchmarks.frame import processes, section, study, tables
from benchmarks.frame.processes import FailedError, Side, all_ready, alternate, ratios, values
from benchmarks.frame.section import Benchmark, Figure, Section, read
from onion.host.math_library import SPINNING, VARIABLE

WORKER = """
import os
print("libraries print")
LIBRARIES = ["numpy"]

def other(job):
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
"""


@pytest.fixture
def side(tmp_path):
    """Make a side whose process answers with what it was asked."""
    (tmp_path / "told.py").write_text(WORKER, encoding="utf-8")
    made = []

    def make(name="one", job="job", stays=True):
        made.append(Side(name, "told:other", job, environment={"PYTHONPATH": str(tmp_path)}, stays=stays))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.mark.parametrize(("stays", "calls"), [(True, [[1], [1, 2]]), (False, [[1], [2]])])
def test_a_side_stays_or_comes_for_each_round(side, stays, calls):
    one = side(stays=stays)
    with all_ready([one]):
        found = [one.round(ask=1), one.round(ask=2)]
    assert [each["calls"] for each in found] == calls
    assert found[0]["job"] == "job"
    assert found[0]["environment"]["OMP_NUM_THREADS"] == "2"
    assert one.last["peak_bytes"] > 1_000_000
    assert list(one.last["versions"]) == ["numpy"]


def test_the_most_memory_of_all_processes_of_a_side_counts(side):
    one = side(stays=False)
    one.last = {"peak_bytes": 1 << 50}
    one.round()
    assert one.last["peak_bytes"] == 1 << 50


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize(
    ("job", "told"), [("fail", r"(?s)one: ended with status 1; .*no such model"), ("job", "one: ended with status 3")]
)
def test_a_side_that_fails_at_once_or_dies_in_a_round_is_reported_with_its_last_lines(side, stays, job, told):
    one = side("one", job, stays)
    with pytest.raises(FailedError, match=told), all_ready([one]):
        one.round(ask="die")


def test_peers_do_not_inherit_what_onion_has_set(monkeypatch):
    for name in (VARIABLE, SPINNING, "OTHER"):
        monkeypatch.setenv(name, "7")
    assert {VARIABLE, SPINNING, "OTHER"} <= processes._inherited(None).keys()
    assert {VARIABLE, SPINNING, "OTHER"} & processes._inherited("transformers").keys() == {"OTHER"}


class Asked:
    def __init__(self, name, order):
        self.name, self.order = name, order

    def round(self, **asked):
        self.order.append(self.name)
        return {"seconds": {"a": 1.0, "b": 4.0}[self.name], **asked}


def test_who_begins_changes_with_each_round():
    order = []
    rounds = alternate([Asked("a", order), Asked("b", order)], 3, ask="train")
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [each["a"]["ask"] for each in rounds] == ["train"] * 3
    assert ratios(rounds, "b", "a", "seconds") == [4.0] * 3
    assert values(rounds, "b", "seconds") == [4.0] * 3


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("fpu avx2", "AMD EPYC (family 25, model 1)"),
        ("fpu avx512f avx_vnni avx512_vnni", "AMD EPYC (family 25, model 1, AVX-512, VNNI)"),
    ],
)
def test_a_machine_is_told_with_what_its_speed_hangs_on(flags, told, monkeypatch, tmp_path):
    path = tmp_path / "cpuinfo"
    core = f"cpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\nflags\t\t: {flags}\n"
    path.write_text(f"{core}\n{core}", encoding="utf-8")
    monkeypatch.setattr(tables, "CPUINFO", path)
    assert tables.machine().split(", ", 1)[1] == told


def test_percentiles_are_values_that_were_there():
    assert [tables.percentile([3, 1, 2], share) for share in (1, 50, 99)] == [1, 2, 3]
    assert tables.percentile(list(range(200, 0, -1)), 99) == 198


# -- sections ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "met", "text"),
    [
        ({"at_most": 2}, True, "at most 2: met"),
        ({"at_most": 1.5}, False, "at most 1.5: **missed**"),
        ({"at_least": 2}, True, "at least 2: met"),
        ({"at_least": 3}, False, "at least 3: **missed**"),
        ({}, None, ""),
    ],
)
def test_a_figure_is_compared_with_its_goal(goal, met, text):
    figure = Figure("what", "s", [1.0, 2.0, 9.0], **goal)
    assert figure.met is met
    assert figure.cells() == ("what", "2.00 s", "1.50 to 5.50", text)
    assert Figure("what", "", [1234.5], digits=1).cells() == ("what", "1,234.5", "", "")


@pytest.fixture
def kept():
    figure = Figure("a step", "µs", [1.0, 3.0], at_most=2.0)
    return Section("loop", "The loop", "How.", 2, [figure], ["A note."], {"torch": "9"}, "2 cores", "2020-02-03")


def test_the_page_has_a_section_of_all_that_was_kept(kept, tmp_path):
    assert bench.page(tmp_path).strip() == bench.HEAD.strip()
    kept.keep(tmp_path)
    assert read(tmp_path / "loop.json") == kept
    where = "2 rounds on 2 cores, 2020-02-03, with torch 9."
    for text in ("## The loop", "How.", "| a step | 2.00 µs |", "- A note.", where):
        assert text in bench.page(tmp_path)


def test_memory_and_versions_of_sides(kept):
    sides = [Namespace(name="one", last={"peak_bytes": 3 << 20, "versions": {"a": "1"}})]
    kept.add_memory(sides, "long, ")
    kept.add_versions([*sides, Namespace(last={})])
    assert kept.figures[-1].cells()[:2] == ("long, peak memory: one", "3 MiB")
    assert kept.versions == {"torch": "9", "a": "1"}


@pytest.mark.parametrize("avx2", [False, True])
def test_a_limited_benchmark_is_a_section_of_its_own(avx2, monkeypatch, capsys):
    for name in section.LIMITS:
        monkeypatch.setenv(name, "as it was")
    found = []
    note = lambda part, given: found.append((part, given.only))  # noqa: E731
    benchmark = Benchmark("speed", "Speed", "By clock.", None, note, 3, ["a", "b"], avx2=True)
    assert benchmark.main(["--only", "b", *(["--avx2"] if avx2 else [])]) == 0
    (part, only) = found[0]
    assert (part.name, part.title) == (("speed-avx2", "Speed, without AVX-512") if avx2 else ("speed", "Speed"))
    assert (part.how, part.rounds, only) == (f"By clock.\n\n{section.LIMITED}" if avx2 else "By clock.", 3, ["b"])
    expected = section.LIMITS if avx2 else dict.fromkeys(section.LIMITS, "as it was")
    assert {name: os.environ[name] for name in section.LIMITS} == expected
    assert f"## {part.title}" in capsys.readouterr().out


def test_every_benchmark_can_be_run_by_its_name(tmp_path, capsys):
    for name in {each.partition("-")[0] for each in bench.NAMES}:
        module = import_module(f"benchmarks.{name}")
        main = module.main if hasattr(module, "main") else import_module(f"benchmarks.{name}.__main__").main
        with pytest.raises(SystemExit) as ended:
            main(["--help"])
        assert ended.value.code == 0
    assert "--rounds" in capsys.readouterr().out


def test_bench_runs_what_is_named(monkeypatch, tmp_path, capsys):
    commands = []
    monkeypatch.setattr(bench, "PAGE", tmp_path / "results.md")
    monkeypatch.setattr(
        bench.subprocess, "run", lambda command, cwd: commands.append(command[1:]) or Namespace(returncode=0)
    )
    assert bench.main(["finetune", "finetune-avx2"]) == 0
    assert commands == [["-m", "benchmarks.finetune", "--keep"], ["-m", "benchmarks.finetune", "--avx2", "--keep"]]
    with pytest.raises(SystemExit):
        bench.main(["speed"])
    assert "there is no benchmark 'speed'" in capsys.readouterr().err


# -- studies -----------------------------------------------------------------------------------------------------------


class Letters(study.Study[str]):
    """A run copies the file of its letter; one of "bad" fails."""

    name, text, noun, table = "letters", "Letters.", "letter", "letters.md"
    names, libraries = ("a", "b"), ("numpy",)

    def runs(self):
        return [name for name in self.names if self.chosen(name)]

    def files(self, run):
        return [self.data / run]

    def stem(self, run):
        return run

    def record(self, run):
        return study.sum_of(self.data / run)

    def execute(self, run):
        content = (self.data / run).read_text()
        if content == "bad":
            raise FailedError(f"{run}: it is bad")
        return {"content": content}

    def summary(self, result):
        return result["content"]

    def page(self):
        return "".join(self.read(name)["content"] if self.read(name) else "-" for name in self.names)


@pytest.fixture
def letters(tmp_path, monkeypatch, capsys):
    """Run the study; return its status, its page and what it printed."""
    (tmp_path / "data").mkdir()
    monkeypatch.setattr(signal, "signal", lambda *given: None)

    def run(*words, data="data", **contents):
        study.sum_of.cache_clear()
        for name, content in contents.items():
            (tmp_path / "data" / name).write_text(content)
        folders = ["--data", str(tmp_path / data), "--out", str(tmp_path / "out"), "--table", str(tmp_path / "page.md")]
        status = Letters.main([*words, *folders])
        page = tmp_path / "page.md"
        return status, page.read_text() if page.exists() else None, "".join(capsys.readouterr())

    return run


def test_what_is_missing_is_run_until_what_it_stands_for_changes(letters, tmp_path):
    status, page, printed = letters(a="x", b="y")
    assert (status, page) == (0, "xy")
    assert "1 of 2: a\n    x; 0 s\n2 of 2: b\n" in printed
    assert " of 2" not in letters()[2]
    assert "1 of 1: b\n" in letters(b="z")[2]
    kept = next((tmp_path / "out").glob("a.*.json"))
    found = json.loads(kept.read_text())
    assert (found["content"], list(found["versions"])) == ("x", ["numpy"])
    assert found["machine"]
    assert found["date"].count("-") == 2
    kept.write_text(kept.read_text()[:-5])  # damaged
    assert "1 of 1: a\n" in letters()[2]
    assert [path.suffix for path in (tmp_path / "out").iterdir()] == [".json"] * 3


def test_a_run_that_fails_does_not_stop_the_others(letters):
    status, page, printed = letters(a="bad", b="y")
    assert (status, page) == (1, "-y")
    assert "failed: a: it is bad" in printed
    assert "1 runs failed" in printed


def test_what_lacks_a_file_is_left_out_and_the_command_line_chooses(letters, tmp_path):
    status, page, printed = letters(a="x")
    assert (status, page) == (0, "x-")
    assert f"b: left out, {tmp_path / 'data' / 'b'} is not there" in printed
    assert letters("b", a="w", b="y")[1] == "-y"
    with pytest.raises(SystemExit):
        letters("c")


def test_without_data_sets_nothing_is_run(letters):
    status, page, printed = letters(data="nowhere")
    assert (status, page) == (2, None)
    assert "make letters DATA=" in printed
