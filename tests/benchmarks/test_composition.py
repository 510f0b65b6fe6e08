"""The bookkeeping of ``make composition``: what is run when, what a result stands for, what the page tells."""

import dataclasses
import importlib
import shutil
import signal
import subprocess
import sys

import pytest

from tests.paths import ROOT

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


@pytest.fixture
def load(monkeypatch):
    """Import a module of benchmarks/composition."""
    monkeypatch.syspath_prepend(str(ROOT))
    importlib.import_module("benchmarks.composition.__main__")  # all of them, before anything is patched
    return lambda name: importlib.import_module(f"benchmarks.composition.{name}")


@pytest.fixture
def repository(load, tmp_path, monkeypatch):
    """The top of a repository with one example, ``examples/made.py``, which is a real process."""
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "made.py").write_text(SCRIPT, encoding="utf-8")
    monkeypatch.setattr(load("pieces"), "ROOT", tmp_path)
    monkeypatch.setattr(importlib.import_module("benchmarks.common.processes"), "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("train.tsv", "more.tsv"):
        (folder / name).write_text(name, encoding="utf-8")
    return folder


@pytest.fixture
def example(load):
    compared = load("compared")
    return compared.Example(
        "made",
        "A made one",
        "A text.",
        ("train.tsv",),
        {
            "teacher": "examples/made.py teacher {seed} {own}",
            "student": "examples/made.py student {seed} {own} {teacher}",
        },
        (compared.ACCURACY, compared.Figure("parts", "million parts", times=1e-6)),
        seeds=(1, 2),
    )


@pytest.fixture
def results(load, repository, data):
    return load("pieces").Results(repository / "out", data)


@pytest.fixture
def drive(load, example, results, monkeypatch):
    """Run the command line on the one example; return its status and the page."""
    main = load("__main__")
    monkeypatch.setattr(main, "EXAMPLES", (example,))
    monkeypatch.setattr(load("compared"), "EXAMPLES", (example,))
    table = results.folder.parent / "composition.md"

    def run(*names):
        arguments = ["--data", str(results.data), "--out", str(results.folder), "--table", str(table)]
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            return main.main([*names, *arguments]), table.read_text(encoding="utf-8")
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    return run


def ran(capsys):
    return [line.partition(": ")[2] for line in capsys.readouterr().out.splitlines() if " of " in line]


def lines_of(page):
    return [line[2:-2].split(" | ") for line in page.splitlines() if line.startswith("| ")]


def result(accuracy, seed, **more):
    report = {"example": "made", "role": "teacher", "seed": seed, "accuracy": accuracy, "parts": 2e6, "seconds": 10.0}
    told = {"machine": "2 cores, some processor", "date": f"2020-02-0{seed}", "versions": {"paddlepaddle": "9"}}
    return {"report": report | more, **told}


# -- what is run -------------------------------------------------------------------------------------------------------


def test_all_pieces_are_run_in_order_and_not_again(drive, capsys):
    status, page = drive()
    assert status == 0
    assert ran(capsys) == [
        "made, teacher, seed 1",
        "made, student, seed 1",
        "made, teacher, seed 2",
        "made, student, seed 2",
    ]
    assert drive() == (0, page)
    assert ran(capsys) == []


def test_a_student_has_its_teachers_folder(load, drive, results, example):
    drive()
    pieces = {str(piece): piece for piece in load("pieces").pieces_of([example])}
    student = results.read(pieces["made, student, seed 2"])["report"]
    assert student["learned_of"] == ["teacher"]
    assert student["threads"] == "2"
    assert results.command(pieces["made, student, seed 2"])[1:] == [
        "student",
        "2",
        str(results.folder / "runs" / "made.student.2"),
        str(results.folder / "runs" / "made.teacher.2"),
    ]


def test_what_is_kept_has_the_report_machine_date_and_version(load, drive, results, example):
    drive()
    found = results.read(load("pieces").Piece(example, "teacher", 1))
    assert found["report"]["accuracy"] == 0.51
    assert found["machine"]
    assert found["date"].count("-") == 2
    assert found["versions"]["paddlepaddle"].count(".") >= 1
    assert {path.suffix for path in results.folder.iterdir() if path.is_file()} == {".json"}  # no log is left
    assert {path.name for path in (results.folder / "runs").iterdir()} == {"made.teacher.1", "made.teacher.2"}


def test_a_piece_that_failed_is_told_and_begins_again(drive, repository, capsys):
    broken = repository / "examples" / "fail-teacher-1"
    broken.touch()
    status, page = drive()
    assert status == 1
    told = capsys.readouterr()
    assert "made, teacher, seed 1: ended with status 1" in told.err
    assert "something broke" in told.err
    assert "made, student, seed 1: needs what made, teacher, seed 1 leaves" in told.err
    assert "2 pieces failed" in told.out
    assert ["teacher", "accuracy", "not run yet", "52.0", "52.0", "3"] in lines_of(page)
    broken.unlink()
    status, page = drive()
    assert status == 0
    assert ran(capsys) == ["made, teacher, seed 1", "made, student, seed 1"]  # in a folder that was there: made anew
    assert "not run yet" not in page


def test_a_teacher_whose_folder_is_gone_is_run_again_for_its_student_only(load, drive, results, example, capsys):
    drive()
    pieces = list(load("pieces").pieces_of([example]))
    shutil.rmtree(results.run_folder(pieces[0]))
    assert results.missing(pieces) == []
    results.path(pieces[1]).unlink()
    assert results.missing(pieces) == pieces[:2]


def test_a_report_that_lacks_a_figure_is_a_failure(load, drive, repository, example, results):
    script = repository / "examples" / "made.py"
    for wrong, lacks in (('{"accuracy": 1, "seconds": 2}', "parts"), ("nothing", "accuracy"), ("[1]", "accuracy")):
        script.write_text(f"print('{wrong}')", encoding="utf-8")
        piece = load("pieces").Piece(example, "teacher", 1)
        failed = importlib.import_module("benchmarks.common.processes").FailedError
        with pytest.raises(
            failed, match=rf"teacher, seed 1: its last line of JSON has no '{lacks}'(.|\n)*{wrong[1:4]}"
        ):
            load("processes").run(piece, results)
        assert results.read(piece) is None


def test_names_choose_and_unknown_ones_are_told(drive, capsys):
    with pytest.raises(SystemExit):
        drive("mda")
    assert "there is no example 'mda'; there are made" in capsys.readouterr().err
    assert drive("made")[0] == 0


def test_what_is_not_there_is_left_out(drive, repository, data, capsys):
    (data / "train.tsv").unlink()
    status, page = drive()
    assert status == 0
    assert f"made: left out, {data / 'train.tsv'} is not there" in capsys.readouterr().err
    assert lines_of(page)[2][:4] == ["teacher", "accuracy", "not run yet", "not run yet"]
    (data / "train.tsv").touch()
    (repository / "examples" / "made.py").unlink()
    drive()
    assert "made.py is not there" in capsys.readouterr().err


def test_a_folder_without_data_is_told(load, tmp_path, capsys):
    arguments = ["--data", str(tmp_path / "none"), "--out", str(tmp_path), "--table", str(tmp_path / "page.md")]
    assert load("__main__").main(arguments) == 2
    assert "make composition DATA=" in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()


# -- what a result stands for ------------------------------------------------------------------------------------------


def test_a_result_stands_for_its_command_line_what_it_needs_and_the_data(load, results, example, data):
    make = load("pieces").Piece
    student = make(example, "student", 1)
    results.keep(student, result(0.5, 1))
    assert results.read(student) == result(0.5, 1)
    titled = dataclasses.replace(example, title="Other", text="More.", seeds=(1,), figures=())
    assert results.read(make(titled, "student", 1)) == result(0.5, 1)
    for variant in example.variants:
        other = {**example.variants, variant: f"{example.variants[variant]} --more"}
        assert results.read(make(dataclasses.replace(example, variants=other), "student", 1)) is None
    assert results.read(make(dataclasses.replace(example, files=("more.tsv",)), "student", 1)) is None
    assert results.read(make(example, "student", 2)) is None
    assert results.read(make(example, "teacher", 1)) is None


def test_where_the_data_stand_does_not_matter(load, results, example, tmp_path):
    piece = load("pieces").Piece(example, "teacher", 1)
    (tmp_path / "elsewhere").mkdir()
    for content, same in (("train.tsv", True), ("other", False)):
        there = tmp_path / "elsewhere" / content
        there.mkdir()
        (there / "train.tsv").write_text(content, encoding="utf-8")
        assert (load("pieces").Results(results.folder, there).path(piece) == results.path(piece)) is same


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_page_has_every_seed_means_spreads_settings_and_the_machine(load, results, example):
    page, make = load("page").page, load("pieces").Piece
    assert lines_of(page([example], results))[2:] == [
        ["teacher", "accuracy", "not run yet", "not run yet", "", ""],
        ["", "million parts", "not run yet", "not run yet", "", ""],
        ["student", "accuracy", "not run yet", "not run yet", "", ""],
        ["", "million parts", "not run yet", "not run yet", "", ""],
    ]
    for seed, accuracy, seconds, share in ((1, 0.80, 10.0, 0.25), (2, 0.82, 30.0, 0.5)):
        more = {"seconds": seconds, "batch_size": 4, "lr": 3e-5, "shares": {"a": share}}
        results.keep(make(example, "teacher", seed), result(accuracy, seed, **more))
    results.keep(make(example, "student", 2), result(0.9, 2, batch_size=4, lr=1e-4, losses=[]))
    told = page([example], results)
    columns, _, *lines = lines_of(told)
    assert columns == ["", "figure", "seed 1", "seed 2", "mean", "seconds"]
    assert lines == [
        ["teacher", "accuracy", "80.0", "82.0", "81.0 ± 1.4", "20"],
        ["", "million parts", "2.0", "2.0", "2.0 ± 0.0", ""],
        ["student", "accuracy", "not run yet", "90.0", "90.0", "10"],
        ["", "million parts", "not run yet", "2.0", "2.0", ""],
    ]
    assert (
        "\nSettings: batch size 4.\n- teacher: lr 3e-05; shares a 0.25 or a 0.5\n- student: lr 0.0001; costs none\n"
        in told
    )
    assert "Machine: 2 cores, some processor. Run 2020-02-01 to 2020-02-02 with paddlepaddle 9." in told
    assert "## A made one\n\nA text.\n\n    python examples/made.py teacher SEED OUT\n" in told
    assert "    python examples/made.py student SEED OUT OUT_OF_TEACHER\n" in told


def test_one_seed_has_no_mean(load, results, example):
    once = dataclasses.replace(example, seeds=(1,))
    results.keep(load("pieces").Piece(once, "teacher", 1), result(0.8, 1))
    told = load("page").page([once], results)
    columns, _, first, *_ = lines_of(told)
    assert columns == ["", "figure", "seed 1", "seconds"]
    assert "\n- " not in told  # no variant has settings of its own
    assert first == ["teacher", "accuracy", "80.0", "10"]


# -- the examples ------------------------------------------------------------------------------------------------------


def test_the_examples_and_their_data_are_there(load):
    compared, pieces = load("compared"), load("pieces")
    names = [example.name for example in compared.EXAMPLES]
    assert len(set(names)) == len(names)
    assert [example.name for example in compared.chosen(["siamese", "joint_mrpc"])] == ["joint_mrpc", "siamese"]
    with pytest.raises(KeyError):
        compared.chosen(["joint"])
    for example in compared.EXAMPLES:
        assert (ROOT / "examples" / f"{example.name}.py").is_file()
        for line in example.variants.values():
            assert line.startswith(f"examples/{example.name}.py {{data}}/")
    data = load("__main__").DATA
    if not data.is_dir():
        pytest.skip("the data sets are not here")
    assert not [path for example in compared.EXAMPLES for path in pieces.missing_files(example, data)]


def test_what_is_needed_comes_before(load):
    pieces = list(load("pieces").pieces_of(load("compared").EXAMPLES))
    for place, piece in enumerate(pieces):
        assert all(need in pieces[:place] for need in piece.needs), str(piece)


def test_nothing_of_paddle_is_loaded_to_find_out_what_is_missing():
    code = "import sys, benchmarks.composition.__main__; print('paddle' in sys.modules)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
