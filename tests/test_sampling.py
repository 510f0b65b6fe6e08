"""Strategies: the weights that they give, what they refuse, what they remember; the lots drawn by them."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion import CompositionError, HookError
from onion.multitask.choice import WeightedChoice, never_finishes
from onion.multitask.strategies import (
    ByLoss,
    BySize,
    ByStep,
    MixRatio,
    RoundRobin,
    Strategy,
    TaskInfo,
    Temperature,
    Uniform,
    Weights,
)

TASKS = {"a": TaskInfo(1.0, 100), "b": TaskInfo(0.5, 25), "c": TaskInfo(2.0, 4)}
NAMES = list(TASKS)


def begun(strategy, tasks=TASKS):
    strategy.check(tasks)
    strategy.begin(tasks)
    return strategy


def resumed(strategy, fresh):
    """The fresh one with the other's state, as it comes back from a file."""
    begun(fresh).load_state_dict(json.loads(json.dumps(strategy.state_dict())))
    return fresh


@pytest.mark.parametrize(
    ("strategy", "shares"),
    [
        (MixRatio(), {"a": 1.0, "b": 0.5, "c": 2.0}),
        (Uniform(), {"a": 1.0, "b": 1.0, "c": 1.0}),
        (BySize(), {"a": 1.0, "b": 0.25, "c": 0.04}),
        (Temperature(1), {"a": 1.0, "b": 0.25, "c": 0.04}),
        (Temperature(2), {"a": 1.0, "b": 0.5, "c": 0.2}),
        (Weights({"a": 3, "b": 1, "c": 2}), {"a": 3, "b": 1, "c": 2}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_weights_that_never_change(strategy, shares):
    begun(strategy)
    for step in (0, 1, 10**9):
        assert strategy.weights(step, NAMES) == pytest.approx(shares)
    assert strategy.state_dict() == {}


@pytest.mark.parametrize("temperature", [0, -1, math.nan, math.inf, "2", True, None])
def test_a_temperature_is_above_0(temperature):
    with pytest.raises(CompositionError, match=r"Temperature: temperature must be > 0"):
        Temperature(temperature).check(TASKS)


STREAM = {"a": TaskInfo(1.0, 3), "b": TaskInfo(1.0, None)}


@pytest.mark.parametrize("strategy", [BySize(), Temperature(3)])
def test_a_stream_has_no_size(strategy):
    with pytest.raises(CompositionError, match="needs the size of the task 'b', which is a stream"):
        strategy.check(STREAM)


@pytest.mark.parametrize("strategy", [MixRatio(), Uniform(), RoundRobin(), ByLoss(), ByStep(lambda step: "b")])
def test_other_strategies_take_streams(strategy):
    assert begun(strategy, STREAM).weights(0, ["a", "b"])


@pytest.mark.parametrize(
    "strategy",
    [
        Temperature(1e-3),
        *(Weights({"a": 1, "b": each, "c": 1}) for each in (0, -1, math.inf, math.nan, "1", None, True)),
    ],
)
def test_a_weight_is_a_number_above_0(strategy):
    told = r" gives the task 'b' the weight .*, so it would never be"
    with pytest.raises(CompositionError, match=f"{type(strategy).__name__}{told}"):
        strategy.check(TASKS)


@pytest.mark.parametrize("weights", [{}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1, "d": 1}])
def test_weights_are_those_of_the_tasks(weights):
    with pytest.raises(CompositionError, match=r"Weights are given for .*; the tasks are a, b, c"):
        Weights(weights).check(TASKS)


def drawn(robin, names, count):
    return "".join(next(iter(robin.weights(0, names))) for _ in range(count))


def test_round_robin_takes_turns():
    """A check in between changes nothing: a Runner that is made of another one during a run checks its items too."""
    robin = begun(RoundRobin())
    assert drawn(robin, NAMES, 4) == "abca"
    robin.check(TASKS)
    assert drawn(robin, NAMES, 3) == "bca"
    robin.begin(TASKS)
    assert drawn(robin, NAMES, 2) == "ab"
    robin = begun(RoundRobin())
    assert drawn(robin, ["a", "c"], 3) == "aca"
    assert drawn(robin, NAMES, 3) == "bca"
    assert drawn(robin, ["a"], 2) == "aa"
    assert drawn(robin, NAMES, 1) == "b"


def test_a_function_of_the_step_gives_names_or_weights():
    names = begun(ByStep(lambda step: "ab"[step % 2]))
    assert [names.weights(step, NAMES) for step in range(3)] == [{"a": 1.0}, {"b": 1.0}, {"a": 1.0}]
    weights = begun(ByStep(lambda step: {"a": 1.0, "b": 0.5**step}))
    assert weights.weights(3, NAMES) == {"a": 1.0, "b": 0.125}


WRONG = [
    (None, "gave a NoneType; it gives the name of a task, or a dict of weights by name"),
    (1, "gave a int"),
    ("d", "gave the task 'd'; there are a, b, c"),
    ({"a": 1, "d": 1}, "gave the task 'd'"),
    ({"a": -1}, "gave the task 'a' the weight -1"),
    ({"a": "1"}, "gave the task 'a' the weight '1'"),
    ({"a": None}, "gave the task 'a' the weight None"),
    ({"a": math.nan}, "gave the task 'a' the weight nan"),
    ({"a": math.inf}, "gave the task 'a' the weight inf"),
    ({"a": 0.0}, "gave no task a weight above 0"),
    ({}, "gave no task a weight above 0"),
]


@pytest.mark.parametrize(("answer", "said"), WRONG)
def test_a_function_that_gives_something_else_is_refused_at_once_or_when_it_does(answer, said):
    with pytest.raises(CompositionError, match=f"ByStep: at step 0 the function {said}"):
        ByStep(lambda step: answer).check(TASKS)
    strategy = begun(ByStep(lambda step: answer if step == 7 else "a"))
    strategy.weights(6, NAMES)
    with pytest.raises(HookError, match=f"ByStep: at step 7 the function {said}"):
        strategy.weights(7, NAMES)


def after(strategy, **losses):
    """A ByLoss that has taken note of the losses of tasks."""
    begun(strategy)
    for name, each in losses.items():
        for loss in each:
            strategy.note(name, loss)
    return strategy.weights(len(losses), NAMES)


EQUAL = {"a": 1.0, "b": 1.0, "c": 1.0}


@pytest.mark.parametrize(
    ("strategy", "losses", "weights"),
    [
        (ByLoss(), {}, EQUAL),
        (ByLoss(rate=0.5, lag=0), {"a": [8.0, 4.0, 2.0], "b": [0.7]}, EQUAL | {"a": 0.5}),  # averages 8, 6, 4
        (ByLoss(power=0, rate=1, least=0.01, lag=0), {"a": [4.0, 1.0]}, EQUAL),
        (ByLoss(power=0.5, rate=1, least=0.01, lag=0), {"a": [4.0, 1.0]}, EQUAL | {"a": 0.5}),
        (ByLoss(power=2, rate=1, least=0.01, lag=0), {"a": [4.0, 1.0]}, EQUAL | {"a": 0.0625}),
        (ByLoss(lag=0), {"a": [0.0, 5.0], "b": [-1.0, 5.0]}, EQUAL),
        *((ByLoss(rate=1, least=0.2, lag=0), {"a": [1e-10, low]}, EQUAL | {"a": 0.2}) for low in (0.0, -3e-10, 1e-19)),
        (ByLoss(rate=1, least=0.2, lag=0), {"a": [1e-10, 1e290]}, EQUAL | {"a": 5.0}),
        *(
            (ByLoss(rate=1, lag=0), {"a": [odd, 4.0, odd, 2.0, odd]}, EQUAL | {"a": 0.5})
            for odd in (math.nan, math.inf, -math.inf)
        ),
    ],
)
def test_weights_follow_recent_losses_relative_to_the_first(strategy, losses, weights):
    """Within the bounds of ``least``; not of a first loss <= 0, and not of losses that are not finite."""
    assert after(strategy, **losses) == weights


def test_a_loss_is_read_so_many_batches_after_its_own_and_not_before():
    strategy, read = begun(ByLoss(lag=3)), []
    for place in range(10):
        loss = {"__float__": lambda loss, place=place: read.append(place) or float(place + 1)}
        strategy.note("a", type("Loss", (), loss)())
        strategy.weights(place, NAMES)
        assert read == list(range(place - 2))


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.floats(allow_nan=False, width=32)), max_size=30),
    st.integers(0, 30),
    st.integers(0, 5),
)
def test_it_goes_on_where_it_was(losses, place, lag):
    strategy = begun(ByLoss(lag=lag))
    for name, loss in losses[:place]:
        strategy.note(name, loss)
    other = resumed(strategy, ByLoss(lag=lag))
    for name, loss in losses[place:]:
        strategy.note(name, loss)
        other.note(name, loss)
        assert other.weights(0, NAMES) == strategy.weights(0, NAMES)
    assert other.state_dict() == strategy.state_dict()


