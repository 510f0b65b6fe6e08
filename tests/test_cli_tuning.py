"""``onion tune``, ``cross-validate`` and ``lr-find``: flags and messages, and a search that is really killed."""

import json
import signal

import pytest

from onion import Prune
from onion.cli import main
from tests.commands import last_line, onion, place_in

pytestmark = pytest.mark.slow

TRAINING = {
    "task": "classification",
    "train": "a.tsv",
    "encoder": "tiny",
    "max_length": 16,
    "passes": 1,
    "batch_size": 16,
    "seed": 2,
}

KILLED_AT_TEST_8 = """
import os, signal
from onion import Prune
see, tests = Prune.see, []
def see_and_die(self, state):
    see(self, state)
    tests.append(state.step)
    if len(tests) == 8:
        os.kill(os.getpid(), signal.SIGKILL)
Prune.see = see_and_die
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = place_in(tmp_path_factory.mktemp("tuning"))
    (folder / "folds.json").write_text(json.dumps(TRAINING))
    search = {"learning_rate": [1e-2, 1e-6]}
    (folder / "search.json").write_text(json.dumps({**TRAINING, "dev": "b.tsv", "test_every": 4, "search": search}))
    return folder


def results(place, name):
    """Return the trials of a search, and the weights of each."""
    rows = json.loads((place / name / "tune.json").read_text())["table"]
    files = sorted((place / name / "trials").glob("*/step-*/gradient_machine.safetensors"))
    return rows, {file.relative_to(place / name): file.read_bytes() for file in files}


def interrupted(see):
    """Return ``Prune.see`` with a Ctrl-C after it."""

    def see_and_interrupt(self, state):
        see(self, state)
        signal.raise_signal(signal.SIGINT)

    return see_and_interrupt


def test_a_search_that_was_killed_and_interrupted_comes_to_the_same_bits(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    words = ["tune", "--config", "search.json", "--pruner", "halving", "--trials", "3", "--quiet"]
    assert main([*words, "--output", "whole"]) == 0
    whole = last_line(capsys.readouterr().out)
    rows, _ = results(place, "whole")
    assert [(row["state"], row["tests"]) for row in rows] == [("complete", 5), ("complete", 5), ("pruned", 2)]
    # In the second trial, after the report of a test and before the checkpoint that knows of it.
    done = onion(place, *words, "--output", "cut", before=KILLED_AT_TEST_8)
    assert done.returncode == -signal.SIGKILL
    with monkeypatch.context() as patch:
        patch.setattr(Prune, "see", interrupted(Prune.see))
        assert main([*words, "--output", "cut"]) == 128 + signal.SIGINT
    assert capsys.readouterr().err.endswith("onion: stopped; the same command resumes it\n")
    assert main([*words, "--output", "cut"]) == 0
    assert results(place, "cut") == results(place, "whole")
    again = last_line(capsys.readouterr().out)
    assert {**again, "seconds": 0, "output": ""} == {**whole, "seconds": 0, "output": ""}


def test_folds_and_the_range_test_take_the_flags_of_a_training(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    words = ["--config", "folds.json", "--quiet", "--batch-size", "32", "--learning-rate", "3e-3"]
    assert main(["cross-validate", *words, "--folds", "2", "--output", "folds"]) == 0
    report = last_line(capsys.readouterr().out)
    assert (report["folds"], {"dev.accuracy", "dev.accuracy.std"} <= report.keys()) == (2, True)
    assert main(["lr-find", *words, "--steps", "20", "--output", "rates"]) == 0
    report = last_line(capsys.readouterr().out)
    assert report.keys() == {"learning_rate", "steps", "diverged", "seconds", "output"}


SEARCHED = ["tune", "--config", "search.json", "--search"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([*SEARCHED, "passes"], "must be NAME=VALUES, such as learning_rate=1e-5..1e-3:log"),
        ([*SEARCHED, "passes=1"], "search: passes: must be LOW..HIGH"),
        ([*SEARCHED, "batch-size=16,32", "--search", "batch_size=1..4"], "--search batch_size is given twice"),
        (["tune", "--config", "folds.json", "--dev", "b.tsv"], "there is nothing to search; name settings"),
        (["train", "--config", "search.json"], "search is for onion tune; leave it out here"),
        (["train", "--config", "folds.json", "--dev", "7/5"], "dev: there is no fold 7/5"),
        (
            ["cross-validate", "--config", "folds.json", "--dev", "b.tsv"],
            "cross-validate: unrecognized arguments: --dev",
        ),
        (["cross-validate", "--config", "folds.json", "--folds", "1"], "must be an integer >= 2, got '1'"),
        (["lr-find", "--config", "folds.json", "--last", "0"], "must be a number > 0, got '0'"),
    ],
)
def test_what_does_not_do_leaves_nothing(place, words, told, monkeypatch, capsys):
    monkeypatch.chdir(place)
    try:
        status = main([*words, "--output", "nothing"])
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert told in capsys.readouterr().err
    assert not (place / "nothing").exists()
