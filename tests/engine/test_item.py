"""The contract of an item: default names, empty defaults, and which hooks count as overridden."""

from functools import partialmethod

import pytest

from onion import HookError, Runner, RunnerItem, State
from onion.engine.item import HOOKS, overrides
from onion.testing import Batches, Recorder


def class_named(of_class, *parents, **attributes):
    return type(of_class, (*parents, RunnerItem), attributes)


def overridden(item):
    return [hook for hook in HOOKS if overrides(item, hook)]


@pytest.mark.parametrize(
    ("of_class", "name"),
    [
        ("Tester", "tester"),
        ("GradientMachine", "gradient_machine"),
        ("GPUMonitor", "gpu_monitor"),
        ("LogToURL", "log_to_url"),
        ("Tester2", "tester2"),
        ("Top5Accuracy", "top5_accuracy"),
        ("X", "x"),
        ("already_snake", "already_snake"),
    ],
)
def test_the_default_name_is_the_class_in_snake_case(of_class, name):
    assert class_named(of_class).name == name
    assert class_named(of_class)().name == name


def test_a_class_or_an_instance_may_set_its_name_and_a_subclass_gets_its_own():
    base = class_named("Base", name="chosen")
    item = base()
    item.name = "mine"
    assert (item.name, base().name) == ("mine", "chosen")
    assert type("Derived", (base,), {})().name == "derived"


def test_class_options_go_on_to_the_other_bases():
    class Registered:
        def __init_subclass__(cls, code=0, **options):
            super().__init_subclass__(**options)
            cls.code = code

    class Item(RunnerItem, Registered, code=3):
        pass

    assert (Item.code, Item.name) == (3, "item")


def test_an_item_without_anything_is_an_item():
    item = RunnerItem()
    assert item.state_dict() == item.log_values() == {}
    assert item.load_state_dict({}) is item.check(Runner()) is None
    assert [getattr(item, hook)(State()) for hook in HOOKS] == [None] * 3
    assert overridden(item) == []


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_of_a_class_its_parent_a_mixin_or_the_instance_is_overridden(hook):
    def function(self, state):
        pass

    parent = class_named("Parent", **{hook: function})
    child = type("Child", (parent,), {})
    mixed = class_named("Mixed", type("Mixin", (), {hook: function}))
    instance = RunnerItem()
    setattr(instance, hook, lambda state: None)
    for item in (parent(), child(), mixed(), instance):
        assert overridden(item) == [hook]
    given_back = type("Idle", (parent,), {hook: getattr(RunnerItem, hook)})
    assert overridden(given_back()) == []


@pytest.mark.parametrize("timed", [False, True], ids=["untimed", "timed"])
def test_static_class_and_partial_methods_are_hooks_too(timed):
    seen = []

    class Unusual(RunnerItem):
        @staticmethod
        def initialize(state):
            seen.append("static in")
            yield
            seen.append("static out")

        @classmethod
        def on_pass(cls, state):
            seen.append(cls.__name__)

        def work(self, text, state):
            seen.append(f"{text} in")
            yield
            seen.append(f"{text} out")

        on_batch = partialmethod(work, "partial")

    runner = Runner(Batches(1), Unusual())
    (runner.timed() if timed else runner).run(passes=1)
    assert seen == ["static in", "Unusual", "partial in", "partial out", "static out"]


def test_super_and_yield_from_extend_a_hook():
    trace = []

    class Longer(Recorder):
        def on_batch(self, state):
            trace.append("before")
            yield from super().on_batch(state)
            trace.append("after")

    Runner(Batches(1), Longer("a", trace), Recorder("b", trace)).run(passes=1)
    batch = ["a.on_batch:in", "b.on_batch:in", "b.on_batch:out", "a.on_batch:out"]
    assert [entry for entry in trace if "initialize" not in entry and "on_pass" not in entry] == [
        "before", *batch, "after"
    ]  # fmt: skip


def test_forgetting_yield_from_is_told():
    class Forgot(Recorder):
        def on_batch(self, state):
            return super().on_batch(state)

    with pytest.raises(HookError, match=r"^a \(Forgot\)\.on_batch returned a generator that would never run; write 'y"):
        Runner(Batches(1), Forgot("a")).run(passes=1)


def test_a_generator_hook_may_return_early_and_its_value_is_ignored():
    class Early(RunnerItem):
        def on_batch(self, state):
            if state.batch == 0:
                yield
            return "ignored"

    assert Runner(Batches(3), Early()).run(passes=1).step == 1
