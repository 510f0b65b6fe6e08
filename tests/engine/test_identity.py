"""What a run is made of: told the same whenever it is made in the same way, and told apart in words."""

import datetime
import functools
import json
import signal
from pathlib import Path

import numpy as np
import paddle
import pytest

from onion import DataProvider, Forward, GradientMachine, Observer, ParameterUpdater, Runner, RunnerItem, Tester
from onion.engine.identity import constructed, differences, identity_of
from onion.testing import toy_examples, toy_network


class Item(RunnerItem):
    def __init__(self, value=1, **more):
        self.value = value


class Plain:
    def __init__(self, size, inner=None):
        self.size, self.inner = size, inner


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (True, True),
        (2, 2),
        (0.5, 0.5),
        (float("inf"), "inf"),
        (Path("a/b"), "a/b"),
        (datetime.timedelta(seconds=5), "0:00:05"),
        (len, "len"),
        (Plain, "Plain"),
        (functools.partial(max, 3), {"function": "max"}),
        ({"b": 1, 2: [1, (2,)]}, {"b": 1, "2": [1, [2]]}),
        ({3, 1, 2}, [1, 2, 3]),
        (list(range(10_001)), "10001 values"),
        (np.int64(3), 3),
        (signal.Signals.SIGINT, "Signals.SIGINT"),
        ({len: 1}, {"len": 1}),
        (np.zeros((2, 3), "float32"), "float32 [2, 3]"),
        (np.random.default_rng(0), "Generator"),
        (Plain(3, Plain(4)), {"class": "Plain", "size": 3, "inner": {"class": "Plain", "size": 4}}),
        (paddle.nn.Linear(2, 3), "Linear"),
        (Item(7), {"class": "Item", "value": 7}),
        (1.0, 1.0),  # the default is 1
        (paddle.zeros([2]), "paddle.float32 [2]"),
    ],
)
def test_arguments_become_json_values(value, told):
    assert constructed(Item(value)) == {"value": told}
    assert json.loads(json.dumps(constructed(Item(value)))) == {"value": told}


def test_defaults_are_left_out():
    assert constructed(Item(1)) == constructed(Item()) == {}


def test_objects_within_objects_come_to_an_end():
    value = Plain(1)
    value.inner = value
    assert json.dumps(constructed(Item(value))).count("Plain") < 6


def test_what_only_watches_is_left_out_and_places_are_told():
    network = toy_network()
    sgd = paddle.optimizer.SGD(0.05, parameters=network.parameters())
    test = Runner(DataProvider(toy_examples(4), 4), Forward(network))
    runner = Runner(
        Observer(on_pass_end=print),
        Tester(test, every=3),
        DataProvider(toy_examples(8), 4),
        Runner(ParameterUpdater(sgd), GradientMachine(network)),
    )
    told = identity_of(runner)
    assert list(told) == ["tester", "data_provider", "runner", "parameter_updater", "gradient_machine"]
    assert told["gradient_machine"]["in"] == "runner"
    assert told["data_provider"]["data"] == "8 examples"
    assert told["parameter_updater"]["rate"] == 0.05
    assert told["tester"]["runner"]["data_provider"]["data"] == "4 examples"
    assert told == json.loads(json.dumps(identity_of(runner)))


def onion(*items):
    return identity_of(Runner(*items))


class Other(Item):
    pass


@pytest.mark.parametrize(
    ("there", "here", "told"),
    [
        ([Item([1, 2]), Other()], [Item([1, 2]), Other()], {}),
        ([Item(1)], [Item(2)], {"item": ["item: value by default there, 2 here"]}),
        ([Item([1, 2])], [Item([1])], {"item": ["item: value.1 2 there, by default here"]}),
        ([Item(Plain(1))], [Item(Plain(2))], {"item": ["item: value.size 1 there, 2 here"]}),
        ([Item()], [Item(), Other()], {"other": ["there is no other (Other) there"]}),
        ([Item(), Other()], [Other()], {"item": ["there is no item (Item) here"]}),
        (
            [Item(), Other()],
            [Other(), Item()],
            {"item": ["the order of the items is item, other there, other, item here"]},
        ),
        ([Item(), Runner(Other())], [Runner(Item(), Other())], {"item": ["item: in None there, 'runner' here"]}),
    ],
)
def test_differences_are_told_in_words(there, here, told):
    found = differences(onion(*there), onion(*here))
    assert {name: found.get(name) for name in told} == told
    assert bool(found) == bool(told)


def test_another_class_under_the_same_name():
    one, other = Item(), Other()
    one.name = other.name = "mine"
    assert differences(onion(one), onion(other)) == {"mine": ["mine: class 'Item' there, 'Other' here"]}


def test_long_lists_are_told_by_a_checksum():
    one, other = constructed(Item(list(range(17)))), constructed(Item([*range(16), 99]))
    assert one["value"].startswith("17 values, sha256 ")
    assert one != other


def test_an_argument_that_cannot_be_read_now_is_left_out():
    class Late(RunnerItem):
        def __init__(self, value=None):
            pass

        @property
        def value(self):
            raise RuntimeError("not yet")

    assert constructed(Late(3)) == {}
