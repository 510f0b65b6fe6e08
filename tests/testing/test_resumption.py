"""assert_resumes_exactly finds what is not saved, and says where; it lets pass what is."""

import itertools
import json
import random
import re
import time
from types import SimpleNamespace

import numpy as np
import paddle
import pytest

from onion import (
    DataProvider,
    Forward,
    GradientMachine,
    Logger,
    OnionError,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    SkipIf,
    Slot,
    Tester,
)
from onion.checkpointing import atomic_files, rng
from onion.testing import assert_resumes_exactly, toy_examples, toy_network
from tests.toys import Unsynced

pytestmark = pytest.mark.slow

STEPS = 6  # two passes of three batches


@pytest.fixture(autouse=True)
def _unsynced():
    with atomic_files.through(Unsynced()):
        yield


def numbers(*items, every=2, count=3, **saver):
    """Return what makes an onion of numbers with these items, which are given as functions."""

    def make(folder):
        seed(1)
        data = DataProvider([float(each) for each in range(count)], 1, prefetch=0)
        return Runner(Saver(folder, every=every, **saver), data, *(item() for item in items))

    return make


def trained(*items):
    """Return what makes an onion of a network with these items."""

    def make(folder):
        seed(1)
        network = toy_network()
        optimizer = paddle.optimizer.Adam(0.1, parameters=network.parameters())
        rings = [item() for item in items]
        data = DataProvider(toy_examples(6), 2, prefetch=0)
        return Runner(Saver(folder, every=2), data, *rings, ParameterUpdater(optimizer), GradientMachine(network))

    return make


def seed(number):
    random.seed(number)
    np.random.seed(number)
    paddle.seed(number)


def complaint(make, tmp_path, **how):
    with pytest.raises(AssertionError) as caught:
        assert_resumes_exactly(make, tmp_path, **({"passes": 2} | how))
    return str(caught.value)


class Counter(RunnerItem):
    def __init__(self):
        self.count = 0

    def on_batch(self, state):
        self.count += 1


class Saved(Counter):
    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, saved):
        self.count = saved["count"]


# -- what is not saved -------------------------------------------------------------------------------------------------


def test_a_counter_that_is_not_saved(tmp_path):
    assert complaint(numbers(Counter), tmp_path).startswith(
        "cut after step 1: counter: attribute 'count' is 1 in the run that was not cut and 0 in the resumed one; "
        "return it from state_dict and take it back in load_state_dict, or name it in unsaved"
    )


def test_a_kill_is_told_with_the_checkpoint_that_the_run_went_on_from(tmp_path):
    """What is saved now and then only is there when the run is stopped, and not when it is killed in between."""

    class Late(Saved):
        def state_dict(self):
            return {"count": self.count - self.count % 3}

    make = numbers(Late, every=2)
    assert complaint(make, tmp_path / "a", cuts=[3, 4]).startswith(
        "killed after step 3 and resumed from step 2: late: attribute 'count' is 2 in the run that was not cut and 0 in"
    )


@pytest.mark.parametrize("generator", [random.Random, np.random.default_rng, np.random.RandomState, np.random.PCG64])
def test_a_generator_of_its_own_that_is_not_saved(generator, tmp_path):
    class TaskBatches(RunnerItem):
        def __init__(self):
            self.chance = generator(3)

        def on_batch(self, state):
            (getattr(self.chance, "random", None) or self.chance.random_raw)()

    assert 'cut after step 1: task_batches: attribute "chance' in complaint(numbers(TaskBatches), tmp_path).replace(
        "'chance", '"chance'
    )


def test_a_list_that_grows(tmp_path):
    class Keeps(RunnerItem):
        def __init__(self):
            self.seen = []

        def on_batch(self, state):
            self.seen.append(float(state.batch[0]))

    assert "keeps: attribute 'seen' is [0.0] in the run that was not cut and [] in" in complaint(
        numbers(Keeps), tmp_path
    )


@pytest.mark.parametrize("slots", [False, True])
def test_an_object_within_an_object(slots, tmp_path):
    class Sums:
        if slots:
            __slots__ = ("by_name",)

        def __init__(self):
            self.by_name = {"all": 0.0}

    class Adds(RunnerItem):
        def __init__(self):
            self.kept = SimpleNamespace(sums=Sums(), itself=self)

        def on_batch(self, state):
            self.kept.sums.by_name["all"] += 2.5

    told = complaint(numbers(Adds), tmp_path)
    assert "adds: attribute \"kept.sums.by_name['all']\" is 2.5 in the run that was not cut and 0.0 in" in told


