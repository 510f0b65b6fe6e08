"""Trouble on each single rank: all ranks go on with the same bits, or leave after the same step and say who it was.

`make trouble-ranks` has every trouble on every rank of 2 and of 4 processes; here are those of which each is different.
"""

import json
import sys

import pytest

from onion.checkpointing import checkpoint
from onion.cli.processes import started, status_of
from tests.abilities import needs_draws_again
from tests.distributed.launched import JOB, environment, ranks
from tests.patience import PATIENCE

pytestmark = [pytest.mark.ranks, needs_draws_again]

ON = ("stop the pass", "nan", "nan skipped", "nan rolled back")
SAVED = ("stop", "terminate thrice", "terminate between passes", "data")
APART = {
    "other rate": (7, 7, "learning rate of parameter_updater 0.5"),
    "other order": (3, 5, "examples 16 (crc32 "),
    "other task": (7, 2, "task "),
    "other passes": (7, 5, "event left"),
    "test alone": (7, 7, "run 1"),
    "skip": (6, 6, "the next batch"),
    "accumulate more": (1, 1, "more True"),
}
"""What a rank does apart from the others: the step at which it begins, the last step that is made, what is told."""


PLACES = [(2, 0), (4, 2)]
"""How many processes, and which of them fails or does something else."""


def in_one_launch(folder, processes, rank):
    """Run each case after which all ranks are in step again; return what each rank wrote."""
    folder.mkdir()
    cases = [(trouble, rank) for trouble in (*ON, *SAVED, *APART)]
    runs = [
        {
            "trouble": trouble,
            "rank": rank,
            "step": 5 if trouble == "terminate between passes" else APART.get(trouble, (7,))[0],
            "saves": str(folder / f"saves-{number}"),
        }
        for number, (trouble, rank) in enumerate(cases)
    ]
    done = ranks(folder, processes, runs=runs)
    assert done == [{"runs": len(runs)}] * processes
    (out,) = folder.glob("world-*")
    found = [
        [json.loads((out / str(number) / f"rank-{rank}.json").read_text()) for rank in range(processes)]
        for number in range(len(runs))
    ]
    newest = [checkpoint.newest(folder / f"saves-{number}") for number in range(len(runs))]
    return {case: (each, saved) for case, each, saved in zip(cases, found, newest, strict=True)}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What came of each trouble, by (processes, trouble, rank)."""
    room = tmp_path_factory.mktemp("trouble")
    return {
        (processes, *case): found
        for processes, rank in PLACES
        for case, found in in_one_launch(room / str(processes), processes, rank).items()
    }


@pytest.mark.parametrize(("processes", "rank"), PLACES)
@pytest.mark.parametrize("trouble", ON)
def test_all_go_on_with_the_same_weights(outcomes, trouble, processes, rank):
    found, _ = outcomes[processes, trouble, rank]
    assert {**found[0], "rank": None} == {**found[-1], "rank": None}
    assert len({each["weights"] for each in found}) == 1
    assert found == [{**each, **{key: found[0][key] for key in ("step", "pass", "metrics")}} for each in found]


@pytest.mark.parametrize(("processes", "rank"), PLACES)
@pytest.mark.parametrize("trouble", SAVED)
def test_all_leave_after_the_same_step_which_is_saved(outcomes, trouble, processes, rank):
    found, saved = outcomes[processes, trouble, rank]
    assert [each["step"] for each in found] == [saved.step] * processes


@pytest.mark.parametrize(("processes", "rank"), PLACES)
@pytest.mark.parametrize("trouble", APART)
def test_a_rank_that_does_something_else_is_caught_in_that_step_and_told_by_all(outcomes, trouble, processes, rank):
    found, _ = outcomes[processes, trouble, rank]
    _, last, told = APART[trouble]
    for each in found:
        assert each["step"] == last, each
        assert each["error"].startswith("RankError: the ranks are out of step"), each
        assert told in each["error"]
        assert f"rank {rank} is at " in each["error"]


def test_nan_on_one_rank_comes_to_the_figures_of_one_process(outcomes, tmp_path):
    for trouble in ("nan", "nan skipped", "nan rolled back"):
        (alone,) = ranks(tmp_path, 0, trouble=trouble, rank=0)
        found, _ = outcomes[4, trouble, 2]
        assert str({**found[0], "rank": 0}) == str(alone)  # nan != nan


@pytest.mark.parametrize(
    ("trouble", "processes", "rank", "step"),
    [
        ("kill", 2, 0, 7),
        ("fail in the network", 2, 0, 7),
        ("interrupt twice", 2, 1, 7),
        ("kill in a save", 2, 0, 5),
        ("full disk", 2, 0, 5),
        ("kill in a collective", 4, 1, 7),
    ],
)
def test_who_ends_without_the_others_is_told_by_all(trouble, processes, rank, step, tmp_path):
    given = {"out": str(tmp_path), "saves": str(tmp_path / "saves"), "trouble": trouble, "rank": rank, "step": step}
    with started(processes, [sys.executable, str(JOB), json.dumps(given)], tmp_path, environment()) as processes_:
        status = status_of(processes_, PATIENCE)  # nobody is killed, so all have left by themselves
    assert status != 0
    found = [tmp_path / f"rank-{number}.json" for number in range(processes) if number != rank]
    for each in found:
        other = json.loads(each.read_text())
        assert other["error"].startswith("RankError: ")
        assert f"rank {rank}: " in other["error"]
