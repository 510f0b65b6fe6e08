"""A short ``make crash-test`` and ``make interrupt``; and that they cannot miss what is lost, torn or refused."""

import json
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from onion.checkpointing import checkpoint
from scripts.crash_test import __main__ as crash_test
from scripts.crash_test import differences as compared
from scripts.crash_test import points
from tests.abilities import needs_draws_again
from tests.fresh_python import module
from tests.paths import ROOT
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

KINDS = {"step", "pass", "test", "byte", "sync", "rename", "remove", "log", "clock"}


def script(name, *words):
    """Run scripts.crash_test or scripts.interrupt; return its exit status and what it printed."""
    done = module(f"scripts.{name}", *words, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def broken(name, *points, limit=PATIENCE):
    kills = [word for point in points for word in ("--kill", point)]
    return script("crash_test", "--onions", "tests.broken_onions", "--onion", name, "--limit", str(limit), *kills)


def of_table(printed, row):
    """What a table says of a row: tried and failures."""
    return tuple(map(int, re.search(rf"^{row} +(\d+) +(\d+)$", printed, re.MULTILINE).groups()))


# -- what is killed ----------------------------------------------------------------------------------------------------


@needs_draws_again
def test_nothing_is_lost_of_onions_of_the_catalogue():
    onions = [word for name in ("best", "gan", "tests", "tasks by mix ratio") for word in ("--onion", name)]
    status, printed = script("crash_test", *onions, "--count", "18", "--seed", "6")
    assert status == 0, printed
    assert "seed 6, 2 at a time\n" in printed  # after warnings of the libraries
    assert all(of_table(printed, kind)[0] >= 2 for kind in KINDS)
    assert of_table(printed, "none") == (4, 0)
    assert "24 kills in 18 runs of 4 onions; 0 failures" in printed


def test_every_kind_of_kill_once_and_again():
    onions = ["--onion", "whole", "--onion", "short"]
    status, printed = script("crash_test", "--onions", "tests.broken_onions", *onions, "--count", "24", "--seed", "6")
    assert status == 0, printed
    assert of_table(printed, "none") == (2, 0)
    assert all(of_table(printed, kind)[0] >= 3 for kind in KINDS - {"test"})
    assert of_table(printed, "test") == (0, 0)
    assert of_table(printed, "twice") == (8, 0)
    assert of_table(printed, "whole") == (12, 0)
    assert "32 kills in 24 runs of 2 onions; 0 failures" in printed


@pytest.mark.parametrize(
    ("onion", "points", "complaint"),
    [
        ("forgetful", ["step outer out 5"], r"step 20, forgetful place: 4 of 4 elements differ"),
        ("drawn once", ["step inner in 5"], r"step 20, drawn_once place: 4 of 4 elements differ"),
        ("two logs", ["step inner in 5"], r'notes.jsonl has 22 rows, not 20; row 5: {"step": 3}, not {"step": 5}'),
        ("torn", ["rename before 3"], r"torn: .*/step-00000003/walk.safetensors: cannot be read"),
        ("set back", ["step outer out 3"], r"began at step 0, though the checkpoint of step 3 had its final name"),
        ("set back", ["step outer out 8", "step outer out 1"], r"began at step 3, though the checkpoint of step 6"),
        ("broken", ["rename unsynced 1"], r"ended with 1:[^$]*RuntimeError: cannot go on"),
    ],
)
def test_what_is_lost_is_told_with_the_command_that_shows_it_again(onion, points, complaint):
    status, printed = broken(onion, *points)
    assert status == 1
    assert re.search(complaint, printed), printed
    assert f"FAILED  {onion}: {', then '.join(points)}" in printed
    kills = [word for point in points for word in ("--kill", f"'{point}'")]
    assert f"--onions tests.broken_onions --onion {shlex.quote(onion)} {' '.join(kills)}\n" in printed


@pytest.mark.parametrize(
    ("onion", "complaint"),
    [
        ("by chance", "step 20, walk place: 4 of 4 elements differ"),
        ("untidy", "step-00000003.doomed.partial/manifest.json is left"),
    ],
)
def test_a_run_that_fails_without_a_kill_is_told_and_not_killed(onion, complaint):
    status, printed = broken(onion, "step outer out 5")
    assert status == 1
    assert f"FAILED  {onion}: not killed" in printed
    assert f"--onion {shlex.quote(onion)} --count 0\n" in printed
    assert complaint in printed
    assert "0 kills in 0 runs" in printed


def test_a_run_that_hangs_is_killed_and_told_where():
    for limit in (3, 30, 300):  # until what does not hang has had the time to end
        status, printed = broken("stuck", "step outer out 5", limit=limit)
        assert status == 1
        if told := re.search(r"hung:(\n .*)* in stuck_when_it_goes_on\n", printed):
            break
    assert told, printed


def test_points_behind_the_end_and_unknown_onions_are_no_kills():
    assert broken("set back", "step inner out 3")[0] == 0  # there is no checkpoint yet that could be lost
    assert broken("whole", "step outer out 21") == (
        1,
        "0/1  same  whole: not killed\nwhole ended before it came to one of these points\n",
    )
    status, printed = broken("whole", "step outer out")
    assert (status, printed.count("is no point; write an event and its number, such as 'rename unsynced 3'")) == (2, 1)
    status, printed = broken("wholes", "step outer out 2")
    assert status == 1
    assert printed.startswith("tests.broken_onions has no onion wholes; it has whole, short, ")


CHANGES = """
import sys
from pathlib import Path
from scripts.crash_test.points import FatalFiles
from scripts.crash_test.points import Point
from scripts.crash_test.points import Reaper
from onion.checkpointing import atomic_files

folder = Path(sys.argv[1])
with atomic_files.through(FatalFiles(Reaper(Point.parse(sys.argv[2]), print), folder)):
    for name in ("old", "older"):
        atomic_files.write_synced(folder / name, b"abcd")
    atomic_files.rename(folder / "old", folder / "new")
    atomic_files.sync_folder(folder)
    (folder / "rest").mkdir()
    for name in ("x.jsonl", "y", "z"):
        atomic_files.write_synced(folder / "rest" / name, b"xyz")
    atomic_files.remove_tree(folder / "rest")
    atomic_files.replace_file(folder / "new", b"efgh")
"""


@pytest.mark.parametrize(
    ("point", "left"),
    [
        ("byte old 1", {"old": b""}),
        ("byte old 4", {"old": b"abc"}),
        ("byte older 2", {"old": b"abcd", "older": b"a"}),
        ("sync after 1", {"old": b"abcd"}),
        ("rename before 1", {"old": b"abcd", "older": b"abcd"}),
        ("rename after 1", {"new": b"abcd", "older": b"abcd"}),
        ("rename unsynced 1", {"new": b"abcd", "older": b"abcd"}),
        ("log x.jsonl 3", {"new": b"abcd", "older": b"abcd", "x.jsonl": b"xy"}),
        ("remove before 1", {"new": b"abcd", "older": b"abcd", "x.jsonl": b"xyz", "y": b"xyz", "z": b"xyz"}),
        ("remove half 1", {"new": b"abcd", "older": b"abcd", "z": b"xyz"}),
        ("byte temporary 3", {"new": b"abcd", "older": b"abcd", ".new.partial": b"ef"}),
        ("rename after 2", {"new": b"efgh", "older": b"abcd"}),
    ],
)
def test_a_process_dies_where_it_was_told_to(point, left, tmp_path):
    done = subprocess.run([sys.executable, "-c", CHANGES, str(tmp_path), point], cwd=ROOT, check=False)
    assert done.returncode == -9
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {re.sub(r"^(\..*)\..*(\.partial)", r"\1\2", path.name): path.read_bytes() for path in files} == left


# -- what is compared --------------------------------------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path):
    """Two folders of the same run: two checkpoints and a log in each."""
    for name in ("one", "two"):
        folder = tmp_path / name
        for step in (3, 6):
            run = {"counters": {"step": step}, "metrics": {"loss": float("nan")}, "onion": str(folder / "data")}
            items = {
                "walk": {"place": np.arange(4.0), "count": step},
                "logger": {"offset": len(name) + step, "seconds": float(ord(name[0])), "logged": "{}"},
            }
            checkpoint.write(folder, checkpoint.Checkpoint(step, run, items))
        rows = [{"step": step, "seconds": step * len(name)} for step in range(2)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "one", tmp_path / "two"


def change(folder, what):
    """Write the newest checkpoint anew, with something of it changed."""
    taken = checkpoint.newest(folder)
    what(taken)
    checkpoint.write(folder, taken)


def test_times_paths_and_logs_of_no_checkpoint_are_no_difference_and_older_checkpoints_are(folders):
    (folders[0] / "metrics-1.jsonl").write_text("{}\n")
    assert compared.differences(*folders) == []
    for folder in folders:
        shutil.move(folder / "step-00000006", folder.parent / f"{folder.name}-later")
    change(folders[0], lambda taken: taken.items["walk"].update(count=0))
    for folder in folders:
        shutil.move(folder.parent / f"{folder.name}-later", folder / "step-00000006")
    assert compared.differences(*folders) == ["step 3, walk count: at 0: '0', not '3'"]


def walk(**changes):
    return lambda taken: taken.items["walk"].update(changes)


def at(index, value):
    return lambda taken: taken.items["walk"]["place"].__setitem__(index, value)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (at(2, 9.0), "walk place: 1 of 4 elements differ"),
        (at(0, -0.0), "walk place: 0 of 4 elements differ"),
        (walk(place=np.arange(4, dtype="f4")), "walk place: float32[4], not float64[4]"),
        (walk(place=1.5), "walk place: at 0: '1.5', not '[0. 1. 2. 3.]'"),
        (walk(count=7), "walk count: at 0: '7', not '6'"),
        (lambda taken: taken.items["walk"].pop("count"), 'walk: at 2: \'["place"]\', not \'["count", "place"]\''),
        (lambda taken: taken.items["logger"].update(logged="{1}"), "logger logged: at 2: '\"{1}\"', not '\"{}\"'"),
        (
            lambda taken: taken.run["metrics"].update(loss=0.0),
            "run metrics: at 9: '{\"loss\": 0.0}', not '{\"loss\": NaN}'",
        ),
        (lambda taken: taken.run.update(more=1), "run more: at 0: '1', not ''"),
    ],
)
def test_every_value_of_a_checkpoint_is_compared(folders, what, words):
    change(folders[0], what)
    assert f"step 6, {words}" in compared.differences(*folders)


