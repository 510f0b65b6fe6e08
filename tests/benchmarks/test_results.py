"""The bookkeeping of ``make results``: what is missing, what a result stands for, what the table says of it."""

import dataclasses
import importlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import paddle
import pytest

from tests.paths import ROOT


@pytest.fixture
def load(monkeypatch):
    """Import a module of benchmarks/results."""
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.results.{name}")


@pytest.fixture
def data(tmp_path):
    """A folder with the files of one row."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("train.tsv", "dev.tsv", "more.tsv"):
        (folder / name).write_text(f"label\ttext_a\n1\t{name}\n", encoding="utf-8")
    return folder


@pytest.fixture
def row(load):
    return load("rows").Row(
        "small", "Small", "classify", "train.tsv", {"dev": "dev.tsv"}, ("accuracy",), passes=2, seeds=(1, 2)
    )


@pytest.fixture
def results(load, tmp_path, data):
    return load("pieces").Results(tmp_path / "out", data)


def result(accuracy, seconds=10.0, steps=7):
    return {
        "figures": {"dev": {"accuracy": accuracy}},
        "seconds": seconds,
        "steps": steps,
        "machine": "2 cores, some processor",
        "date": "2020-02-03",
        "versions": {"torch": "9"},
    }


def table_lines(page):
    return [line[2:-2].split(" | ") for line in page.splitlines() if line.startswith("|")][2:]


def test_a_seed_is_run_on_both_sides_before_the_next(load, row):
    pieces = load("pieces")
    found = list(pieces.pieces_of([row, dataclasses.replace(row, name="b", seeds=(1,))], ("onion", "hugging-face")))
    assert list(map(str, found)) == [
        "small, onion, seed 1",
        "small, hugging-face, seed 1",
        "small, onion, seed 2",
        "small, hugging-face, seed 2",
        "b, onion, seed 1",
        "b, hugging-face, seed 1",
    ]


def test_a_side_that_a_row_has_not_is_not_run(load, row):
    ours = dataclasses.replace(row, sides=("onion",))
    assert {piece.side for piece in load("pieces").pieces_of([ours], ("onion", "hugging-face"))} == {"onion"}
    assert not list(load("pieces").pieces_of([ours], ("hugging-face",)))


def test_a_result_is_found_again_until_anything_that_it_stands_for_changes(load, row, results, data):
    make = load("pieces").Piece
    piece = make(row, "onion", 1)
    assert results.read(piece) is None
    results.keep(piece, result(0.5))
    assert results.read(piece) == result(0.5)
    assert results.read(make(dataclasses.replace(row, title="Other", note="A remark.", seeds=(1, 2, 3)), "onion", 1))
    for other in (
        make(row, "onion", 2),
        make(row, "hugging-face", 1),
        *(make(dataclasses.replace(row, **change), "onion", 1) for change in CHANGES),
    ):
        assert results.read(other) is None, other


CHANGES = (
    {"passes": 3},
    {"lr": 1e-4},
    {"max_length": 64},
    {"encoder": "ernie-4x256"},
    {"options": {"label_smoothing": 0.1}},
    {"figures": ("f1",)},
    {"dev": {"dev": "more.tsv"}},
    {"train": "more.tsv"},
    {"train": "missing.tsv"},
)


def test_a_borrowed_head_makes_another_result_of_ours_only(load, row, results):
    pieces = load("pieces")
    same = dataclasses.replace(row, same_head=True)
    sides = {side: [results.path(pieces.Piece(each, side, 1)) for each in (row, same)] for side in load("rows").SIDES}
    assert sides["onion"][0] != sides["onion"][1]
    assert sides["hugging-face"][0] == sides["hugging-face"][1]  # theirs draws the head in either case


def test_our_side_begins_with_the_head_of_a_file(load, tmp_path):
    head = paddle.nn.Linear(4, 2)
    weight, bias = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([1, 2], np.float32)
    np.savez(tmp_path / "head.npz", weight=weight, bias=bias)
    load("by_onion").begin_with(head, tmp_path / "head.npz")
    assert (head.weight.numpy() == weight).all()
    assert (head.bias.numpy() == bias).all()


def test_another_content_of_a_file_is_another_result(load, row, results, data, tmp_path):
    piece = load("pieces").Piece(row, "onion", 1)
    results.keep(piece, result(0.5))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in data.iterdir():
        (elsewhere / path.name).write_bytes(path.read_bytes())
    again = load("pieces").Results(results.folder, elsewhere)
    assert again.path(piece) == results.path(piece)  # where a file stands does not matter
    (elsewhere / "second").mkdir()
    for path in data.iterdir():
        (elsewhere / "second" / path.name).write_bytes(path.read_bytes() + b"0\tmore\n")
    assert load("pieces").Results(results.folder, elsewhere / "second").read(piece) is None


def test_a_damaged_result_is_run_again(load, row, results):
    piece = load("pieces").Piece(row, "onion", 1)
    results.keep(piece, result(0.5))
    whole = results.path(piece).read_text()
    results.path(piece).write_text(whole[:-20])
    assert results.read(piece) is None


def test_the_table_tells_means_spreads_differences_and_what_is_missing(load, row, results):
    make = load("pieces").Piece
    page = load("table").page
    settings = "2 passes, rate 5e-05, 128 tokens, 2 seeds"
    nothing = ["Small", settings, "accuracy", "not run yet", "not run yet", "", "– / –"]
    assert table_lines(page([row], results)) == [nothing]
    for seed, accuracy, seconds in ((1, 0.80, 10.0), (2, 0.82, 30.0)):
        results.keep(make(row, "onion", seed), result(accuracy, seconds))
    results.keep(make(row, "hugging-face", 2), result(0.804, 44.4))
    told = page([row], results)
    settings = "2 passes (7 steps), rate 5e-05, 128 tokens, 2 seeds"
    half = ["Small", settings, "accuracy", "81.0 ± 1.4", "80.4 (1 of 2 seeds)", "+0.6", "20 / 44"]
    assert table_lines(told) == [half]
    assert "Machine: 2 cores, some processor. Run 2020-02-03 with torch 9." in told


def test_the_table_tells_where_ours_begins_with_their_head(load, row, results):
    told = [
        table_lines(load("table").page([each], results))[0][1]
        for each in (row, dataclasses.replace(row, same_head=True))
    ]
    assert told[1] == f"{told[0]}, ours begins with their head"


def test_only_a_difference_of_more_than_a_point_is_bold(load, row, results):
    make = load("pieces").Piece
    row = dataclasses.replace(row, seeds=(1,))
    results.keep(make(row, "hugging-face", 1), result(0.90))
    for ours, told in ((0.8901, "-1.0"), (0.889, "**-1.1**"), (0.95, "+5.0")):
        results.keep(make(row, "onion", 1), result(ours))
        assert table_lines(load("table").page([row], results))[0][5] == told


def test_every_figure_on_every_file_has_a_line_and_a_side_that_is_not_meant_has_none(load, row, results):
    row = dataclasses.replace(
        row, dev={"dev": "dev.tsv", "more": "more.tsv"}, figures=("exact_match", "f1"), sides=("onion",), note="Why."
    )
    page = load("table").page([row], results)
    lines = table_lines(page)
    assert [line[2] for line in lines] == ["exact match, dev", "f1, dev", "exact match, more", "f1, more"]
    assert {(line[3], line[4]) for line in lines} == {("not run yet", "–")}
    assert page.endswith("- Small: Why.\n")


def test_the_driver_runs_what_is_missing_and_goes_on_after_a_failure(load, row, results, data, tmp_path, monkeypatch):
    main, processes = load("__main__"), load("processes")
    monkeypatch.setattr(main, "ROWS", (row,))
    monkeypatch.setattr(main, "chosen", lambda names: [row])
    ran = []

    def run(piece, results):
        ran.append(str(piece))
        if (piece.side, piece.seed) == ("hugging-face", 1):
            raise processes.FailedError("it ended with status 3")
        found = result(0.5)
        results.keep(piece, found)
        return found

    monkeypatch.setattr(main, "run", run)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    folders = ["--kept", str(results.folder), "--out", str(tmp_path / "work")]
    arguments = ["--data", str(data), *folders, "--table", str(tmp_path / "results.md")]
    assert main.main(arguments) == 1
    assert len(ran) == 4
    assert "50.0 (1 of 2 seeds)" in (tmp_path / "results.md").read_text(encoding="utf-8")
    ran.clear()
    assert main.main(arguments) == 1
    assert ran == ["small, hugging-face, seed 1"]


def test_a_folder_without_data_is_told(load, tmp_path, capsys):
    arguments = ["--data", str(tmp_path / "none"), "--out", str(tmp_path), "--table", str(tmp_path / "results.md")]
    assert load("__main__").main(arguments) == 2
    assert "make results DATA=" in capsys.readouterr().err
    assert not (tmp_path / "results.md").exists()


def test_a_side_that_fails_is_told_with_what_it_said(load, row, results, data, monkeypatch, tmp_path):
    processes = load("processes")
    monkeypatch.setattr(processes.encoders, "folder_of", lambda name, data, made: tmp_path)
    monkeypatch.setitem(processes.MODULES, "onion", "benchmarks.results.no_such_module")
    piece = load("pieces").Piece(row, "onion", 1)
    with pytest.raises(processes.FailedError, match=r"small, onion, seed 1: ended with status 1(.|\n)*no_such_module"):
        processes.run(piece, results)
    assert results.read(piece) is None


def test_what_a_side_answers_is_kept_with_machine_and_date(load, row, results, monkeypatch, tmp_path):
    """A stand-in for a side: it answers what it was told."""
    (tmp_path / "stand_in.py").write_text(
        "import json, sys\njob = json.load(open(sys.argv[1]))\njson.dump({'told': job}, open(job['answer'], 'w'))\n",
        encoding="utf-8",
    )
    processes = load("processes")
    monkeypatch.setattr(processes.encoders, "folder_of", lambda name, data, made: tmp_path / name)
    monkeypatch.setitem(processes.MODULES, "onion", "stand_in")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    piece = load("pieces").Piece(row, "onion", 2)
    found = processes.run(piece, results)
    told = found["told"]
    assert (told["task"], told["seed"], told["passes"], told["threads"]) == ("classify", 2, 2, 2)
    assert told["encoder"] == str(tmp_path / "minilm")
    assert told["options"] == {"max_length": 128}
    assert Path(told["train"]).name == "train.tsv"
    assert found["machine"]
    assert found["date"]
    assert results.read(piece) == json.loads(json.dumps(found))
    assert [path.suffix for path in results.folder.iterdir()] == [".json"]  # nothing else is left


def test_the_head_is_drawn_by_the_other_side_before_ours_begins(load, row, results, monkeypatch, tmp_path):
    """Stand-ins for both: one writes the head, the other answers what it has read."""
    job = "import json, sys; from pathlib import Path; job = json.load(open(sys.argv[1]))\n"
    job += "head = Path(job['head_file'])\n"
    (tmp_path / "draws.py").write_text(job + "head.write_text('drawn')\n", encoding="utf-8")
    answers = "Path(job['answer']).write_text(json.dumps({'head': head.read_text()}))\n"
    (tmp_path / "learns.py").write_text(job + answers, encoding="utf-8")
    processes = load("processes")
    monkeypatch.setattr(processes.encoders, "folder_of", lambda name, data, made: tmp_path / name)
    monkeypatch.setattr(processes, "python_of", lambda name: {"transformers": sys.executable}[name])
    monkeypatch.setattr(processes, "HEAD", "draws")
    monkeypatch.setitem(processes.MODULES, "onion", "learns")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    piece = load("pieces").Piece(dataclasses.replace(row, same_head=True), "onion", 1)
    assert processes.run(piece, results)["head"] == "drawn"
    assert [path.suffix for path in results.folder.iterdir()] == [".json"]


def test_the_rows_have_names_of_their_own_and_files_that_exist(load):
    rows = load("rows")
    names = [row.name for row in rows.ROWS]
    assert len(set(names)) == len(names)
    assert [row.name for row in rows.chosen(["sst-2", "mrpc"])] == ["mrpc", "sst-2"]
    with pytest.raises(KeyError):
        rows.chosen(["sst2"])
    data = load("__main__").DATA
    if not data.is_dir():
        pytest.skip("the data sets are not here")
    assert not [path for row in rows.ROWS for path in load("pieces").missing_files(row, data)]


def test_the_random_encoder_is_the_same_every_time(load, tmp_path):
    encoders, data = load("encoders"), load("__main__").DATA
    if not (data / encoders.VOCABULARY).is_dir():
        pytest.skip("the vocabularies are not here")
    first, second = (encoders.folder_of(encoders.ERNIE, data, tmp_path / name) for name in ("a", "b"))
    assert {path.name for path in first.iterdir()} >= {"config.json", "model.safetensors", "tokenizer.json"}
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name
    assert encoders.folder_of(encoders.ERNIE, data, tmp_path / "a") == first
    assert [path.name for path in (tmp_path / "a").iterdir()] == [encoders.ERNIE]  # nothing half-made is left


def test_squad_figures_are_those_of_worked_examples(load):
    """Four questions: exact after normalisation; two of three words right; nothing right; two answers, one fits."""
    true = {"a": ["The Cat's hat!"], "b": ["in the year 1066"], "c": ["Paris"], "d": ["one", "one two"]}
    told = {"a": "cats  hat", "b": "the year 1066 AD", "c": "", "d": "one two"}
    found = load("hugging_face.squad").squad_figures(true, told)
    # b: {in, year, 1066} and {year, 1066, ad} share two of three words each
    assert found == {"exact_match": 0.5, "f1": pytest.approx((1 + 2 / 3 + 0 + 1) / 4)}


def test_nothing_of_paddle_is_loaded_to_find_out_what_is_missing():
    code = "import sys, benchmarks.results.__main__; print('paddle' in sys.modules)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_a_row_that_was_run_when_only_the_table_was_kept_stands_until_it_is_run_again(load, row, results):
    earlier, table = load("earlier"), load("table")
    row = dataclasses.replace(row, name="rte")
    cells = table_lines(table.page([row], results))
    assert cells == [[f"Small {earlier.MARK}", *earlier.LINES["rte"][0]]]
    assert earlier.NOTE in table.page([row], results)
    results.keep(load("pieces").Piece(row, "onion", 1), result(0.5))
    assert table_lines(table.page([row], results))[0][0] == "Small"
    assert earlier.NOTE not in table.page([row], results)


def test_every_earlier_row_is_one_of_the_table_and_has_its_columns(load):
    rows, columns = {row.name for row in load("rows").ROWS}, len(load("table").COLUMNS)
    for name, lines in load("earlier").LINES.items():
        assert name in rows
        assert {len(cells) for cells in lines} == {columns - 1}
