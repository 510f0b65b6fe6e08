"""benchmarks.students: what is run, the rows that are drawn, what the page says."""

from argparse import Namespace

import pytest

from benchmarks.frame.study import sum_of
from benchmarks.students import LABELLED, SEEDS, STUDENTS, Run, Students, draw, interval


@pytest.fixture
def study(tmp_path):
    folder = tmp_path / "data" / "glue" / "sst-2"
    folder.mkdir(parents=True)
    rows = "".join(f"{number % 2}\ttext {number}\n" for number in range(LABELLED + 10))
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_text(f"label\ttext_a\n{rows}", encoding="utf-8")
    given = {"out": tmp_path / "out", "data": tmp_path / "data", "table": tmp_path / "page.md", "names": []}
    return Students(Namespace(**given, teacher=[]))


def report(accuracy):
    costs = {f"{side}.{name}": 2.0 for side in ("teacher", "student") for name in ("parameters", "seconds_per_1000")}
    return {
        "report": {"dev.accuracy": accuracy, "times_faster": 70.0, **costs},
        "versions": {},
        "machine": "m",
        "date": "d",
    }


def test_the_teacher_comes_first_and_a_set_without_one_is_left_out(study):
    runs = list(study.runs())
    assert runs[0] == Run("sst-2", "teacher")
    assert len(runs) == 1 + len(SEEDS) * sum(map(len, STUDENTS.values()))
    assert {run.set for run in runs} == {"sst-2"}
    study.given.teacher = ["chnsenticorp=/a/run"]
    assert Run("chnsenticorp", "bow", "alone", 1) in list(study.runs())
    assert Run("chnsenticorp", "teacher") not in list(study.runs())


def test_rows_are_drawn_once_and_none_twice(study, tmp_path):
    train = study.files(Run("sst-2", "teacher"))[0]
    draw(train, tmp_path / "drawn")
    labelled, more = (
        (tmp_path / "drawn" / name).read_text(encoding="utf-8").splitlines() for name in ("train.tsv", "more.tsv")
    )
    assert labelled[0] == more[0] == "label\ttext_a"
    assert (len(labelled), len(more)) == (1 + LABELLED, 11)
    assert len({*labelled, *more}) == LABELLED + 11


def test_every_run_has_a_result_of_its_own(study):
    runs = list(study.runs())
    assert len({study.path(run) for run in runs}) == len(runs)
    assert study.line(Run("sst-2", "bow", "unlabelled", 2)).endswith(
        "--logits {own}/logits-more --unlabelled {own}/more.tsv --output {run}"
    )
    assert "--logits" not in study.line(Run("sst-2", "tiny", "teacher", 2))


def test_other_rows_are_drawn_into_another_folder(study):
    run = Run("sst-2", "bow", "alone", 1)
    before = study.own(run)
    study.files(run)[0].write_text("label\ttext_a\n0\tother\n", encoding="utf-8")
    sum_of.cache_clear()
    assert study.own(run) != before


def test_a_page_with_more_figures_is_left_as_it_is(study, capsys):
    table = study.given.table
    study.keep(Run("sst-2", "teacher"), report(0.86))
    study.write_page(table)
    page = table.read_text(encoding="utf-8")
    study.path(Run("sst-2", "teacher")).unlink()  # as on another machine
    study.write_page(table)
    assert table.read_text(encoding="utf-8") == page
    assert "it has more figures than there are results here" in capsys.readouterr().err


def test_the_page_has_figures_gains_and_costs(study):
    assert "## sst-2" not in study.page()
    study.keep(Run("sst-2", "teacher"), report(0.86))
    for seed, (alone, taught) in zip(SEEDS, [(0.75, 0.77), (0.76, 0.78), (0.74, 0.77)], strict=True):
        study.keep(Run("sst-2", "bow", "alone", seed), report(alone))
        study.keep(Run("sst-2", "bow", "teacher", seed), report(taught))
    page = study.page()
    assert "| teacher |  | 86.0 |" in page
    assert "| bow | labels only | 75.0 | 76.0 | 74.0 | 75.0 ± 1.0 |  |" in page
    assert "|  | labels and teacher | 77.0 | 78.0 | 77.0 | 77.3 ± 0.6 | +2.3 (+0.9 to +3.8) |" in page
    assert "| not run yet |" in page
    assert "| bow | 0.00 | 2 | 70 |" in page


def test_an_interval_needs_all_seeds():
    assert interval([1.0, 2.0]) == ""
    assert interval([1.0, 2.0, 3.0]) == "+2.0 (-0.5 to +4.5)"
