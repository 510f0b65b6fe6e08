"""What items ask of the processes that run an onion together, in a single process with several pieces."""

import random

import numpy as np
import pytest

from onion import State
from onion.data.cut import Cut
from onion.data.making import FromNumbers, InPieces
from onion.device import paddle
from onion.distributed.group import Group
from onion.errors import HookError, RankError


def drawn(group, state, examples, more=False):
    """Draw a batch of examples; return it as a run sees it."""
    pieces = group.cut.pieces(examples, list)
    group.note_drawn(state, pieces, more)
    state.batch = pieces.own[0].batch
    return state.batch


def noise(group, state, **place):
    """The batch of each piece, with a random number of each generator."""
    return [
        (piece.number, state.batch, random.random(), np.random.random(), paddle().rand([1]).item())
        for piece in group.each_piece(state, **place)
    ]


def test_each_piece_is_the_batch_in_turn_and_draws_the_same_numbers_whoever_has_it():
    state, all_of_them, second = State(), Group(0, 1, 2, None), Group(1, 2, 2, None)
    batch = drawn(all_of_them, state, [1, 2, 3])
    both = noise(all_of_them, state)
    assert [each[:2] for each in both] == [(0, [1, 2]), (1, [3])]
    assert state.batch is batch
    drawn(second, state, [1, 2, 3])
    assert noise(second, state) == both[1:]


def test_other_places_draw_other_numbers_and_outside_nothing_is_drawn():
    state, group = State(), Group(0, 1, 2, None)
    drawn(group, state, [1, 2])
    paddle().seed(1)
    before = paddle().get_rng_state()[0].__getstate__(), random.getstate()
    here = noise(group, state)
    assert (paddle().get_rng_state()[0].__getstate__(), random.getstate()) == before
    assert here == noise(group, state)
    assert here != noise(group, state, place=(1,))
    assert here != noise(group, state, seed=1)
    state.batch_id = 1
    assert here != noise(group, state)


def test_a_piece_without_an_example_is_run_only_where_there_is_no_other():
    state, all_of_them, second = State(), Group(0, 1, 2, None), Group(1, 2, 2, None)
    drawn(all_of_them, state, [1])
    assert [piece.weight for piece in all_of_them.each_piece(state)] == [1]
    drawn(second, state, [1])
    assert [(piece.weight, state.batch) for piece in second.each_piece(state)] == [(0, [1])]


def test_a_run_within_a_run_has_pieces_of_its_own():
    outer, inner, group = State(), State(), Group(0, 1, 2, None)
    drawn(group, outer, [1, 2])
    drawn(group, inner, [5, 6, 7])
    assert [outer.batch for _ in group.each_piece(outer)] == [[1], [2]]


def test_the_batches_of_one_update_weigh_what_all_their_pieces_weigh():
    state, group = State(), Group(0, 1, 2, None)
    batches = [drawn(group, state, [1, 2, 3]), drawn(group, state, [4], more=True)]
    assert group.weights(state, batches, len) == [3, 1]


def test_a_batch_that_was_replaced_is_refused_where_there_are_several_pieces():
    state = State()
    alone, several = Group(0, 2, 2, None), Group(0, 1, 2, None)
    for group in (alone, several):
        drawn(group, state, [1, 2])
        state.batch = ["another"]
        if group is alone:
            assert [state.batch for _ in group.each_piece(state)] == [["another"]]
        else:
            with pytest.raises(HookError, match=r"replaced the batch.*start as many processes as a batch has pieces"):
                next(group.each_piece(state))


def place(**other):
    return {"at": {"place": "the next batch", "pass": 0, "batch": 3, "task": "a", **other}}


@pytest.mark.parametrize(
    ("there", "told"),
    [
        (place(task="b"), "out of step in pass 0, batch 3: rank 1 is at task b; the others are at task a"),
        (place(batch=4), "out of step in pass 0: rank 1 is at batch 4; the others are at batch 3"),
        (place(more=True), "rank 1 is at more True; the others are at more none"),
        (
            {"weights": [1]},
            "rank 1 is at the exchange of weights, pass none, batch none, task none; the others are at the",
        ),
    ],
)
def test_the_rank_that_is_out_of_step_is_named_with_what_differs(there, told):
    with pytest.raises(RankError, match=told):
        Group(0, 3, 3, None).refuse_out_of_step([place(), there, place()])


def test_batches_of_other_examples_differ():
    make = InPieces(FromNumbers("abcd", list), Cut(2, 0, 1))
    one, same, other = (make(numbers)[1].crc32 for numbers in ([3, 1, 2], [3, 1, 2], [3, 2, 1]))
    assert one == same != other


def test_a_group_cuts_a_batch_for_each_rank():
    assert [Group(rank, 2, 4, None).cut for rank in (0, 1)] == [Cut(4, 0, 2), Cut(4, 2, 2)]


def test_of_two_ranks_nobody_knows_which_is_out_of_step():
    with pytest.raises(RankError, match=r"in pass 0, batch 3: rank 0 is at task a; rank 1 is at task b\."):
        Group(0, 2, 2, None).refuse_out_of_step([place(), place(task="b")])