def test_a_network_of_its_own_that_is_not_saved(tmp_path):
    class Centre(RunnerItem):
        def __init__(self):
            self.layer = paddle.nn.Linear(1, 1)

        def on_batch(self, state):
            self.layer.bias.set_value(self.layer.bias + 1.0)

    told = complaint(numbers(Centre), tmp_path)
    assert re.search(r"centre: attribute \"layer\['bias'\]\" is float32 \[1\] 1, .* and float32 \[1\] 0\.\d+", told)


def test_a_network_that_moves_late_is_missed_early(tmp_path):
    """Where it stands at the cut as it was made, only that it is overwritten shows that nobody saves it."""

    class Late(RunnerItem):
        def __init__(self):
            self.layer = paddle.nn.Linear(1, 1)

        def on_batch(self, state):
            if state.step == STEPS - 1:
                self.layer.bias.set_value(self.layer.bias + 1.0)

    told = complaint(numbers(Late), tmp_path, cuts=[1])
    assert told.startswith("cut after step 1: late: attribute \"layer['bias']\" is float32 [1] 0, ")


def test_numbers_that_are_drawn_on_the_way_into_the_run(tmp_path):
    """A resumed process may have drawn others before, so the generators are elsewhere."""

    class Salt(RunnerItem):
        def __init__(self, draw):
            self.draw = draw

        def initialize(self, state):
            self.salt = self.draw()

    for draw in (random.random, np.random.random, lambda: float(paddle.rand([]))):
        told = complaint(numbers(lambda draw=draw: Salt(draw)), tmp_path / str(id(draw)), cuts=[1])
        assert told.startswith("cut after step 1: salt: attribute 'salt' is 0.")


def test_an_item_that_saves_and_forgets_to_load(tmp_path):
    class Forgets(Counter):
        def state_dict(self):
            return {"count": self.count}

    told = complaint(numbers(Forgets), tmp_path)
    assert "forgets: attribute 'count' is 1 in" in told
    assert "; take back in load_state_dict what state_dict returns, or" in told


def test_an_item_that_resets_in_initialize_what_was_loaded(tmp_path):
    class Resets(Saved):
        def initialize(self, state):
            self.count = 0

    told = complaint(numbers(Resets), tmp_path)
    assert "resets: attribute 'count' is 1 in" in told
    assert "take it back in load_state_dict, and set it in reset and not in initialize" in told


def test_an_item_whose_state_shows_in_the_network_alone(tmp_path):
    class Closure(RunnerItem):
        def __init__(self):
            self.on_batch = bent_by(iter([1, 2, 3] * 9))

    told = complaint(trained(Closure), tmp_path)
    assert re.match(r"cut after step 1: parameter_updater: '.*/moment1' is float32 \[", told)
    assert (
        "though before its first batch all attributes were the same; look for state that none shows: a closure" in told
    )
    assert "\nAlso different: " in told
    assert "gradient_machine: linear.weight" in told


def bent_by(factors):
    def on_batch(state):
        state.batch = {**state.batch, "y": state.batch["y"] * np.float32(next(factors))}

    return on_batch


def test_an_iterator_whose_place_cannot_be_told_is_named(tmp_path):
    class Turns(RunnerItem):
        def __init__(self):
            self.factors = itertools.cycle([1, 2, 3])

        def on_batch(self, state):
            bent_by(self.factors)(state)

    assert "one of these iterators (turns: factors), a closure" in complaint(trained(Turns), tmp_path)


def test_a_count_of_itertools_is_told(tmp_path):
    class Numbers(RunnerItem):
        def __init__(self):
            self.numbers = itertools.count()

        def on_batch(self, state):
            next(self.numbers)

    assert "numbers: attribute 'numbers' is 'count(1)' in" in complaint(numbers(Numbers), tmp_path)


def test_an_attribute_that_is_made_on_the_way(tmp_path):
    class Lazy(RunnerItem):
        def on_batch(self, state):
            self.first = getattr(self, "first", state.step)

    assert "lazy: attribute 'first' is 0 in the run that was not cut and not there in" in complaint(
        numbers(Lazy), tmp_path
    )


def test_several_differences_are_named(tmp_path):
    class Many(RunnerItem):
        def on_batch(self, state):
            vars(self).update({f"at_{name}": state.step for name in range(8)})

    told = complaint(numbers(Many, Counter), tmp_path)
    assert "many: attribute 'at_0' is 0 in" in told
    assert told.endswith("\nAlso different: many: at_1, many: at_2, many: at_3, many: at_4, many: at_5 and 3 more.")