NO_NUMBERS = [{"rate": "1"}, {"least": None}, {"power": math.inf}, {"power": math.nan}, {"lag": 1.5}, {"lag": "8"}]
OUT_OF_RANGE = [{"rate": 0}, {"rate": 1.1}, {"least": 0}, {"least": 2}, {"power": -1}, {"lag": -1}]


@pytest.mark.parametrize("wrong", [*OUT_OF_RANGE, *NO_NUMBERS])
def test_arguments_that_make_no_sense_are_refused(wrong):
    with pytest.raises(CompositionError, match="ByLoss: rate="):
        ByLoss(**wrong).check(TASKS)


def test_a_strategy_of_ones_own_overrides_weights_alone():
    class First(Strategy):
        def weights(self, step, names):
            return {names[0]: 1.0}

    strategy = begun(First())
    strategy.note("a", 1.0)
    strategy.load_state_dict(strategy.state_dict())
    assert strategy.weights(0, NAMES) == {"a": 1.0}


def test_what_a_strategy_cannot_work_with_is_refused_at_once():
    with pytest.raises(CompositionError, match=r"Weights takes one number per task, .* not a list"):
        Weights([1, 2])
    with pytest.raises(CompositionError, match=r"ByStep takes a function, .* not a str"):
        ByStep("a")
    with pytest.raises(TypeError, match="weights"):
        Strategy()


