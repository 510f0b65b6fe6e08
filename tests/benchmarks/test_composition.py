"""benchmarks.composition: what is run when, what a result stands for, what the page says."""

import dataclasses
import shutil
import signal
from argparse import Namespace

import pytest

from benchmarks import composition, frame
from benchmarks.composition import ACCURACY, Composition, Example, Metric, Run
from benchmarks.frame import processes
from benchmarks.frame.processes import FailedError
from tests.fresh_python import python
from tests.tasks.helpers import needs_data

SCRIPT = """\
import json, os, sys
from pathlib import Path

variant, seed, own, *others = sys.argv[1:]
if Path(own).exists():
    sys.exit("the folder of an earlier run is there")
Path(own).mkdir()
Path(own, "left").write_text(variant)
if (Path(__file__).parent / f"fail-{variant}-{seed}").exists():
    sys.exit("something broke")
print("a drawing")
print(json.dumps({"accuracy": "not this one"}))
report = {"example": "made", "role": variant, "seed": int(seed), "accuracy": 0.5 + int(seed) / 100, "parts": 2e6}
left = [Path(other, "left").read_text() for other in others]
print(json.dumps({**report, "seconds": 3.0, "threads": os.environ["OMP_NUM_THREADS"], "learned_of": left}))
print("a warning", file=sys.stderr)
"""
EXAMPLE = Example(
    "made",
    "A made one",
    "A text.",
    ("train.tsv",),
    {"teacher": "examples/made.py teacher {seed} {own}", "student": "examples/made.py student {seed} {own} {teacher}"},
    (ACCURACY, Metric("parts", "million parts", times=1e-6)),
    seeds=(1, 2),
)


@pytest.fixture
def top(tmp_path, monkeypatch):
    """The top of a repository with one example, ``examples/made.py``, which is a real process."""
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "made.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "data").mkdir()
    for name in ("train.tsv", "more.tsv"):
        (tmp_path / "data" / name).write_text(name, encoding="utf-8")
    monkeypatch.setattr(frame, "ROOT", tmp_path)
    monkeypatch.setattr(processes, "ROOT", tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *given: None)
    monkeypatch.setattr(Composition, "examples", (EXAMPLE,))
    monkeypatch.setattr(Composition, "names", ("made",))
    return tmp_path


@pytest.fixture
def results(top):
    return Composition(Namespace(out=top / "out", data=top / "data", names=[]))


@pytest.fixture
def drive(top, capsys):
    """Run the command line; return its status, the page, what was run and what went wrong."""

    def run():
        folders = ["--data", str(top / "data"), "--out", str(top / "out"), "--table", str(top / "page.md")]
        status = Composition.main(folders)
        told = capsys.readouterr()
        ran = [line.partition(": ")[2] for line in told.out.splitlines() if " of " in line]
        return status, (top / "page.md").read_text(encoding="utf-8"), ran, told.err

    return run


def lines_of(page):
    return [line[2:-2].split(" | ") for line in page.splitlines() if line.startswith("| ")]


def result(accuracy, seed, **more):
    report = {"example": "made", "role": "teacher", "seed": seed, "accuracy": accuracy, "parts": 2e6, "seconds": 10.0}
    told = {"machine": "2 cores, some processor", "date": f"2020-02-0{seed}", "versions": {"paddlepaddle": "9"}}
    return {"report": report | more, **told}


def test_all_runs_are_made_in_order_and_a_student_has_its_teachers_folder(drive, results):
    status, page, ran, _ = drive()
    assert (status, "not run yet" in page) == (0, False)
    assert ran == [f"made, {who}, seed {seed}" for seed in (1, 2) for who in ("teacher", "student")]
    report = results.read(Run(EXAMPLE, "student", 2))["report"]
    assert (report["learned_of"], report["threads"]) == (["teacher"], "2")
    assert {path.suffix for path in results.folder.iterdir() if path.is_file()} == {".json"}  # no log is left
    assert {path.name for path in (results.folder / "runs").iterdir()} == {"made.teacher.1", "made.teacher.2"}
    assert drive()[2] == []


def test_a_run_that_failed_is_reported_and_begins_again(drive, top):
    broken = top / "examples" / "fail-teacher-1"
    broken.touch()
    status, page, _, errors = drive()
    assert status == 1
    assert "made, teacher, seed 1: ended with status 1" in errors
    assert "something broke" in errors
    assert "made, student, seed 1: needs what made, teacher, seed 1 leaves" in errors
    assert ["teacher", "accuracy", "not run yet", "52.0", "52.0", "3"] in lines_of(page)
    broken.unlink()
    status, page, ran, _ = drive()
    assert (status, ran) == (0, ["made, teacher, seed 1", "made, student, seed 1"])  # in folders that were there


