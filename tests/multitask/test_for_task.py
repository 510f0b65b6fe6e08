"""ForTask: an item's batch ring for the batches of one task; tests/items/test_every.py has more about its base."""

import pytest

from onion import (
    CheckpointError,
    CompositionError,
    DataProvider,
    ForTask,
    Observer,
    Runner,
    RunnerItem,
    Saver,
    TaskData,
    TaskSampler,
)
from onion.multitask.strategies import RoundRobin
from onion.testing import Recorder


def two_tasks(batches=2):
    def data():
        return DataProvider(list(range(batches)), 1, prefetch=0, collate=list)

    return TaskSampler({"a": TaskData(data()), "b": TaskData(data())}, RoundRobin())


class Counter(RunnerItem):
    """Count batches; with a state, a reading and a check."""

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


def test_the_ring_runs_around_batches_of_the_task_alone():
    trace = []
    Runner(two_tasks(), ForTask("b", Recorder("item", trace)), Recorder("in", trace)).run(passes=1)
    batches = [entry.replace(".on_batch", "") for entry in trace if "on_batch" in entry]
    of_a = ["in:in", "in:out"]
    of_b = ["item:in", "in:in", "in:out", "item:out"]
    assert batches == [*of_a, *of_b, *of_a, *of_b]


@pytest.mark.parametrize(("names", "expected"), [("ab", 2), ([None], 0)])
def test_in_a_runner_without_a_sampler_the_task_may_come_from_elsewhere(names, expected):
    item = Counter()
    name = Observer(on_batch_begin=lambda state: setattr(state, "task", names[state.step % len(names)]))
    Runner(DataProvider([1, 2, 3], 1, collate=list), name, ForTask("a", item)).run(passes=1)
    assert item.count == expected


def test_the_item_is_drawn_and_found_inside_and_replaced_there():
    onion = Runner(two_tasks(), ForTask("b", Counter()), Recorder("in"))
    drawn = str(onion).splitlines()
    place = next(number for number, line in enumerate(drawn) if "for_task  ForTask(task='b')" in line)
    assert drawn[place].split()[-3:] == ["·", "·", "↕"]
    assert "counter  Counter()" in drawn[place + 1]
    assert onion["counter"] is onion[Counter]
    other = Runner(two_tasks(), ForTask("b", Counter())).replace("counter", Recorder("other"))
    assert isinstance(other[ForTask].items[0], Recorder)
    assert other[ForTask].task == "b"


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