PLANNED = {"a": 100, "b": 50, "c": 200}


def without_end(strategy, planned=PLANNED, targets="ab", stop=False):
    facts = {name: TaskInfo(1.0, count) for name, count in planned.items()}
    return never_finishes(strategy, facts, planned, list(targets), stop)


@pytest.mark.parametrize("strategy", [MixRatio(), Uniform(), BySize(), Temperature(3), RoundRobin(), ByLoss()])
@pytest.mark.parametrize("stop", [False, True])
def test_a_strategy_that_leaves_no_task_out_ends(strategy, stop):
    assert without_end(strategy, stop=stop) is None


@pytest.mark.parametrize(
    ("b", "c", "stop", "expected"),
    [
        # 50 batches of b, whose share is about b / 1.4, come within 1000 * 350 batches from b = 2.0e-4 on.
        (1e-300, 0.4, False, "b"),
        (1.9e-4, 0.4, False, "b"),
        (2.1e-4, 0.4, False, None),
        (1.0, 0.4, False, None),
        # Targets that stop do not delay others; auxiliary tasks do.
        (1e-9, 1e-9, True, None),
        (1e-9, 1e-9, False, "b"),
        (1e-9, 1.0, True, "b"),
    ],
)
def test_a_weight_is_too_small_where_a_thousand_plans_are_not_enough(b, c, stop, expected):
    assert without_end(Weights({"a": 1.0, "b": b, "c": c}), stop=stop) == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda step: "c", "a"),
        (lambda step: {"a": 1.0, "b": 0.0}, "b"),
        (lambda step: "a" if step < 10**5 else "b", None),
        (lambda step: "b" if step % 10**4 == 9999 else "a", "b"),
        (lambda step: "b" if step % 1000 == 999 else "a", None),
        (lambda step: {"a": 1.0, "b": 0.9**step}, "b"),
        (lambda step: "aab"[step], None),
        (lambda step: {0: "a"}[step], None),
    ],
)
def test_a_function_is_followed_far(function, expected):
    assert without_end(ByStep(function)) == expected


