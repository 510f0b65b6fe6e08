"""What cannot be run by several processes is refused, with what to do; in one process nothing changes."""

from datetime import timedelta

import pytest

from onion import (
    Accumulate,
    DataProvider,
    Evaluator,
    Every,
    Forward,
    GradientMachine,
    NanGuard,
    OutputsToBatch,
    Progress,
    Runner,
    RunnerItem,
    SplitOnMemoryError,
    Tester,
)
from onion.distributed import DataParallel, ProcessGroup, distributed
from onion.errors import CompositionError, HookError
from onion.online.learning.progressive_validation import ProgressiveValidation
from onion.testing import toy_examples, toy_network
from tests.onions.parts import Noise, SquaredError, adamw
from tests.toys import bits

EXAMPLES = toy_examples(10)


class Shift(RunnerItem):
    """Alter every batch, and do not say so."""

    def on_batch(self, state):
        state.batch = {**state.batch, "x": state.batch["x"] + 1}


class Scale(RunnerItem):
    """Alter every batch."""

    alters_batches = True

    def on_batch(self, state):
        state.batch = {**state.batch, "x": state.batch["x"] * 2}


class Alone(RunnerItem):
    alone_because = "it has a single thread"


@pytest.fixture
def two_processes(monkeypatch):
    """What Paddle's launcher tells the first of two processes."""
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "0")


def training(network, *inside):
    return [DataProvider(EXAMPLES, 4), adamw(network), *inside, GradientMachine(network)]


def test_an_ordinary_runner_does_not_train_apart_in_silence(two_processes):
    with pytest.raises(CompositionError, match=r"2 processes were launched.*run distributed\(runner\)"):
        Runner(*training(toy_network())).run(passes=1)


def test_pieces_that_cannot_be_shared_evenly(two_processes):
    told = "3 pieces cannot be shared evenly by 2 processes; start 1 of them, or cut into 4 pieces"
    with pytest.raises(CompositionError, match=told):
        ProcessGroup(pieces=3)


@pytest.mark.parametrize("wrong", [{"pieces": 0}, {"pieces": 1.5}, {"timeout": 0}, {"timeout": "1"}])
def test_arguments(wrong):
    with pytest.raises(CompositionError, match=f"{next(iter(wrong))} must be"):
        ProcessGroup(**wrong)


def test_places():
    network = toy_network()
    with pytest.raises(CompositionError, match="is inside progress; move it out, to the very beginning"):
        Runner(Progress(), ProcessGroup(), *training(network, DataParallel()))
    with pytest.raises(CompositionError, match="gradient_machine has no DataParallel around it"):
        Runner(ProcessGroup(), *training(network))
    with pytest.raises(CompositionError, match=r"data_parallel is inside split_on_memory_error.*swap them"):
        Runner(ProcessGroup(), *training(network, SplitOnMemoryError(network), DataParallel()))
    with pytest.raises(CompositionError, match="outside any ParameterUpdater"):
        Runner(ProcessGroup(), DataProvider(EXAMPLES), DataParallel(), *training(network)[1:])


def test_items_that_one_process_has_to_run_say_why():
    network = toy_network()
    test = Runner(DataProvider(EXAMPLES), Evaluator(SquaredError()), Forward(network))
    for item, why in (
        (Alone(), "it has a single thread"),
        (Tester(test, every=timedelta(seconds=1)), "every=timedelta goes by the clock of each process"),
    ):
        with pytest.raises(CompositionError, match=f"{item.name} cannot be run by several processes: {why}"):
            Runner(ProcessGroup(pieces=2), item, *training(network, DataParallel()))


class Watch(RunnerItem):
    first_rank_only = True

    def on_batch(self, state):
        state.batch = None


def test_an_item_of_the_first_rank_may_only_watch():
    item, other = Watch(), Watch()
    other.passive = other.alters_batches = True
    for each, why in ((item, "is not passive"), (other, "has alters_batches")):
        with pytest.raises(CompositionError, match=f"watch is run by the first process only .*and {why}, so the other"):
            Runner(ProcessGroup(), DataProvider(EXAMPLES), each, *training(toy_network(), DataParallel())[1:])


def test_other_ranks_leave_out_what_the_first_one_runs_also_where_it_is_held(monkeypatch):
    def ran(rank):
        monkeypatch.setenv("PADDLE_TRAINER_ID", rank)
        seen = []
        watch = Watch()
        watch.on_batch = lambda state: seen.append(state.step)
        runner = Runner(DataProvider(EXAMPLES, 4), Every(2, watch), Runner(watch_too := Watch(), name="both"))
        watch_too.on_batch = lambda state: seen.append("too")
        runner.run(passes=1)
        return seen

    assert ran("0") != []
    assert ran("1") == []


def test_a_tree_needs_a_power_of_two():
    runner = distributed(Runner(*training(toy_network())), pieces=3, exact=True)
    with pytest.raises(CompositionError, match="3 is no power of two"):
        runner.run(passes=1)