def test_a_teacher_whose_folder_is_gone_is_run_again_for_its_student_only(drive, results):
    drive()
    runs = list(results.runs())
    shutil.rmtree(results.run_folder(runs[0]))
    assert results.missing(runs) == []
    results.path(runs[1]).unlink()
    assert results.missing(runs) == runs[:2]


def test_a_report_that_lacks_a_number_is_a_failure(top, results):
    for wrong, lacks in (('{"accuracy": 1, "seconds": 2}', "parts"), ("nothing", "accuracy"), ("[1]", "accuracy")):
        (top / "examples" / "made.py").write_text(f"print('{wrong}')", encoding="utf-8")
        with pytest.raises(FailedError, match=rf"seed 1: its last line of JSON has no '{lacks}'(.|\n)*{wrong[1:4]}"):
            results.executed(Run(EXAMPLE, "teacher", 1))
        assert results.read(Run(EXAMPLE, "teacher", 1)) is None


def test_a_result_stands_for_its_command_line_what_it_needs_and_the_data(results):
    student = Run(EXAMPLE, "student", 1)
    results.keep(student, result(0.5, 1))
    other = dataclasses.replace(EXAMPLE, title="Other", text="More.", seeds=(1,), metrics=())
    assert results.read(Run(other, "student", 1)) == results.read(student) == result(0.5, 1)
    for variant in EXAMPLE.variants:
        lines = {**EXAMPLE.variants, variant: f"{EXAMPLE.variants[variant]} --more"}
        assert results.read(Run(dataclasses.replace(EXAMPLE, variants=lines), "student", 1)) is None
    assert results.read(Run(dataclasses.replace(EXAMPLE, files=("more.tsv",)), "student", 1)) is None
    assert results.read(Run(EXAMPLE, "student", 2)) is None


def test_the_page_has_every_seed_means_spreads_settings_and_the_machine(results):
    for seed, accuracy, seconds, share in ((1, 0.80, 10.0, 0.25), (2, 0.82, 30.0, 0.5)):
        more = {"seconds": seconds, "batch_size": 4, "lr": 3e-5, "shares": {"a": share}}
        results.keep(Run(EXAMPLE, "teacher", seed), result(accuracy, seed, **more))
    results.keep(Run(EXAMPLE, "student", 2), result(0.9, 2, batch_size=4, lr=1e-4, costs=[]))
    page = results.page()
    columns, _, *lines = lines_of(page)
    assert columns == ["", "figure", "seed 1", "seed 2", "mean", "seconds"]
    assert lines == [
        ["teacher", "accuracy", "80.0", "82.0", "81.0 ± 1.4", "20"],
        ["", "million parts", "2.0", "2.0", "2.0 ± 0.0", ""],
        ["student", "accuracy", "not run yet", "90.0", "90.0", "10"],
        ["", "million parts", "not run yet", "2.0", "2.0", ""],
    ]
    settings = (
        "Settings: batch size 4.\n- teacher: lr 3e-05; shares a 0.25 or a 0.5\n- student: lr 0.0001; costs none\n"
    )
    assert f"\n{settings}" in page
    assert "Machine: 2 cores, some processor. Run 2020-02-01 to 2020-02-02 with paddlepaddle 9." in page
    assert "## A made one\n\nA text.\n\n    python examples/made.py teacher SEED OUT\n" in page
    assert "    python examples/made.py student SEED OUT OUT_OF_TEACHER\n" in page


def test_the_examples_are_there_and_what_is_needed_comes_before():
    study = Composition(Composition._options([]))
    runs = list(study.runs())
    assert len({study.stem(run) for run in runs}) == len(runs)
    for place, run in enumerate(runs):
        assert study.files(run)[0].is_file()
        assert run.line.startswith(f"examples/{run.example.name}.py {{data}}/")
        assert all(need in runs[:place] for need in run.needs), str(run)


@needs_data
def test_the_data_of_the_examples_are_there():
    study = Composition(Composition._options([]))
    assert [path for run in study.runs() for path in study.files(run) if not path.is_file()] == []


@pytest.mark.parametrize("module", ["benchmarks.composition", "benchmarks.results.__main__"])
def test_nothing_of_paddle_is_loaded_to_find_out_what_is_missing(module):
    assert python(f"import sys, {module}; print('paddle' in sys.modules)")[0] == "False"
    assert composition.THREADS == 2
