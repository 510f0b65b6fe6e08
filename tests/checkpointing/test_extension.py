"""A saved run is extended by tasks: it ends with the bits of one whose later tasks were merely not drawn yet."""

import json

import numpy as np
import paddle
import pytest

from onion import (
    CheckpointError,
    CompositionError,
    DataProvider,
    EarlyStopping,
    ForTask,
    GradientMachine,
    Logger,
    MovingAverage,
    NanGuard,
    Runner,
    Saver,
    TaskData,
    TaskSampler,
    Tester,
    schedules,
)
from onion.checkpointing import rng
from onion.checkpointing.rng import seeded
from onion.multitask.stages import Stages
from onion.multitask.strategies import RoundRobin
from onion.tasks.networks.multi_head import MultiHead
from onion.testing import Failing, PlannedError, toy_examples
from tests.onions import parts
from tests.onions.many_tasks import Head
from tests.onions.parts import Noise, adamw, seed

WHOLE = [{"slope": 7}, {"slope": 3, "valley": 5}, {"slope": 2, "valley": 2, "stream": 6}]
"""Stages in which a task comes in at each."""


def names_in(table):
    return list({name: None for row in table for name in row})


def runner(folder, table, *, around=(), names=None, strategy=None, data=None, inside=(), **saver):
    """A run of the tasks of a table, whose heads are seeded by their names."""
    seed(5)
    encoder, heads = paddle.nn.Linear(8, 6), {}
    names = names or names_in(table)
    for name in names:
        with seeded(1, name):
            heads[name] = Head(encoder)
    network = MultiHead(encoder, heads)
    examples = {name: toy_examples(9, seed=ord(name[0])) for name in names} | (data or {})
    tasks = {name: TaskData(DataProvider(examples[name], 4, shuffle=True, prefetch=0)) for name in names}
    return Runner(
        Saver(folder, every=2, keep_last=100, **saver),
        Logger(folder / "metrics.jsonl", 1),
        *around,
        TaskSampler(tasks, strategy or Stages.of_table(table, seed=3), seed=3),
        *([ForTask("slope", Noise())] if "slope" in tasks else []),
        MovingAverage(network, 0.8),
        adamw(network, schedules.by_task(schedules.noam(0.02, 4))),
        *inside,
        GradientMachine(network),
    )


def bits(runner, state, folder):
    """All that a run ends with: states of the items, generators, counters, and the log without times and totals."""
    held = {
        item.name: {key: np.asarray(value).tolist() for key, value in item.state_dict().items()}
        for item in runner.walk()
        if item.name in ("task_sampler", "moving_average", "parameter_updater", "gradient_machine")
    }
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    drop = ("seconds",)
    log = [{name: value for name, value in row.items() if name not in drop} for row in rows]
    return {**held, "rng": rng.capture(), "counters": (state.pass_id, state.step, float(state.loss)), "log": log}


def without_plans(rows):
    """The rows without plans, and zeros: a shorter run knows nothing of tasks that come in later."""
    return [{key: row[key] for key in row if row[key] != 0 and not key.startswith("planned.")} for row in rows]


def uncut(folder):
    whole = runner(folder, WHOLE)
    return bits(whole, whole.run(), folder)


@pytest.mark.parametrize("stops", [(7, 15), (4, 11), (7, None)], ids=["at the borders", "inside", "two at once"])
def test_an_extended_run_has_the_bits_of_one_that_had_all_tasks(stops, tmp_path):
    expected = uncut(tmp_path / "whole")
    folder = tmp_path / "extended"
    one, two = stops
    runner(folder, WHOLE[:1]).run(steps=one)
    if two is not None:
        seed(99)
        runner(folder, WHOLE[:2], extends=True).run(steps=two)
    seed(77)
    last = runner(folder, WHOLE, extends=True)
    found = bits(last, last.run(), folder)
    log, whole = found.pop("log"), expected.pop("log")
    assert without_plans(log) == without_plans(whole)
    assert [row for row in log if row["step"] > (two or one)] == [row for row in whole if row["step"] > (two or one)]
    for name in expected:
        assert found[name] == expected[name], name
    power = found["parameter_updater"]["gradient_machine.networks.stream.linear.weight/beta1_pow_acc"]
    assert power == [pytest.approx(0.9**7)], "6 updates of its own, and one factor to begin with"


def test_stages_alone_may_be_added_too(tmp_path):
    runner(tmp_path, WHOLE[:2]).run()
    longer = [*WHOLE[:2], {"valley": 4}]
    state = runner(tmp_path, longer, extends=True).run()
    assert (state.step, state.pass_id, state.stopped) == (19, 3, "all stages are done")