def test_a_resumed_run_that_fails(tmp_path):
    class Breaks(Saved):
        def load_state_dict(self, saved):
            self.count = saved["number"]

    told = complaint(numbers(Breaks), tmp_path)
    assert told.startswith("cut after step 1: the resumed run failed, with CheckpointError(")
    assert "breaks (Breaks) cannot restore its state" in told
    assert "KeyError: 'number'" in told


def test_an_item_of_a_test_onion_and_one_in_a_slot(tmp_path):
    def test():
        return Tester(Runner(DataProvider([1.0], 1, prefetch=0), Counter()), every=1)

    assert "tester: counter: attribute 'count' is 1 in" in complaint(numbers(test), tmp_path / "test")
    assert "slot: counter: attribute 'count' is 1 in" in complaint(numbers(lambda: Slot(Counter())), tmp_path / "slot")


# -- what networks and optimizers hide --------------------------------------------------------------------------------


class Shifted(paddle.nn.Layer):
    """A layer whose output hangs on what it keeps; what that is, subclasses say."""

    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(8, 1)
        self.keep()

    def forward(self, x):
        return self.linear(x) * self.shift()


class CountsCalls(Shifted):
    def keep(self):
        self.calls = 0

    def shift(self):
        self.calls += 1
        return 1.0 + self.calls


class PassingBuffer(Shifted):
    def keep(self):
        self.register_buffer("mean", paddle.zeros([1]), persistable=False)

    def shift(self):
        self.mean.set_value(self.mean + 1)
        return 1.0 + self.mean


class Recurrent(Shifted):
    """As an RNN that goes on in the next batch with the state of the last one."""

    def keep(self):
        self.state = None

    def shift(self):
        self.state = paddle.ones([1]) if self.state is None else paddle.tanh(self.state) + 1
        return self.state


class KeepsPersistently(Shifted):
    def keep(self):
        self.register_buffer("mean", paddle.zeros([1]))

    shift = PassingBuffer.shift


def hiding(kind, optimizer=paddle.optimizer.SGD):
    """Return what makes an onion whose network has such a layer in it."""

    def make(folder):
        seed(1)
        network = paddle.nn.Sequential(kind())
        machine = GradientMachine(
            Taking(network), lambda outputs, batch: paddle.nn.functional.mse_loss(outputs, batch["y"])
        )
        updater = ParameterUpdater(optimizer(0.01, parameters=network.parameters()))
        return Runner(Saver(folder, every=2), DataProvider(toy_examples(6), 2, prefetch=0), updater, machine)

    return make


class Taking(paddle.nn.Layer):
    def __init__(self, network):
        super().__init__()
        self.body = network

    def forward(self, batch):
        return self.body(batch["x"])


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (CountsCalls, "gradient_machine: attribute 'network.body.0.calls' is 1 in the run that was not cut and 0 in"),
        (PassingBuffer, "gradient_machine: attribute 'network.body.0.mean' is float32 [1] 1, ... "),
        (Recurrent, "gradient_machine: attribute 'network.body.0.state' is float32 [1] 1, ... "),
    ],
)
def test_what_a_layer_keeps_beside_its_buffers_is_named(kind, told, tmp_path):
    complained = complaint(hiding(kind), tmp_path, cuts=[1])
    assert complained.startswith("cut after step 1: ")
    assert f"; before its first batch it lacked what no checkpoint has: {told}" in complained
    assert "of a layer, make it a buffer (register_buffer, persistable=True), or keep it in an item that" in complained


class Slowing(paddle.optimizer.SGD):
    """An optimizer with a state of its own."""

    steps = 0

    def step(self):
        self.steps = self.steps + 1
        self.set_lr(0.01 / self.steps)
        super().step()


def test_what_the_subclass_of_an_optimizer_keeps_is_named(tmp_path):
    complained = complaint(hiding(KeepsPersistently, Slowing), tmp_path, cuts=[2])
    assert (
        "parameter_updater: attribute 'optimizer.steps' is 2 in the run that was not cut and not there in" in complained
    )


def test_what_is_kept_persistently_is_no_difference(tmp_path):
    assert_resumes_exactly(hiding(KeepsPersistently), tmp_path, passes=2, cuts=[2])


def test_what_a_layer_keeps_without_consequence_is_none(tmp_path):
    class Caches(KeepsPersistently):
        def shift(self):
            self.cached = self.mean + 0
            return super().shift()

    assert_resumes_exactly(hiding(Caches), tmp_path / "a", passes=2, cuts=[1])

    class Both(CountsCalls):
        transient = ("calls",)

        def shift(self):
            self.others = super().shift()
            return self.others

    complained = complaint(hiding(Both), tmp_path / "b", cuts=[1])
    assert "calls" not in complained
    assert "attribute 'network.body.0.others' is 2.0 in" in complained


