"""benchmarks.compression: what is run, what decides about a result, what the page says."""

from argparse import Namespace

import pytest

from benchmarks.compression import study as module
from benchmarks.compression.sides import FORMS, RUN, TEACHER
from benchmarks.compression.study import SETS, WHOLE, Compression, Run


@pytest.fixture
def study(tmp_path):
    for folder in ("glue/mrpc", "glue/sst-2"):
        (tmp_path / "data" / folder).mkdir(parents=True)
        for name in ("train.tsv", "dev.tsv"):
            (tmp_path / "data" / folder / name).write_text("text_a\tlabel\na\t1\n", encoding="utf-8")
    places = {name: tmp_path / name for name in ("out", "kept")}
    given = {**places, "data": tmp_path / "data", "table": tmp_path / "page.md", "names": [], "seeds": 3}
    return Compression(Namespace(**given))


def result(teacher, accuracy, faster):
    sides = {
        name: {"accuracy": accuracy, "times_faster": faster, "changed": 0.02, "megabytes": 8.0, "seconds_per_1000": 2.5}
        for name in (RUN, *FORMS)
    }
    sides[TEACHER] = {"accuracy": teacher, "times_faster": 1.0, "changed": 0.0}
    return {"sides": sides, "versions": {}, "machine": "m", "date": "d"}


def test_the_whole_model_of_a_seed_comes_before_what_is_made_of_it(study):
    runs = [run for run in study.runs() if run.set == "mrpc"]
    assert [run.size for run in runs] == [*SETS["mrpc"].sizes] * 3
    assert runs[0].size == WHOLE
    assert "width 0.75" not in {run.size for run in study.runs() if run.set == "sst-2"}
    assert study.line(Run("mrpc", WHOLE, 2)).startswith("train --task classification --encoder minilm")
    assert study.line(Run("sst-2", "width 0.5, fewer layers", 1)).startswith(
        "compress --run {whole} --width 0.5 --layers 4 "
    )
    assert study.line(Run("chnsenticorp", "width 0.5, fewer layers", 2)).startswith(
        "compress --run {whole} --width 0.5 --layers 2 "
    )
    assert "--seed 2" in study.line(Run("mrpc", "width 0.75", 2))


def test_a_whole_model_whose_folder_is_gone_is_trained_again_if_it_is_needed(study):
    study.given.names = ["mrpc"]
    runs, whole = list(study.runs()), Run("mrpc", WHOLE, 2)
    for run in runs:
        study.keep(run, result(0.8, 0.8, 1.1))
    assert study.missing(runs) == []
    study.path(Run("mrpc", "width 0.5", 2)).unlink()
    assert study.missing(runs) == [whole, Run("mrpc", "width 0.5", 2)]
    study.place(whole).mkdir(parents=True)
    assert study.missing(runs) == [Run("mrpc", "width 0.5", 2)]
    study.log(whole).touch()  # its training was interrupted
    assert study.missing(runs) == [whole, Run("mrpc", "width 0.5", 2)]


def test_every_run_has_a_result_and_a_folder_of_its_own(study):
    runs = [run for run in study.runs() if run.set != "chnsenticorp"]
    assert len({study.path(run) for run in runs}) == len({study.place(run) for run in runs}) == len(runs)


def test_results_with_fewer_layers_are_those_of_the_layers_that_are_copied_now(study, monkeypatch):
    runs = [Run("mrpc", size, 1) for size in ("width 0.5", "width 0.5, fewer layers")]
    before = [study.path(run) for run in runs]
    monkeypatch.setattr(module, "COPIED", "others")
    assert [study.path(run) == path for run, path in zip(runs, before, strict=True)] == [True, False]


def test_the_page_compares_with_the_whole_model_of_the_same_seed(study):
    before = study.page()
    assert before.count("\nNot run yet.\n") == before.count("\n## ") == 3
    for seed, (teacher, half) in zip((1, 2), [(0.80, 0.79), (0.82, 0.80)], strict=True):
        study.keep(Run("mrpc", WHOLE, seed), result(teacher, teacher, 1.1))
        study.keep(Run("mrpc", "width 0.5", seed), result(teacher, half, 3.2))
    page = study.page()
    assert "## mrpc, of minilm" in page
    assert "| whole | Paddle | 80.0 | 82.0 | not run yet | +0.0 |  | 1.0 |  | 0.0 % |" in page
    assert "| width 0.5 | Paddle | 79.0 | 80.0 | not run yet | -1.5 | 2.50 | 3.2 | 8.0 | 2.0 % |" in page
    assert "| width 0.75 | Paddle | not run yet | not run yet | not run yet |  |  |  |  |  |" in page


def test_the_page_says_which_sizes_each_machine_measured(study):
    for size, machine in ((WHOLE, "m"), ("width 0.75", "m"), ("width 0.5, fewer layers", "n")):
        study.keep(Run("mrpc", size, 1), {**result(0.8, 0.8, 1.1), "machine": machine})
    told = [line for line in study.page().splitlines() if line.startswith("Machine: ")]
    assert [line.split(" Sizes: ")[1] for line in told] == ["whole; width 0.75.", "width 0.5, fewer layers."]
    study.path(Run("mrpc", "width 0.5, fewer layers", 1)).unlink()
    assert "Sizes" not in study.page()


def test_the_page_says_whether_the_goal_was_reached(study):
    study.keep(Run("mrpc", WHOLE, 1), result(0.80, 0.80, 1.1))
    study.keep(Run("mrpc", "width 0.5", 1), result(0.80, 0.795, 2.9))
    told = "the fastest is: width 0.5, Paddle (2.9 times as fast, -0.5 points, 1 of 3 seeds)"
    assert f"{told}. The goal, 3 times as fast within a point, is not reached." in " ".join(study.page().split())
    study.keep(Run("mrpc", "width 0.5, fewer layers", 1), result(0.80, 0.70, 5.0))  # not as good
    assert told in " ".join(study.page().split())
    study.keep(Run("mrpc", "width 0.75", 1), result(0.80, 0.79, 3.0))
    told = "(3.0 times as fast, -1.0 points, 1 of 3 seeds). The goal, 3 times as fast within a point, is reached."
    assert told in " ".join(study.page().split())
