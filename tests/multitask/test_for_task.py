"""ForTask: an item's batch ring for the batches of one task."""

import pytest

from onion import (
    CheckpointError,
    CompositionError,
    DataProvider,
    ForTask,
    HookError,
    Observer,
    Runner,
    RunnerItem,
    Saver,
    TaskData,
    TaskSampler,
)
from onion.multitask.strategies import RoundRobin
from onion.testing import Failing, PlannedError, Recorder


def two_tasks(batches=2):
    def data():
        return DataProvider(list(range(batches)), 1, prefetch=0, collate=list)

    return TaskSampler({"a": TaskData(data()), "b": TaskData(data())}, RoundRobin())


class Counter(RunnerItem):
    """Count batches, on the way in or on the way out; with a state, a reading and a check."""

    def __init__(self):
        self.count, self.checked = 0, 0

    def on_batch(self, state):
        self.count += 1

    def log_values(self):
        return {"count": self.count}

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, saved):
        self.count = saved["count"]

    def check(self, runner):
        self.checked += 1
        if self.count < 0:
            raise CompositionError("a count below 0")


class CounterOnTheWayOut(Counter):
    def on_batch(self, state):
        yield
        self.count += 1


def test_the_ring_runs_around_batches_of_the_task_alone():
    trace = []
    Runner(two_tasks(), ForTask("b", Recorder("item", trace)), Recorder("in", trace)).run(passes=1)
    batches = [entry.replace(".on_batch", "") for entry in trace if "on_batch" in entry]
    of_a = ["in:in", "in:out"]
    of_b = ["item:in", "in:in", "in:out", "item:out"]
    assert batches == [*of_a, *of_b, *of_a, *of_b]


def test_the_rings_around_run_and_pass_stand_as_ever():
    trace = []
    Runner(two_tasks(), ForTask("b", Recorder("item", trace))).run(passes=2)
    rest = [entry for entry in trace if "on_batch" not in entry]
    one_pass = ["item.on_pass:in", "item.on_pass:out"]
    assert rest == ["item.initialize:in", *one_pass, *one_pass, "item.initialize:out"]


@pytest.mark.parametrize("kind", [Counter, CounterOnTheWayOut])
@pytest.mark.parametrize(("task", "expected"), [("a", 3), ("b", 2)])
def test_with_a_way_out_or_without(kind, task, expected):
    item = kind()
    Runner(two_tasks(3), ForTask(task, item)).run(steps=5)
    assert item.count == expected


def test_without_tasks_it_never_runs():
    item = Counter()
    Runner(DataProvider([1, 2], 1, collate=list), ForTask("a", item)).run(passes=1)
    assert item.count == 0


def test_in_an_onion_without_a_sampler_the_task_may_come_from_elsewhere():
    item = Counter()
    name = Observer(on_batch_begin=lambda state: setattr(state, "task", "ab"[state.step % 2]))
    Runner(DataProvider([1, 2, 3], 1, collate=list), name, ForTask("a", item)).run(passes=1)
    assert item.count == 2


def test_an_item_that_skips_or_repeats_does_so_for_its_task():
    class Times(RunnerItem):
        def __init__(self, count):
            self.count = count

        def on_batch(self, state):
            for _ in range(self.count):
                yield

    for count in (0, 2):
        seen = []
        inside = Observer(on_batch_begin=lambda state: seen.append(state.task))  # noqa: B023 - it is used at once
        state = Runner(two_tasks(), ForTask("b", Times(count)), inside).run(passes=1)
        assert "".join(seen) == ("a" + "b" * count) * 2
        assert state.step == (2 if count == 0 else 4)


def test_an_error_inside_reaches_the_item_at_its_yield_for_its_task_alone():
    class Swallows(RunnerItem):
        def on_batch(self, state):
            try:
                yield
            except PlannedError:
                caught.append(state.task)

    caught = []
    Runner(two_tasks(), ForTask("b", Swallows()), Failing("on_batch", step=1, times=1)).run(passes=1)
    assert caught == ["b"]
    with pytest.raises(PlannedError):
        Runner(two_tasks(), ForTask("b", Swallows()), Failing("on_batch", step=0)).run(passes=1)


def test_a_retry_is_the_items_own():
    class Retries(RunnerItem):
        def on_batch(self, state):
            while True:
                try:
                    yield
                except PlannedError:
                    continue
                break

    state = Runner(two_tasks(), ForTask("b", Retries()), Failing("on_batch", step=1, times=2)).run(passes=1)
    assert state.step == 4


