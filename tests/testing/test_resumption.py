"""assert_resumes_exactly finds what is not saved, and says where; it accepts what is."""

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
    """Return what makes a runner of numbers with these items, which are given as functions."""

    def make(folder):
        seed(1)
        data = DataProvider([float(each) for each in range(count)], 1, prefetch=0)
        return Runner(Saver(folder, every=every, **saver), data, *(item() for item in items))

    return make


def trained(*items):
    """Return what makes a runner of a network with these items."""

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


class Keeps(RunnerItem):
    """Change something, made at the start, in every batch."""

    def __init__(self, kept, change):
        self.kept, self.change = kept, change

    def on_batch(self, state):
        self.change(self.kept, state)


class Sums:
    def __init__(self):
        self.by_name = {"all": 0.0}


class SlottedSums(Sums):
    __slots__ = ("by_name",)


def add(sums, state):
    sums.by_name["all"] += 2.5


def move(layer, state):
    layer.bias.set_value(layer.bias + 1.0)


def move_late(layer, state):
    if state.step == STEPS - 1:
        move(layer, state)


def name_many(kept, state):
    vars(kept).update({f"at_{name}": state.step for name in range(8)})


def draw(generator, state):
    getattr(generator, "random", getattr(generator, "random_raw", None))()


def layer():
    return paddle.nn.Linear(1, 1)


KEPT = {
    "a list": (list, lambda kept, state: kept.append(float(state.batch[0])), r"'kept' is \[0.0\] in .* and \[\] in"),
    "an object": (Sums, add, r"\"kept.by_name\['all'\]\" is 2.5 in .* and 0.0 in"),
    "an object with slots": (SlottedSums, add, r"\"kept.by_name\['all'\]\" is 2.5 in .* and 0.0 in"),
    "a network": (layer, move, r"\"kept\['bias'\]\" is float32 \[1\] 1, .* float32 \[1\] 0\.\d+"),
    # Its values at the cut are the initial ones; only because they are overwritten it shows that nothing saves them.
    "a network that moves late": (layer, move_late, r"\"kept\['bias'\]\" is float32 \[1\] 0, "),
    "itertools.count": (itertools.count, lambda kept, state: next(kept), r"'kept' is 'count\(1\)' in"),
    "new attributes": (
        SimpleNamespace,
        name_many,
        r"'kept.at_0' is 0 in the uninterrupted run and not there in (.|\n)*\nAlso different: "
        r"keeps: kept.at_1, keeps: kept.at_2, keeps: kept.at_3, keeps: kept.at_4, keeps: kept.at_5 and 2 more\.$",
    ),
    **{
        make.__name__: (lambda make=make: make(3), draw, "['\"]kept")
        for make in (random.Random, np.random.default_rng, np.random.RandomState, np.random.PCG64)
    },
}


@pytest.mark.parametrize("name", KEPT)
def test_an_attribute_that_is_not_saved_is_named(name, tmp_path):
    make, change, told = KEPT[name]
    complained = complaint(numbers(lambda: Keeps(make(), change)), tmp_path, cuts=[1])
    assert re.match(f"stopped after step 1: keeps: attribute {told}", complained), complained


def test_the_advice_depends_on_what_the_item_defines(tmp_path):
    class Forgets(Counter):
        def state_dict(self):
            return {"count": self.count}

    class Resets(Saved):
        def initialize(self, state):
            self.count = 0

    for item, advice in (
        (Counter, "return it from state_dict and restore it in load_state_dict, or name it in transient if"),
        (Forgets, "restore in load_state_dict what state_dict returns, or"),
        (Resets, "return it from state_dict, restore it in load_state_dict, and set it in reset and not in initialize"),
    ):
        name = item.__name__.lower()
        assert complaint(numbers(item), tmp_path / name).startswith(
            f"stopped after step 1: {name}: attribute 'count' is 1 in the uninterrupted run and 0 in the resumed run; "
            + advice
        )


def test_a_kill_is_described_with_the_checkpoint_the_run_resumed_from(tmp_path):
    """What is saved now and then only is there when the run is stopped, and not when it is killed in between."""

    class Late(Saved):
        def state_dict(self):
            return {"count": self.count - self.count % 3}

    assert complaint(numbers(Late), tmp_path, cuts=[3, 4]).startswith(
        "killed after step 3 and resumed from step 2: late: attribute 'count' is 2 in the uninterrupted run and 0 in"
    )