def test_other_files_rests_and_torn_checkpoints_are_told(folders):
    differences = compared.differences
    one, two = folders
    shutil.rmtree(one / "step-00000003")
    (one / ".metrics.a1b2").touch()
    assert differences(one, two) == ["files: ['.metrics.a1b2'] too many, ['step-00000003'] missing"]
    for folder in folders:
        (folder / "step-00000009.partial").mkdir()
    assert differences(one, two)[1:] == ["step-00000009.partial is left"]
    (two / "step-00000006" / "state.json").write_text("{")
    assert [words.split(":")[0] for words in differences(one, two)] == ["torn"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (['{"step": 0}', '{"step": 2}'], 'metrics.jsonl has 2 rows, not 2; row 1: {"step": 2}, not {"step": 1}'),
        (['{"step": 0}'], "metrics.jsonl has 1 rows, not 2; one is longer"),
        (['{"step": 0}', '{"step": 1}', '{"step": 1}'], "metrics.jsonl has 3 rows, not 2; one is longer"),
        (['{"step": 0}', '{"step": 1}', '{"step": 2, "sec'], "metrics.jsonl has 3 rows, not 2; one is longer"),
    ],
)
def test_the_rows_of_logs_are_compared(folders, rows, words):
    (folders[0] / "metrics.jsonl").write_text("\n".join(rows))
    assert compared.differences(*folders) == [words]