def test_a_long_plan_is_followed_in_few_questions_and_a_wrong_answer_found():
    asked = []
    planned = {"a": 10**7, "b": 10**7}
    assert without_end(ByStep(lambda step: asked.append(step) or "a"), planned) == "b"
    assert asked[:1000] == list(range(1000))
    assert asked[-1] > 10**10
    assert len(asked) < 20_000
    with pytest.raises(CompositionError, match="at step 7 the function gave the task 'z'"):
        without_end(ByStep(lambda step: "z" if step == 7 else "a"))


def choosing(strategy, seed=0):
    choice = WeightedChoice(strategy)
    choice.begin(TASKS, seed)
    return choice


def lots(choice, steps):
    return "".join(choice.draw(choice.weights(step, NAMES)) for step in steps)


def test_lots_come_as_often_as_they_weigh_and_are_of_the_seed():
    choice = choosing(Weights({"a": 1, "b": 6, "c": 3}))
    drawn = lots(choice, range(10_000))
    assert choice.expected == pytest.approx({"a": 1000, "b": 6000, "c": 3000})
    for name, expected in choice.expected.items():
        assert drawn.count(name) == pytest.approx(expected, abs=150), "three standard deviations"
    assert choice.chosen == drawn[-1]
    drawn = lots(choosing(Uniform(), seed=1), range(50))
    assert lots(choosing(Uniform(), seed=1), range(50)) == drawn
    assert lots(choosing(Uniform(), seed=2), range(50)) != drawn


def test_only_tasks_that_may_be_drawn_and_have_a_weight_are_in_the_lot():
    choice = choosing(ByStep(lambda step: {"a": 1.0, "b": 2.0, "c": 0.0}))
    assert choice.weights(0, NAMES) == {"a": 1.0, "b": 2.0}
    assert choice.weights(1, ["b", "c"]) == {"b": 2.0}
    assert choice.weights(2, ["c"]) == {}
    assert choice.latest == {"a": 1.0, "b": 2.0, "c": 0.0}
    choice.set_weight("b", 0.25)  # in the place of the strategy's
    assert choice.latest["b"] == 0.25
    assert choice.weights(3, NAMES) == {"a": 1.0, "b": 0.25}


@pytest.mark.parametrize("strategy", [Uniform, RoundRobin, ByLoss])
def test_lots_go_on_where_they_were_saved(strategy):
    choice, other = choosing(strategy(), seed=3), choosing(strategy(), seed=4)
    choice.set_weight("c", 0.5)
    lots(choice, range(7))
    saved = json.loads(json.dumps(choice.state_dict()))
    other.load_state_dict(saved)
    assert other.chosen == choice.chosen
    assert lots(other, range(7, 40)) == lots(choice, range(7, 40))
    assert other.state_dict() == choice.state_dict() != saved


def test_lots_that_were_saved_before_weights_could_be_set_go_on_too():
    choice = choosing(Uniform())
    saved = choice.state_dict()
    del saved["by_hand"], saved["chosen"]
    other = choosing(Uniform(), seed=1)
    other.load_state_dict(saved)
    assert lots(other, range(20)) == lots(choice, range(20))
