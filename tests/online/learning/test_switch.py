"""Switch: an item that is turned on and off."""

import pytest

from onion import CompositionError, Observer, Runner, Saver
from onion.online.learning.switch import Switch
from onion.testing import Batches, Recorder


@pytest.mark.parametrize("on", [True, False])
def test_it_starts_as_configured(on):
    trace = []
    Runner(Batches(2), Switch(Recorder("inner", trace), on=on)).run(passes=1)
    assert ("inner.on_batch:in" in trace) is on


def test_the_item_runs_while_it_is_on_and_every_batch_counts():
    trace, plan = [], [True, False, False, True]
    switch = Switch(Recorder("inner", trace))
    turn = Observer(on_batch_begin=lambda state: setattr(switch, "on", plan[state.batch_id]))
    state = Runner(Batches(4), turn, switch).run(passes=1)
    assert trace.count("inner.on_batch:in") == trace.count("inner.on_batch:out") == 2
    assert state.step == 4
    assert trace.count("inner.on_pass:in") == 1


def test_a_resumed_run_restores_it(tmp_path):
    def run(steps, on):
        trace = []
        switch = Switch(Recorder("inner", trace))
        turn = Observer(on_batch_begin=lambda state: setattr(switch, "on", on) if on is not None else None)
        Runner(Saver(tmp_path), Batches(4), turn, switch).run(steps=steps)
        return trace.count("inner.on_batch:in")

    assert run(2, False) == 0
    assert run(4, None) == 0


def test_it_holds_an_item():
    with pytest.raises(CompositionError, match=r"Switch holds an item, not a int: Switch\(Item"):
        Switch(3)


def test_it_is_the_same_run_on_or_off(tmp_path):
    Runner(Saver(tmp_path), Batches(4), Switch(Recorder("inner", []), on=True)).run(steps=2)
    assert Runner(Saver(tmp_path), Batches(4), Switch(Recorder("inner", []), on=False)).run(steps=3).step == 3