# -- what is drawn -----------------------------------------------------------------------------------------------------


def test_a_point_is_read_as_it_is_written_and_each_event_counted_by_itself():
    reaper = points.Reaper(points.Point("byte a", 5), tell=None)
    assert [reaper.among(f"byte {name}", 3) for name in "aababa"] == [None, 1, None, None, None, None]
    assert reaper.seen == {"byte a": 12, "byte b": 6}
    for text in ("step outer in 7", "byte state.json 1234", "rename unsynced 3", "clock 0.1234"):
        assert str(points.Point.parse(text)) == text
    for text in ("", "7", "rename", "bytes state.json 7", "step outer in", "clock nan"):
        with pytest.raises(ValueError):
            points.Point.parse(text)


CENSUS = {"step outer in": 9, "step inner in": 9, "byte state.json": 5000, "sync after": 40, "clock": 0.5}


def test_what_is_drawn_is_within_the_run_and_the_same_for_a_seed():
    chance = random.Random(3)
    drawn = [points.draw(CENSUS, kind, chance) for kind in points.kinds_in(CENSUS) for _ in range(200)]
    assert {point.event for point in drawn} == set(CENSUS)
    assert {point.number for point in drawn if point.kind == "step"} == set(range(1, 10))
    assert all(0 <= point.number <= CENSUS[point.event] for point in drawn)
    again = random.Random(3)
    assert drawn[:200] == [points.draw(CENSUS, "step", again) for _ in range(200)]


