"""Functions at the six moments."""

from itertools import combinations

import pytest

from onion import CompositionError, Observer, Runner
from onion.engine.drawing import way_out
from onion.engine.item import HOOKS, overrides
from onion.testing import Batches, Failing, PlannedError, Recorder

MOMENTS = ["initialize", "finalize", "on_pass_begin", "on_pass_end", "on_batch_begin", "on_batch_end"]
BEGINS, ENDS = MOMENTS[::2], MOMENTS[::-2]  # in the order in which they come
HOOK_OF = dict(zip(MOMENTS, [hook for hook in HOOKS for _ in range(2)], strict=True))


def observing(trace, moments=MOMENTS):
    """Return an Observer that writes every moment down."""
    return Observer(**{moment: lambda state, moment=moment: trace.append(moment) for moment in moments})


@pytest.mark.parametrize("moments", [MOMENTS, *([moment] for moment in MOMENTS)], ids="+".join)
def test_the_moments_in_their_order(moments):
    trace = []
    Runner(observing(trace, moments), Batches(2)).run(passes=2)
    batch = ["on_batch_begin", "on_batch_end"]
    one_pass = ["on_pass_begin", *batch, *batch, "on_pass_end"]
    whole = ["initialize", *one_pass, *one_pass, "finalize"]
    assert trace == [moment for moment in whole if moment in moments]


def test_begins_are_outside_and_ends_after_the_rings_inside():
    trace = []
    Runner(observing(trace), Batches(1), Recorder("a", trace)).run(passes=1)
    begins = [(moment, f"a.{HOOK_OF[moment]}:in") for moment in BEGINS]
    ends = [(f"a.{HOOK_OF[moment]}:out", moment) for moment in ENDS]
    assert trace == [entry for pair in begins + ends for entry in pair]


@pytest.mark.parametrize("moments", [pair for n in range(3) for pair in combinations(MOMENTS, n)], ids="+".join)
def test_a_hook_without_anything_to_call_is_not_overridden_and_costs_nothing(moments):
    observer = observing([], moments)
    assert [hook for hook in HOOKS if overrides(observer, hook)] == [
        hook for hook in HOOKS if any(HOOK_OF[moment] == hook for moment in moments)
    ]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_beginning_alone_needs_no_way_out(moment):
    wound = moment.endswith("end") or HOOK_OF[moment] == "initialize"
    assert way_out(observing([], [moment]), HOOK_OF[moment]) is wound


@pytest.mark.parametrize(("hook", "begun"), [("initialize", 1), ("on_pass", 2), ("on_batch", 3)])
def test_an_error_skips_the_ends_but_never_finalize(hook, begun):
    trace = []
    with pytest.raises(PlannedError):
        Runner(observing(trace), Batches(1), Failing(hook)).run(passes=1)
    assert trace == [*BEGINS[:begun], "finalize"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_error_of_a_function_is_an_error_of_its_ring(moment):
    trace = []

    def fail(state):
        raise PlannedError(moment)

    calls = {"finalize": lambda state: trace.append("finalize"), moment: fail}
    with pytest.raises(PlannedError, match=f"^{moment}$"):
        Runner(Recorder("a", trace), Observer(**calls), Batches(1)).run(passes=1)
    assert f"a.{HOOK_OF[moment]}:error" in trace
    assert ("finalize" in trace) == (moment not in ("initialize", "finalize"))


def test_stopping_is_no_error_so_the_ends_are_called():
    trace = []
    stop = Observer(on_batch_begin=lambda state: state.stop("enough"))
    Runner(observing(trace), Batches(5), stop).run(passes=3)
    assert trace == BEGINS + ENDS


def test_functions_get_the_state_and_what_they_return_is_ignored():
    states = []
    look = Observer(**dict.fromkeys(MOMENTS, lambda state: states.append(state) or "something"))
    state = Runner(look, Batches(1)).run(passes=1)
    assert [each is state for each in states] == [True] * 6


def test_moments_are_given_by_name():
    with pytest.raises(TypeError):
        Observer(print)
    with pytest.raises(TypeError, match="on_epoch_end"):
        Observer(on_epoch_end=print)


async def coroutine(state):
    pass


def generator(state):
    yield


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("lazy", [coroutine, generator])
def test_a_function_whose_body_would_not_run_is_refused(moment, lazy):
    with pytest.raises(CompositionError, match=f"{lazy.__name__}.* pass a plain function"):
        Observer(**{moment: lazy})