# -- what the run comes to ---------------------------------------------------------------------------------------------


def test_a_log_of_its_own_in_which_rows_stand_twice(tmp_path):
    def make(folder):
        class Writes(RunnerItem):
            def on_batch(self, state):
                with (folder / "mine.jsonl").open("a") as file:
                    file.write(json.dumps({"step": state.step, "seconds": time.perf_counter()}) + "\n")

        return numbers(Writes)(folder)

    assert "killed after step 3 and resumed from step 2: the log mine.jsonl: 'rows' is ...'step': 2}" in complaint(
        make, tmp_path, cuts=[3]
    )


@pytest.mark.parametrize(
    ("litter", "told"),
    [
        ("step-00000099", "cut after step 5: the folder of saver: 'newest' is 6 in the run that was not cut and 99 in"),
        ("step-00000001", "resumed from step 4: the folder of saver: 'checkpoints' is [2, 4, 6] in the run that was"),
    ],
)
def test_a_checkpoint_that_should_not_be_there(litter, told, tmp_path):
    def make(folder):
        class Litters(RunnerItem):
            def initialize(self, state):
                if state.step:
                    (folder / litter).mkdir()

        return numbers(Litters, keep_last=9)(folder)

    assert told in complaint(make, tmp_path, cuts=[5])


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("metrics['x']", lambda state, seen: state.metrics.update(x=seen)),
        ("reported['x']", lambda state, seen: state.reported.update(x=seen)),
        ("loss", lambda state, seen: setattr(state, "loss", seen)),
        ("stopped", lambda state, seen: state.next_step == STEPS and state.stop(f"seen {seen}")),
        ("generators['python'][1][1]", lambda state, seen: random.seed(seen)),
    ],
)
def test_every_value_of_the_run_that_comes_out_otherwise(field, change, tmp_path):
    class Counts(RunnerItem):
        """It counts the batches of the process, in a place that nothing shows."""

        def __init__(self):
            self.on_batch = changing(change, itertools.count())

    told = complaint(numbers(Counts), tmp_path)
    assert told.startswith(f"cut after step 1: the run: {field!r} is ")


def changing(change, seen):
    def on_batch(state):
        change(state, next(seen))

    return on_batch


def test_an_end_that_comes_otherwise(tmp_path):
    class Asks(RunnerItem):
        """It counts the batches of the process, in a place that nothing shows."""

        def __init__(self):
            self.on_batch = stopping_after(3)

    told = complaint(numbers(Asks), tmp_path, passes=None, cuts=[1])
    assert told.startswith("cut after step 1: ")
    assert "the run: step" in told


def stopping_after(count):
    seen = itertools.count(1)

    def on_batch(state):
        if next(seen) == count:
            state.stop("enough")

    return on_batch


# -- runs that no two of are alike -------------------------------------------------------------------------------------


def test_a_run_that_is_not_deterministic(tmp_path):
    def make(folder):
        network = toy_network(seed=0)
        paddle.seed(random.SystemRandom().randrange(2**30))
        optimizer = paddle.optimizer.SGD(0.1, parameters=network.parameters())
        dropout = GradientMachine(network, lambda outputs, batch: paddle.nn.functional.dropout(outputs, 0.5).mean())
        return Runner(Saver(folder), DataProvider(toy_examples(6), 2, prefetch=0), ParameterUpdater(optimizer), dropout)

    told = complaint(make, tmp_path)
    assert told.startswith(
        "two runs that were not cut differ, so none can be resumed exactly: gradient_machine: 'linear."
    )
    assert "let make seed all random generators" in told


def test_an_item_that_draws_from_the_clock(tmp_path):
    class Clock(RunnerItem):
        def on_batch(self, state):
            self.now = time.perf_counter()
            state.batch = {**state.batch, "y": state.batch["y"] + np.float32(self.now % 1)}

    told = complaint(trained(Clock), tmp_path)
    assert told.startswith("two runs that were not cut differ")
    assert "\nThe first to differ: clock: attribute 'now' is " in told


# -- what passes -------------------------------------------------------------------------------------------------------


def test_a_counter_that_is_saved(tmp_path):
    assert_resumes_exactly(numbers(Saved), tmp_path, passes=2)