def test_what_an_extended_run_saves_is_resumed_as_any_other(tmp_path):
    expected = uncut(tmp_path / "whole")
    folder = tmp_path / "extended"
    runner(folder, WHOLE[:1]).run()
    runner(folder, WHOLE, extends=True).run(steps=9)
    with pytest.raises(CheckpointError, match="holds another run"):
        runner(folder, WHOLE[:2]).run()
    last = runner(folder, WHOLE)
    found = bits(last, last.run(), folder)
    assert found["gradient_machine"] == expected["gradient_machine"]
    assert found["parameter_updater"] == expected["parameter_updater"]
    assert found["rng"] == expected["rng"]
    again = runner(folder, WHOLE, extends=True)
    assert again.run().stopped == "all stages are done"


def test_tests_and_items_of_the_new_tasks_may_join(tmp_path):
    runner(tmp_path, WHOLE[:1]).run()
    made = runner(tmp_path, WHOLE[:2], extends=True)
    network = made[GradientMachine].network
    test = Tester(parts.tested(network.networks["valley"]), name="valley")
    more = made.insert_before(TaskSampler, test).insert_before(MovingAverage, ForTask("valley", Noise()))
    state = more.run()
    assert (state.step, state.pass_id) == (15, 2)
    assert state.reported["valley.error"] == 15


def test_a_copy_to_roll_back_to_is_made_anew(tmp_path):
    runner(tmp_path, WHOLE[:1], inside=[NanGuard("rollback")]).run()
    extended = runner(tmp_path, WHOLE[:2], inside=[NanGuard("rollback")], extends=True)
    assert extended.run().step == 15
    assert extended[NanGuard].state_dict()["kept_step"] == 8


CHANGED = [
    ("task_sampler has no 'slope' among its tasks", [{"valley": 7}, {"valley": 3, "stream": 5}], {}),
    ("task_sampler has no '2' among its stages", [{"slope": 7, "valley": 5}], {}),
    (r"task_sampler: stages.1.slope 7 there, 8 here", [{"slope": 8}, *WHOLE[1:]], {}),
    (r"task_sampler: stages.2.stream by default there, 4 here", [WHOLE[0], {**WHOLE[1], "stream": 4}], {}),
    (r"task_sampler: tasks.slope.provider.data .* there", WHOLE, {"data": {"slope": toy_examples(10)}}),
    (r"task_sampler: strategy.seed 3 there, 4 here", WHOLE, {"strategy": Stages.of_table(WHOLE, seed=4)}),
    ("there is no early_stopping", WHOLE, {"around": [EarlyStopping("tester.x")]}),
]


@pytest.mark.parametrize(("said", "table", "given"), CHANGED, ids=[said for said, *_ in CHANGED])
def test_what_the_saved_run_had_has_to_be_there_as_it_was(said, table, given, tmp_path):
    runner(tmp_path, WHOLE[:2]).run(steps=8)
    told = f"cannot be extended to this one .*{said}.*add to them, or choose an empty folder"
    with pytest.raises(CheckpointError, match=told):
        runner(tmp_path, table, extends=True, **given).run()


def test_only_stages_can_be_extended(tmp_path):
    def turns(names):
        return runner(tmp_path, [dict.fromkeys(names, 1)], strategy=RoundRobin(), extends=True)

    turns(["slope"]).run(passes=1)
    said = "valley would lack the batches of all passes before, which RoundRobin plans for every task"
    with pytest.raises(CheckpointError, match=said):
        turns(["slope", "valley"]).run(passes=2)


def test_without_being_asked_for_more_tasks_are_another_run(tmp_path):
    runner(tmp_path, WHOLE[:1]).run()
    with pytest.raises(CheckpointError, match=r"holds another run .*, or extend it by the new tasks \(extends=True\)"):
        runner(tmp_path, WHOLE[:2]).run()
    with pytest.raises(CheckpointError, match=r"holds another run .*, or resume it anyway \(resume='force'\)"):
        runner(tmp_path, WHOLE[:2], data={"slope": toy_examples(10)}).run()


def test_a_run_that_failed_before_it_saved_is_extended_again(tmp_path):
    expected = uncut(tmp_path / "whole")
    folder = tmp_path / "extended"
    runner(folder, WHOLE[:1]).run()
    with pytest.raises(PlannedError):
        runner(folder, WHOLE, inside=[Failing("on_batch", "in", 7)], extends=True).run()
    seed(77)
    last = runner(folder, WHOLE, extends=True)
    found = bits(last, last.run(), folder)
    assert found["gradient_machine"] == expected["gradient_machine"]
    assert found["rng"] == expected["rng"]


@pytest.mark.parametrize("resume", [False, "force"])
def test_extending_is_resuming(resume, tmp_path):
    with pytest.raises(CompositionError, match=r"extends=True goes on with a saved run; leave resume="):
        Saver(tmp_path, resume=resume, extends=True)