def test_numbers_drawn_when_the_run_begins(tmp_path):
    """A resumed process may have drawn others before, so the generators have another state."""

    class Salt(RunnerItem):
        def __init__(self, draw):
            self.draw = draw

        def initialize(self, state):
            self.salt = self.draw()

    for draw in (random.random, np.random.random, lambda: float(paddle.rand([]))):
        told = complaint(numbers(lambda draw=draw: Salt(draw)), tmp_path / str(id(draw)), cuts=[1])
        assert told.startswith("stopped after step 1: salt: attribute 'salt' is 0.")


def test_an_item_whose_state_is_visible_in_the_network_alone(tmp_path):
    class Closure(RunnerItem):
        def __init__(self):
            self.on_batch = scaled_by(iter([1, 2, 3] * 9))

    told = complaint(trained(Closure), tmp_path)
    assert re.match(r"stopped after step 1: parameter_updater: '.*/moment1' is float32 \[", told)
    assert (
        "though before its first batch all attributes were equal; look for state that is in no attribute: a clo" in told
    )
    assert "\nAlso different: " in told
    assert "gradient_machine: linear.weight" in told


def scaled_by(factors):
    def on_batch(state):
        state.batch = {**state.batch, "y": state.batch["y"] * np.float32(next(factors))}

    return on_batch


def test_an_iterator_whose_position_cannot_be_read_is_named(tmp_path):
    def cycling():
        return Keeps(itertools.cycle([1, 2, 3]), lambda factors, state: scaled_by(factors)(state))

    assert "one of these iterators (keeps: kept), a closure" in complaint(trained(cycling), tmp_path)


def test_a_resumed_run_that_fails(tmp_path):
    class Breaks(Saved):
        def load_state_dict(self, saved):
            self.count = saved["number"]

    told = complaint(numbers(Breaks), tmp_path)
    assert told.startswith("stopped after step 1: the resumed run failed with CheckpointError(")
    assert "breaks (Breaks) cannot restore its state" in told
    assert "KeyError: 'number'" in told


def test_an_item_of_a_test_runner_and_one_in_a_slot(tmp_path):
    def test():
        return Tester(Runner(DataProvider([1.0], 1, prefetch=0), Counter()), every=1)

    assert "tester: counter: attribute 'count' is 1 in" in complaint(numbers(test), tmp_path / "test")
    assert "slot: counter: attribute 'count' is 1 in" in complaint(numbers(lambda: Slot(Counter())), tmp_path / "slot")


# -- what networks and optimizers hide --------------------------------------------------------------------------------


class Shifted(paddle.nn.Layer):
    """A layer whose output depends on what its subclasses keep."""

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
    persistable = False

    def keep(self):
        self.register_buffer("mean", paddle.zeros([1]), persistable=self.persistable)

    def shift(self):
        self.mean.set_value(self.mean + 1)
        return 1.0 + self.mean


class KeepsPersistently(PassingBuffer):
    persistable = True


class Taking(paddle.nn.Layer):
    def __init__(self, network):
        super().__init__()
        self.body = network

    def forward(self, batch):
        return self.body(batch["x"])

    def loss(self, outputs, batch):
        return paddle.nn.functional.mse_loss(outputs, batch["y"])


def hiding(kind, optimizer=paddle.optimizer.SGD):
    """Return what makes a runner whose network has such a layer in it."""

    def make(folder):
        seed(1)
        network = Taking(paddle.nn.Sequential(kind()))
        updater = ParameterUpdater(optimizer(0.01, parameters=network.parameters()))
        data = DataProvider(toy_examples(6), 2, prefetch=0)
        return Runner(Saver(folder, every=2), data, updater, GradientMachine(network))

    return make


