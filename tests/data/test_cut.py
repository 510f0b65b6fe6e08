"""The pieces of a batch: what each holds, and what it weighs."""

import pickle

import pytest

from onion.data.cut import Cut
from onion.data.loader import Loader


@pytest.mark.parametrize("examples", [1, 3, 8, 13])
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_a_piece_is_the_same_whoever_reads_it(examples, processes):
    each = 4 // processes
    cuts = [Cut(4, rank * each, each) for rank in range(processes)]
    own = [piece for cut in cuts for piece in cut.pieces(range(examples), list).own]
    assert [piece.number for piece in own] == [0, 1, 2, 3]
    assert [piece.batch for piece in own if piece.weight] == [
        piece.batch for piece in Cut(4, 0, 4).pieces(range(examples), list).own if piece.weight
    ]
    assert [number for piece in own if piece.weight for number in piece.batch] == list(range(examples))
    assert sum(piece.weight for piece in own) == pytest.approx(1)


def test_a_piece_without_an_example_weighs_nothing_and_can_be_run():
    empty = Cut(4, 3, 1).pieces([5, 6], list).own[0]
    assert (empty.weight, empty.batch) == (0, [5])


@pytest.mark.parametrize("source", [list(range(10)), lambda: iter(range(10))])
def test_a_loader_gives_the_pieces_of_this_process(source):
    loader = Loader(source, 4, collate=list)
    loader.cut = Cut(2, 1, 1)
    given = [*loader.batches(0)]
    assert [(pieces.examples, pieces.own[0].batch) for pieces in given] == [(4, [2, 3]), (4, [6, 7]), (2, [9])]


def test_a_batch_can_be_put_back():
    batches = Loader(list(range(10)), 4, collate=list).batches(0)
    next(batches)
    batches.put_back(4)
    assert (batches.given, batches.examples, len(batches)) == (0, 0, 3)


def test_a_cut_can_be_sent_to_a_worker():
    assert pickle.loads(pickle.dumps(Cut(2, 1, 1))) == Cut(2, 1, 1)