def test_a_log_that_is_begun_anew_where_there_is_no_checkpoint(tmp_path):
    """The rows of the run that was killed are moved aside, and no part of this one."""

    def make(folder):
        return numbers()(folder).insert_after(Saver, Logger(folder / "log.jsonl", every=1))

    assert_resumes_exactly(make, tmp_path, passes=2, cuts=[1])
    assert [path.name for path in sorted(tmp_path.glob("kill-1/*.jsonl"))] == ["log-1.jsonl", "log.jsonl"]


def test_what_an_item_and_its_parents_say_to_be_of_no_consequence(tmp_path):
    class Parent(Counter):
        transient = ("count",)

    class Child(Parent):
        transient = ("other", "told")

        def on_batch(self, state):
            super().on_batch(state)
            self.other = self.count

        def state_dict(self):
            return {"told": self.other}

    assert_resumes_exactly(numbers(Parent, Child), tmp_path, passes=2)


def test_what_onions_own_items_count_in_a_test(tmp_path):
    """They begin anew with every test, so it is nothing that a resumed run lacks."""

    def test():
        data = DataProvider([1.0, 2.0], 1, prefetch=0)
        return Tester(Runner(data, SkipIf(lambda state: state.batch[0] > 1)), every=1)

    assert_resumes_exactly(numbers(test), tmp_path, passes=2, cuts=[3])


def test_times_functions_and_a_number_that_is_no_float_any_more(tmp_path):
    class Stopwatch(RunnerItem):
        def __init__(self):
            self.total, self.function, self.nan = 0, None, float("nan")

        def on_batch(self, state):
            self.now = time.perf_counter()
            self.function = lambda: self.now
            self.total += 1.0

        def state_dict(self):
            return {"now": time.perf_counter(), "total": int(self.total)}

        def load_state_dict(self, saved):
            self.total = saved["total"]

    assert_resumes_exactly(numbers(Stopwatch), tmp_path, passes=2)


def test_a_network_that_never_moves_need_not_be_saved(tmp_path):
    def teacher():
        return Forward(toy_network(seed=7))

    assert_resumes_exactly(trained(teacher), tmp_path, passes=2, cuts=[3])


# -- what is tried -----------------------------------------------------------------------------------------------------


def tried(folder):
    return sorted(int(path.name.removeprefix("stop-")) for path in folder.glob("stop-*"))


@pytest.mark.parametrize(
    ("count", "expected"),
    [(3, [1, 2, 3, 4, 5]), (9, [1, 2, 5, 8, 9, 10, 13, 17]), (5, [1, 2, 3, 4, 5, 6, 7, 9])],
)
def test_cuts_are_tried_everywhere_or_all_over_the_run(count, expected, tmp_path):
    assert_resumes_exactly(numbers(count=count), tmp_path, passes=2)
    assert tried(tmp_path) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["whole", "whole-again", *(f"{end}-{cut}" for end in ("stop", "kill") for cut in expected)]
    )


def test_steps_end_the_whole_run(tmp_path):
    assert_resumes_exactly(numbers(Saved), tmp_path, steps=4)
    assert tried(tmp_path) == [1, 2, 3]


def test_given_cuts_are_tried_alone(tmp_path):
    assert_resumes_exactly(numbers(), tmp_path, passes=2, cuts=[4])
    assert tried(tmp_path) == [4]


def test_generators_of_the_process_stay_where_they_were(tmp_path):
    seed(77)
    before = rng.capture()
    assert_resumes_exactly(numbers(), tmp_path, passes=2, cuts=[2])
    assert rng.capture() == before


@pytest.mark.parametrize("cut", [0, STEPS])
def test_a_cut_that_is_none(cut, tmp_path):
    with pytest.raises(OnionError, match=f"cuts has {cut}; the run has 6 steps"):
        assert_resumes_exactly(numbers(), tmp_path, passes=2, cuts=[cut])


def test_an_onion_that_saves_nothing_or_elsewhere(tmp_path):
    with pytest.raises(OnionError, match="an onion without a Saver"):
        assert_resumes_exactly(lambda folder: numbers()(folder).without(Saver), tmp_path / "a", passes=1)
    with pytest.raises(OnionError, match=r"saver saves in .*elsewhere, whichever folder make is given"):
        assert_resumes_exactly(lambda folder: numbers()(tmp_path / "elsewhere"), tmp_path / "b", passes=1)


def test_a_folder_in_which_it_was_done_before(tmp_path):
    assert_resumes_exactly(numbers(), tmp_path, passes=1, cuts=[1])
    with pytest.raises(FileExistsError):
        assert_resumes_exactly(numbers(), tmp_path, passes=1, cuts=[1])