def test_distributed_puts_the_items_in_their_places_and_does_so_once():
    network = toy_network()
    runner = Runner(*training(network, NanGuard(), Accumulate(2)))
    names = [type(item).__name__ for item in distributed(runner, pieces=2).walk()]
    assert names[0] == "ProcessGroup"
    assert names[2:] == ["ParameterUpdater", "NanGuard", "Accumulate", "DataParallel", "GradientMachine"]
    again = distributed(distributed(runner, pieces=2), pieces=4, exact=True)
    assert [type(item).__name__ for item in again.walk()] == names
    assert (again[ProcessGroup].pieces, again[DataParallel].exact) == (4, True)


def test_what_alters_batches_is_moved_to_where_it_works_on_pieces():
    network, teacher = toy_network(), toy_network()
    around = [DataProvider(EXAMPLES, 4), Every(2, Noise()), Shift(), Forward(teacher)]
    runner = Runner(*around, OutputsToBatch("teacher"), Progress(), adamw(network), GradientMachine(network))
    made = distributed(distributed(runner), pieces=2)
    names = [item.name for item in made.walk()]
    moved = ["every", "noise", "forward", "outputs_to_batch"]
    assert names[1:5] == ["data_provider", "shift", "progress", "parameter_updater"]
    assert names[5:] == ["data_parallel", *moved, "gradient_machine"]
    teaching = Runner(Forward(teacher), Scale(), name="teaching")
    nested = distributed(Runner(DataProvider(EXAMPLES), teaching, *training(network)[1:]))
    assert [item.name for item in nested.items][2:5] == ["parameter_updater", "data_parallel", "teaching"]
    untouched = distributed(Runner(DataProvider(EXAMPLES), Forward(teacher), *training(network)[1:]))
    assert [item.name for item in untouched.walk()][1:3] == ["data_provider", "forward"], "its outputs go nowhere"


def test_what_alters_pieces_alters_the_batch():
    found = []
    for pieces in (1, 3):
        network = toy_network(seed=3)
        runner = distributed(Runner(DataProvider(EXAMPLES, 4), Scale(), *training(network)[1:]), pieces=pieces)
        found.append(float(runner.run(passes=2).loss))
    assert found[1] == pytest.approx(found[0], rel=1e-4)


@pytest.mark.parametrize("item", [Scale(), Every(2, Noise())])
def test_what_cannot_be_moved_is_refused_before_the_first_batch(item):
    networks = [toy_network(), toy_network()]
    twice = [Runner(adamw(each), GradientMachine(each)) for each in networks]
    runner = distributed(Runner(DataProvider(EXAMPLES, 4), item, *twice), pieces=2)
    with pytest.raises(CompositionError, match=r"is outside data_parallel.* the first of 2 pieces.* start 2 processes"):
        runner.run(passes=1)


def test_an_item_that_alters_batches_without_saying_so_is_told_to():
    runner = distributed(Runner(DataProvider(EXAMPLES, 4), Shift(), *training(toy_network())[1:]), pieces=2)
    with pytest.raises(HookError, match=r"replaced the batch.*set alters_batches = True in its class"):
        runner.run(passes=1)


def test_in_one_process_without_pieces_nothing_changes():
    networks = [toy_network(seed=3), toy_network(seed=3)]
    Runner(*training(networks[0])).run(passes=2)
    distributed(Runner(*training(networks[1]))).run(passes=2)
    assert bits(networks[0]) == bits(networks[1])


def test_pieces_come_to_the_gradient_of_the_whole_batch():
    found = []
    for pieces in (1, 3, 4):
        network = toy_network(seed=3)
        state = distributed(Runner(*training(network)), pieces=pieces).run(passes=2)
        found.append([float(state.loss), *network.linear.weight.numpy().reshape(-1)])
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-4)


def test_items_have_the_group_for_the_time_of_a_run():
    network = toy_network()
    runner = distributed(Runner(*training(network)), pieces=2)
    runner.run(passes=1)
    assert all(item.group is None for item in runner.walk())


def test_what_measures_a_training_sees_all_pieces_of_a_batch():
    network, metric = toy_network(), SquaredError()
    before = ProgressiveValidation(network, {"error": lambda outputs, batch: ((outputs - batch["y"]) ** 2)[:, 0]})
    learning = [adamw(network), GradientMachine(network)]
    runner = Runner(Evaluator(metric), DataProvider(EXAMPLES, 4), before, *learning)
    distributed(runner, pieces=4, exact=True).run(passes=1)
    assert metric.count == before.state_dict()["samples"] == len(EXAMPLES)


def test_parts_of_a_batch_begin_with_the_same_size_whichever_ran_out_of_memory_before():
    network, seen = toy_network(), []

    def look(layer, inputs):
        seen.append(len(inputs[0]["x"]))
        if seen[-1] > 3:
            raise MemoryError("out of memory")

    network.register_forward_pre_hook(look)
    split = SplitOnMemoryError(network)
    data = DataProvider(toy_examples(13), 13)
    distributed(Runner(data, adamw(network), split, GradientMachine(network)), pieces=2).run(passes=2)
    first, second = [7, 4, 2, 2, 2, 1], [6, 3, 3]  # of the first batch: the second piece does not begin with 2
    assert seen == [*first, *second, *[2, 2, 2, 1], *[2, 2, 2]]
    assert split.log_values() == {"piece_size": 2}
