"""What rank 0 wants done between two batches, between threads of one process: it is done by all, or by none."""

import threading
from types import SimpleNamespace

import pytest

from onion import State
from onion.distributed.group import Group
from onion.errors import HookError, RankError
from onion.testing import PlannedError
from tests.distributed.test_channel import connected

PROVIDER = SimpleNamespace(put_back=lambda examples: None)


def groups(ranks):
    return [Group(rank, ranks, ranks, channel) for rank, channel in enumerate(connected(ranks))]


def at_once(*acts):
    """Do something on each rank in a thread; return what each comes to, or its error."""
    found = {}

    def do(rank):
        try:
            found[rank] = acts[rank]()
        except (RankError, PlannedError) as error:
            found[rank] = error

    threads = [threading.Thread(target=do, args=(rank,)) for rank in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[rank] for rank in range(len(acts))]


def failing(rank):
    """Return a function that fails on a rank."""

    def fail():
        raise PlannedError(f"on {rank}")

    return fail


def test_each_rank_gets_what_a_command_comes_to_there():
    ranks = groups(3)
    assert at_once(*(lambda each=each: each.carry_out(lambda: each.rank) for each in ranks)) == [0, 1, 2]


def test_an_error_of_all_ranks_leaves_them_alike():
    ranks = groups(3)
    found = at_once(*(lambda each=each: each.carry_out(failing(each.rank)) for each in ranks))
    assert [str(error) for error in found] == ["on 0", "on 1", "on 2"]
    assert at_once(*(lambda each=each: each.carry_out(lambda: "next") for each in ranks)) == ["next"] * 3


def test_an_error_of_one_rank_is_met_by_all():
    ranks = groups(3)
    acts = [lambda: 0, failing(1), lambda: 2]
    found = at_once(*(lambda each=each: each.carry_out(acts[each.rank]) for each in ranks))
    assert [str(error) for error in found] == ["rank 1: PlannedError: on 1"] * 3
    assert isinstance(found[1].__cause__, PlannedError)


def test_an_error_of_one_rank_is_met_by_those_who_wait_for_it_elsewhere():
    first, second = groups(2)
    found = at_once(lambda: first.gathered(0), lambda: second.carry_out(failing(1)))
    assert [str(error) for error in found] == ["rank 1: PlannedError: on 1"] * 2
    first, second = groups(2)
    state = State()  # which a boundary does not hold
    boundary = first.together(state, iter([]), PROVIDER)
    found = at_once(lambda: boundary.broadcast(), lambda: second.carry_out(failing(1)))
    assert [str(error) for error in found] == ["rank 1: PlannedError: on 1"] * 2


def test_all_get_the_value_of_the_first():
    ranks, states = groups(3), [State() for _ in range(3)]
    _ = [each.together(state, iter([]), PROVIDER) for each, state in zip(ranks, states, strict=True)]

    def told(values):
        return at_once(*(lambda i=i: ranks[i].broadcast(states[i], values[i]) for i in range(3)))

    assert told([["set", {"x": 1}], None, None]) == [["set", {"x": 1}]] * 3
    assert told([None, None, None]) == [None] * 3


@pytest.mark.parametrize("leaving", [0, 1])
def test_what_is_said_while_a_rank_stops_is_not_to_be_done(leaving):
    ranks, states = groups(2), [State(), State()]
    boundaries = [each.together(state, iter([]), PROVIDER) for each, state in zip(ranks, states, strict=True)]
    states[leaving].stop("enough")
    acts = [
        lambda i=i: boundaries[i].leave() if i == leaving else ranks[i].broadcast(states[i], "go") for i in range(2)
    ]
    assert at_once(*acts) == [None, None]
    assert [state.stopped for state in states] == ["enough", "enough"]
    boundaries[1 - leaving].leave()  # without another word: the other one has left


def test_where_the_ranks_do_not_draw_together_nothing_is_broadcast():
    with pytest.raises(HookError, match="does not let the ranks draw batches together; use a DataProvider"):
        Group(0, 2, 2, None).broadcast(State(), None)