def test_the_item_is_drawn_and_found_inside():
    onion = Runner(two_tasks(), ForTask("b", Counter()), Recorder("in"))
    drawn = str(onion).splitlines()
    place = next(number for number, line in enumerate(drawn) if "for_task  ForTask(task='b')" in line)
    assert drawn[place].split()[-3:] == ["·", "·", "↕"]
    assert "counter  Counter()" in drawn[place + 1]
    assert onion["counter"] is onion[Counter]


def test_it_and_what_it_holds_are_left_out_or_replaced():
    onion = Runner(two_tasks(), ForTask("b", Counter()), Recorder("in"))
    assert ForTask not in onion.without(Counter)
    assert Counter not in onion.without("for_task")
    assert onion.replace("for_task", ForTask("a", CounterOnTheWayOut()))[ForTask].task == "a"
    other = onion.replace("counter", CounterOnTheWayOut())
    assert isinstance(other[ForTask].items[0], CounterOnTheWayOut)
    assert other[ForTask].task == "b"


def test_it_may_hold_a_runner():
    trace = []
    inner = Runner(Recorder("x", trace), Recorder("y", trace))
    Runner(two_tasks(1), ForTask("b", inner), Recorder("in", trace)).run(passes=1)
    batches = [entry.replace(".on_batch", "") for entry in trace if "on_batch" in entry]
    assert batches == ["in:in", "in:out", "x:in", "y:in", "y:out", "x:out", "in:in", "in:out"]
    assert [entry for entry in trace if "initialize:in" in entry] == [
        "x.initialize:in",
        "y.initialize:in",
        "in.initialize:in",
    ]


def test_readings_and_checks_are_the_items():
    item = Counter()
    runner = Runner(two_tasks(), ForTask("a", item))
    assert item.checked == 1
    runner.run(passes=1)
    assert runner[Counter].log_values() == {"count": 2}
    item.count = -1
    with pytest.raises(CompositionError, match="a count below 0"):
        Runner(two_tasks(), ForTask("a", item))


@pytest.mark.parametrize("cut", range(1, 6))
def test_its_state_is_the_items_and_a_resumed_run_goes_on(cut, tmp_path):
    def runner(item):
        return Runner(Saver(tmp_path, every=100), two_tasks(3), ForTask("b", item))

    runner(Counter()).run(steps=cut)
    item = Counter()
    runner(item).run(passes=1)
    assert item.count == 3


def test_an_item_without_a_state_leaves_none_in_the_checkpoint(tmp_path):
    Runner(Saver(tmp_path / "a"), two_tasks(), ForTask("b", Recorder("item"))).run(passes=1)
    with pytest.raises(CheckpointError, match=r"there is no counter \(Counter\) there"):
        Runner(Saver(tmp_path / "a"), two_tasks(), ForTask("b", Counter())).run(passes=2)


def test_several_are_numbered():
    runner = Runner(two_tasks(), ForTask("a", Counter()), ForTask("b", Counter()))
    assert [item.name for item in runner.all(ForTask)] == ["for_task", "for_task-2"]
    assert [item.name for item in runner.all(Counter)] == ["counter", "counter-2"]


@pytest.mark.parametrize("item", [Counter, None, lambda state: None], ids=["class", "none", "function"])
def test_it_holds_an_item(item):
    with pytest.raises(CompositionError, match="ForTask holds an item, not a"):
        ForTask("a", item)


@pytest.mark.parametrize(("task", "said"), [("mlmm", r"it has mlm, mrc; did you mean 'mlm'\?"), ("z", "mlm, mrc.\n")])
def test_a_task_that_the_sampler_has_not_is_refused(task, said):
    tasks = {name: TaskData(DataProvider([1], collate=list)) for name in ("mlm", "mrc")}
    with pytest.raises(CompositionError, match=rf"is for the task '{task}', which task_sampler does not .*{said}"):
        Runner(TaskSampler(tasks), Runner(ForTask(task, Counter()), name="inner"))
    Runner(TaskSampler(tasks), Runner(ForTask("mrc", Counter()), name="inner"))


@pytest.mark.parametrize("task", [3, None, ["a"]])
def test_the_name_of_a_task_is_a_text(task):
    with pytest.raises(CompositionError, match="ForTask: task must be a name, got"):
        ForTask(task, Counter())


def test_a_hook_that_returns_something_is_refused_here_as_everywhere():
    class Returns(RunnerItem):
        def on_batch(self, state):
            return 3

    with pytest.raises(HookError, match="returned int; a hook returns nothing"):
        Runner(two_tasks(), ForTask("a", Returns())).run(passes=1)