@pytest.mark.parametrize(
    ("kind", "told"),
    [(CountsCalls, "calls' is 1 in the uninterrupted run and 0 in"), (PassingBuffer, "mean' is float32 [1] 1, ... ")],
)
def test_what_a_layer_keeps_beside_its_buffers_is_named(kind, told, tmp_path):
    complained = complaint(hiding(kind), tmp_path, cuts=[1])
    assert complained.startswith("stopped after step 1: ")
    lacked = "; before its first batch it lacked state that no checkpoint contains: gradient_machine: attribute "
    assert f"{lacked}'network.body.0.{told}" in complained
    assert "in a layer, make it a buffer (register_buffer, persistable=True), or keep it in an item that" in complained


class Slowing(paddle.optimizer.SGD):
    """An optimizer with a state of its own."""

    steps = 0

    def step(self):
        self.steps = self.steps + 1
        self.set_lr(0.01 / self.steps)
        super().step()


def test_what_the_subclass_of_an_optimizer_keeps_is_named(tmp_path):
    told = "parameter_updater: attribute 'optimizer.steps' is 2 in the uninterrupted run and not there in"
    assert told in complaint(hiding(KeepsPersistently, Slowing), tmp_path, cuts=[2])


def test_what_a_layer_keeps_without_effect_is_ignored(tmp_path):
    class Caches(KeepsPersistently):
        def shift(self):
            self.cached = self.mean + 0
            return super().shift()

    assert_resumes_exactly(hiding(Caches), tmp_path / "a", passes=2, cuts=[1, 2])

    class Both(CountsCalls):
        transient = ("calls",)

        def shift(self):
            self.others = super().shift()
            return self.others

    complained = complaint(hiding(Both), tmp_path / "b", cuts=[1])
    assert "calls" not in complained
    assert "attribute 'network.body.0.others' is 2.0 in" in complained


# -- the result of a run -----------------------------------------------------------------------------------------------


def test_a_log_with_a_row_twice(tmp_path):
    def make(folder):
        class Writes(RunnerItem):
            def on_batch(self, state):
                with (folder / "mine.jsonl").open("a") as file:
                    file.write(json.dumps({"step": state.step, "seconds": time.perf_counter()}) + "\n")

        return numbers(Writes)(folder)

    told = "killed after step 3 and resumed from step 2: the log mine.jsonl: 'rows' is ...'step': 2}"
    assert told in complaint(make, tmp_path, cuts=[3])


@pytest.mark.parametrize(
    ("litter", "told"),
    [
        (
            "step-00000099",
            "stopped after step 5: the folder of saver: 'newest' is 6 in the uninterrupted run and 99 in",
        ),
        ("step-00000001", "resumed from step 4: the folder of saver: 'checkpoints' is [2, 4, 6] in the uninterrupted"),
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
        ("stopped", lambda state, seen: state.stop(f"seen {seen}") if state.next_step == STEPS else None),
        ("generators['python'][1][1]", lambda state, seen: random.seed(seen)),
    ],
)
def test_every_value_of_the_run_is_compared(field, change, tmp_path):
    def counting():
        """It counts the batches of the process where no attribute shows it."""
        seen, item = itertools.count(), RunnerItem()

        def on_batch(state):
            change(state, next(seen))

        item.on_batch = on_batch
        return item

    assert complaint(numbers(counting), tmp_path).startswith(f"stopped after step 1: the run: {field!r} is ")


# -- runs that are not deterministic -----------------------------------------------------------------------------------


def test_a_run_that_is_not_deterministic(tmp_path):
    def make(folder):
        network = toy_network(seed=0)
        paddle.seed(random.SystemRandom().randrange(2**30))
        optimizer = paddle.optimizer.SGD(0.1, parameters=network.parameters())
        dropout = GradientMachine(network, lambda outputs, batch: paddle.nn.functional.dropout(outputs, 0.5).mean())
        return Runner(Saver(folder), DataProvider(toy_examples(6), 2, prefetch=0), ParameterUpdater(optimizer), dropout)

    told = complaint(make, tmp_path)
    assert told.startswith("two uninterrupted runs differ, so none can be resumed exactly: gradient_machine: 'linear.")
    assert "make must seed all random generators" in told


def test_an_item_that_depends_on_the_time(tmp_path):
    class Clock(RunnerItem):
        def on_batch(self, state):
            self.now = time.perf_counter()
            state.batch = {**state.batch, "y": state.batch["y"] + np.float32(self.now % 1)}

    told = complaint(trained(Clock), tmp_path)
    assert told.startswith("two uninterrupted runs differ")
    assert "\nFirst difference: clock: attribute 'now' is " in told