def test_the_schedule_goes_round_kinds_and_onions():
    schedule = crash_test.schedule
    censuses = {"a": CENSUS, "b": CENSUS, "c": {**CENSUS, "test batch in": 4}}
    plans, kinds = list(schedule(censuses, 90, seed=5)), ("step", "test", "byte", "sync", "clock")
    assert Counter(plan.kind for plan in plans) == dict.fromkeys(kinds, 18)
    assert Counter(plan.kind for plan in plans if plan.twice) == dict.fromkeys(kinds, 6)
    assert Counter(plan.onion for plan in plans) == {"a": 30, "b": 30, "c": 30}
    assert {plan.onion for plan in plans if plan.kind == "test"} == {"c"}
    assert len({(plan.onion, plan.kind) for plan in plans}) > 10
    assert len({plan.seed for plan in plans}) == 90
    assert plans == list(schedule(censuses, 90, seed=5)) != list(schedule(censuses, 90, seed=6))
    assert list(schedule({}, 90, seed=5)) == []


# -- make interrupt ----------------------------------------------------------------------------------------------------


def figures(printed, row):
    """What the table says of a row: tries, interrupts, torn, refused, other bits."""
    return tuple(map(int, re.search(rf"^{row} +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$", printed, re.MULTILINE).groups()))


@needs_draws_again
def test_runs_that_are_interrupted_while_they_save_go_on_to_the_same_bits():
    status, printed = script("interrupt", "--onion", "best", "--count", "16", "--seed", "6")
    assert status == 0, printed
    for row in ("foreground +operation", "foreground +line", "background +operation", "background +line"):
        tries, interrupts, *wrong = figures(printed, row)
        assert (tries, wrong) == (4, [0, 0, 0])
        assert interrupts >= 3


@pytest.mark.parametrize(
    ("onion", "told", "column"),
    [
        ("torn", r"torn: .*manifest.json is missing or damaged", 2),
        ("broken", r"RuntimeError: cannot go on", 3),
        ("drawn once", r"drawn_once place: 4 of 4 elements differ", 4),
    ],
)
def test_what_is_wrong_after_an_interrupt_is_told_and_counted(onion, told, column):
    words = ["--onions", "tests.broken_onions", "--onion", onion, "--count", "4", "--seed", "7"]
    status, printed = script("interrupt", *words)
    assert status == 1
    assert re.search(rf"^\d+ {onion}, \w+, before each \w+ drawn: .*{told}", printed, re.MULTILINE), printed
    assert figures(printed, "all")[column] >= 1
