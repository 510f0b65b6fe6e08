"""benchmarks.results: what a result stands for, how a side is run, what the table says."""

import dataclasses
import json
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import paddle
import pytest

from benchmarks.frame.processes import FailedError
from benchmarks.results import __main__ as results
from benchmarks.results import onion_side, page
from benchmarks.results.__main__ import OURS, ROWS, SIDES, THEIRS, Results, Row, Run
from benchmarks.results.files import squad_figures
from tests.tasks.helpers import needs_data

ROW = Row("small", "Small", "classify", "train.tsv", {"dev": "dev.tsv"}, ("accuracy",), passes=2, seeds=(1, 2))


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study of one row, with its files."""
    (tmp_path / "data").mkdir()
    for name in ("train.tsv", "dev.tsv", "more.tsv"):
        (tmp_path / "data" / name).write_text(f"label\ttext_a\n1\t{name}\n", encoding="utf-8")
    monkeypatch.setattr(Results, "rows", (ROW,))
    return Results(
        Namespace(data=tmp_path / "data", out=tmp_path / "work", kept=tmp_path / "kept", sides=SIDES, names=[])
    )


@pytest.fixture
def table(study, monkeypatch):
    """The lines of the table of a row."""

    def lines(row=ROW):
        monkeypatch.setattr(Results, "rows", (row,))
        return [line[2:-2].split(" | ") for line in study.page().splitlines() if line.startswith("|")][2:]

    return lines


def result(accuracy, seconds=10.0, steps=7):
    told = {"machine": "2 cores, some processor", "date": "2020-02-03", "versions": {"torch": "9"}}
    return {"figures": {"dev": {"accuracy": accuracy}}, "seconds": seconds, "steps": steps, **told}


def test_a_seed_is_run_on_both_sides_before_the_next(study, monkeypatch):
    ours = dataclasses.replace(ROW, name="b", seeds=(1,), sides=(OURS,))
    monkeypatch.setattr(Results, "rows", (ROW, ours))
    expected = [f"small, {side}, seed {seed}" for seed in (1, 2) for side in SIDES]
    assert list(map(str, study.runs())) == [*expected, "b, onion, seed 1"]


CHANGES = (
    *({"passes": 3}, {"lr": 1e-4}, {"max_length": 64}, {"encoder": "ernie-4x256"}, {"figures": ("f1",)}),
    *(
        {"options": {"label_smoothing": 0.1}},
        {"dev": {"dev": "more.tsv"}},
        {"train": "more.tsv"},
        {"train": "none.tsv"},
    ),
)


def test_a_result_is_found_again_until_anything_that_it_stands_for_changes(study):
    study.keep(Run(ROW, OURS, 1), result(0.5))
    titled = dataclasses.replace(ROW, title="Other", note="A remark.", seeds=(1, 2, 3))
    assert study.read(Run(titled, OURS, 1)) == result(0.5)
    others = [Run(dataclasses.replace(ROW, **change), OURS, 1) for change in CHANGES]
    for other in (Run(ROW, OURS, 2), Run(ROW, THEIRS, 1), *others):
        assert study.read(other) is None, other
    same = dataclasses.replace(ROW, same_head=True)
    assert study.path(Run(ROW, OURS, 1)) != study.path(Run(same, OURS, 1))
    assert study.path(Run(ROW, THEIRS, 1)) == study.path(Run(same, THEIRS, 1))  # theirs draws the head in either case


@needs_data
def test_the_kept_results_are_those_of_the_rows():
    study = Results(Results._options([]))
    assert [path for run in study.runs() for path in study.files(run) if not path.is_file()] == []
    assert {study.path(run) for run in study.runs()} >= set(study.folder.iterdir())
    with pytest.raises(SystemExit):
        Results._options(["sst2"])


def test_our_side_begins_with_the_head_of_a_file(tmp_path):
    head = paddle.nn.Linear(4, 2)
    weight, bias = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([1, 2], np.float32)
    np.savez(tmp_path / "head.npz", weight=weight, bias=bias)
    onion_side.begin_with(head, tmp_path / "head.npz")
    assert (head.weight.numpy() == weight).all()
    assert (head.bias.numpy() == bias).all()


def test_the_table_has_means_spreads_differences_and_what_is_missing(study, table):
    settings = "2 passes, rate 5e-05, 128 tokens, 2 seeds"
    assert table() == [["Small", settings, "accuracy", "not run yet", "not run yet", "", "– / –"]]
    for seed, accuracy, seconds in ((1, 0.80, 10.0), (2, 0.82, 30.0)):
        study.keep(Run(ROW, OURS, seed), result(accuracy, seconds))
    study.keep(Run(ROW, THEIRS, 2), result(0.804, 44.4))
    settings = "2 passes (7 steps), rate 5e-05, 128 tokens, 2 seeds"
    assert table() == [["Small", settings, "accuracy", "81.0 ± 1.4", "80.4 (1 of 2 seeds)", "+0.6", "20 / 44"]]
    assert "Machine: 2 cores, some processor. Run 2020-02-03 with torch 9." in study.page()
    assert table(dataclasses.replace(ROW, same_head=True))[0][1].endswith(", ours begins with their head")


def test_only_a_difference_of_more_than_a_point_is_bold(study, table):
    study.keep(Run(ROW, THEIRS, 1), result(0.90))
    for ours, told in ((0.8901, "-1.0"), (0.889, "**-1.1**"), (0.95, "+5.0")):
        study.keep(Run(ROW, OURS, 1), result(ours))
        assert table()[0][5] == told


def test_every_figure_on_every_file_has_a_line(study, table):
    dev = {"dev": "dev.tsv", "more": "more.tsv"}
    lines = table(dataclasses.replace(ROW, dev=dev, figures=("exact_match", "f1"), sides=(OURS,), note="Why."))
    assert [line[2] for line in lines] == ["exact match, dev", "f1, dev", "exact match, more", "f1, more"]
    assert {(line[3], line[4]) for line in lines} == {("not run yet", "–")}
    assert study.page().endswith("- Small: Why.\n")


def test_an_earlier_line_stays_until_its_row_is_run_again(study, table):
    row = dataclasses.replace(ROW, name="rte")
    assert table(row) == [[f"Small {page.MARK}", *page.EARLIER["rte"][0].split(" | ")]]
    assert page.NOTE in study.page()
    study.keep(Run(row, OURS, 1), result(0.5))
    assert table(row)[0][0] == "Small"
    assert page.NOTE not in study.page()
    assert page.EARLIER.keys() <= {row.name for row in ROWS}
    assert {line.count(" | ") for lines in page.EARLIER.values() for line in lines} == {len(page.COLUMNS) - 2}


@pytest.fixture
def stand_in(study, monkeypatch, tmp_path):
    """Let some code be a side: it has ``job`` and the words behind it."""
    monkeypatch.setattr(results, "encoder_folder", lambda name, data, made: tmp_path / name)
    monkeypatch.setattr(results, "python_of", lambda name: {"transformers": sys.executable}[name])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def put(side, code):
        module = f"side_of_{side.replace('-', '_')}"
        begin = "import json, sys\nfrom pathlib import Path\n"
        begin += "job = json.load(open(sys.argv[1]))\nhead = Path(job['head_file'])\n"
        (tmp_path / f"{module}.py").write_text(begin + code + "\n", encoding="utf-8")
        monkeypatch.setitem(results.MODULES, side, module)

    return put


def test_a_side_that_fails_is_reported_with_what_it_said(study, stand_in):
    stand_in(OURS, "sys.exit('no such model')")
    with pytest.raises(FailedError, match=r"small, onion, seed 1: ended with status 1(.|\n)*no such model"):
        study.executed(Run(ROW, OURS, 1))
    stand_in(OURS, "")
    with pytest.raises(FailedError, match="small, onion, seed 1: gave no answer"):
        study.executed(Run(ROW, OURS, 1))


def test_what_a_side_answers_is_kept_with_machine_and_date(study, stand_in, tmp_path):
    stand_in(OURS, "json.dump({'job': job}, open(job['answer'], 'w'))")
    found = study.executed(Run(ROW, OURS, 2))
    job = found["job"]
    assert (job["task"], job["seed"], job["passes"], job["threads"]) == ("classify", 2, 2, 2)
    assert (job["encoder"], job["options"]) == (str(tmp_path / "minilm"), {"max_length": 128})
    assert Path(job["train"]).name == "train.tsv"
    assert found["machine"]
    assert study.read(Run(ROW, OURS, 2)) == json.loads(json.dumps(found))
    assert [path.suffix for path in study.folder.iterdir()] == [".json"]
    assert list(study.work.iterdir()) == []


def test_the_head_is_drawn_by_the_other_side_before_ours_begins(study, stand_in):
    stand_in(THEIRS, "assert sys.argv[2] == 'head'\nhead.write_text('drawn')")
    stand_in(OURS, "Path(job['answer']).write_text(json.dumps({'head': head.read_text()}))")
    assert study.executed(Run(dataclasses.replace(ROW, same_head=True), OURS, 1))["head"] == "drawn"


@needs_data
def test_the_random_encoder_is_the_same_every_time(tmp_path):
    data = Results._options([]).data
    first, second = (results.encoder_folder(results.ERNIE, data, tmp_path / name) for name in ("a", "b"))
    assert {path.name for path in first.iterdir()} >= {"config.json", "model.safetensors", "tokenizer.json"}
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name
    assert results.encoder_folder(results.ERNIE, data, tmp_path / "a") == first
    assert [path.name for path in (tmp_path / "a").iterdir()] == [results.ERNIE]  # nothing half-made is left


def test_squad_figures_are_those_of_worked_examples():
    """Four questions: exact after normalisation; two of three words right; nothing right; two answers, one fits."""
    true = {"a": ["The Cat's hat!"], "b": ["in the year 1066"], "c": ["Paris"], "d": ["one", "one two"]}
    told = {"a": "cats  hat", "b": "the year 1066 AD", "c": "", "d": "one two"}
    found = squad_figures(true, told)
    # b: {in, year, 1066} and {year, 1066, ad} share two of three words each
    assert found == {"exact_match": 0.5, "f1": pytest.approx((1 + 2 / 3 + 0 + 1) / 4)}