# -- what passes -------------------------------------------------------------------------------------------------------


def test_a_log_that_is_restarted_without_a_checkpoint(tmp_path):
    """The rows of the run that was killed are moved to another file, and are no part of this one."""

    def make(folder):
        return numbers()(folder).insert_after(Saver, Logger(folder / "log.jsonl", every=1))

    assert_resumes_exactly(make, tmp_path, passes=2, cuts=[1])
    assert [path.name for path in sorted(tmp_path.glob("kill-1/*.jsonl"))] == ["log-1.jsonl", "log.jsonl"]


class Parent(Counter):
    transient = ("count",)


class Child(Parent):
    transient = ("other", "told")

    def on_batch(self, state):
        super().on_batch(state)
        self.other = self.count

    def state_dict(self):
        return {"told": self.other}


class Stopwatch(RunnerItem):
    """Times, functions, and an integer that is saved of a float."""

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


def skipping_test():
    """Items of onion inside a test start again with every test, so a resumed run lacks nothing."""
    data = DataProvider([1.0, 2.0], 1, prefetch=0)
    return Tester(Runner(data, SkipIf(lambda state: state.batch[0] > 1)), every=1)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(numbers(Parent, Child), id="transient attributes, of parent classes too"),
        pytest.param(numbers(Stopwatch), id="times and functions"),
        pytest.param(numbers(skipping_test), id="items inside a test"),
        pytest.param(trained(lambda: Forward(toy_network(seed=7))), id="a network that never changes"),
        pytest.param(hiding(KeepsPersistently), id="a persistable buffer"),
    ],
)
def test_what_makes_no_difference_passes(make, tmp_path):
    assert_resumes_exactly(make, tmp_path, passes=2, cuts=[2, 3])


# -- what is tried -----------------------------------------------------------------------------------------------------


def tried(folder):
    return sorted(int(path.name.removeprefix("stop-")) for path in folder.glob("stop-*"))


@pytest.mark.parametrize(
    ("count", "expected"), [(3, [1, 2, 3, 4, 5]), (9, [1, 2, 5, 8, 9, 10, 13, 17]), (5, [1, 2, 3, 4, 5, 6, 7, 9])]
)
def test_cuts_are_tried_everywhere_or_all_over_the_run(count, expected, tmp_path):
    assert_resumes_exactly(numbers(Saved, count=count), tmp_path, passes=2)
    assert tried(tmp_path) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["whole", "whole-again", *(f"{end}-{cut}" for end in ("stop", "kill") for cut in expected)]
    )


@pytest.mark.parametrize(("how", "expected"), [({"steps": 4}, [1, 2, 3]), ({"passes": 2, "cuts": [4]}, [4])])
def test_the_steps_and_cuts_that_are_given(how, expected, tmp_path):
    """Nor do the generators of the process move."""
    seed(77)
    before = rng.capture()
    assert_resumes_exactly(numbers(Saved), tmp_path, **how)
    assert (tried(tmp_path), rng.capture()) == (expected, before)


@pytest.mark.parametrize("cut", [0, STEPS])
def test_a_cut_outside_the_run_is_refused(cut, tmp_path):
    with pytest.raises(OnionError, match=f"cuts has {cut}; the run has 6 steps"):
        assert_resumes_exactly(numbers(), tmp_path, passes=2, cuts=[cut])


def test_a_runner_that_saves_nothing_or_elsewhere_is_refused(tmp_path):
    with pytest.raises(OnionError, match="a runner without a Saver"):
        assert_resumes_exactly(lambda folder: numbers()(folder).without(Saver), tmp_path / "a", passes=1)
    with pytest.raises(OnionError, match=r"saver saves in .*elsewhere whatever folder make is given"):
        assert_resumes_exactly(lambda folder: numbers()(tmp_path / "elsewhere"), tmp_path / "b", passes=1)


def test_a_folder_that_was_used_before_is_refused(tmp_path):
    assert_resumes_exactly(numbers(), tmp_path, passes=1, cuts=[1])
    with pytest.raises(FileExistsError):
        assert_resumes_exactly(numbers(), tmp_path, passes=1, cuts=[1])
