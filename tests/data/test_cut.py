"""The pieces of a batch: what each holds, and what it weighs."""

import pickle
import random

import pytest

from onion.data.cut import Cut
from onion.data.loader import Loader
from tests.data.computed import Squares


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


class Told:
    """A stream of numbers that need not make all of them, and tells which it did not."""

    def __len__(self):
        return 10

    def __iter__(self):
        return iter(range(10))

    def skipping(self, skipped):
        self.skipped = [place for place, skip in enumerate(skipped) if skip]
        return (None if skip else place for place, skip in enumerate(skipped))


@pytest.mark.parametrize(("buffer", "start"), [(None, 0), (None, 1), (3, 0), (3, 1)])
def test_a_stream_makes_no_examples_of_pieces_of_other_processes(buffer, start):
    def batches(cut):
        loader = Loader(source, 4, shuffle_buffer=buffer, seed=3, collate=list)
        loader.cut = cut
        return [[piece.batch for piece in pieces.own if piece.weight] for pieces in loader.batches(1, start)]

    source = Told()
    whole = batches(Cut(4, 0, 4))
    assert sum(map(len, whole)) == (10 if start == 0 else 6)  # pieces of one example each
    made = []
    for rank in range(2):
        own = batches(Cut(4, 2 * rank, 2))
        made += [one for batch in own for (one,) in batch]
        assert [batch[2 * rank : 2 * rank + 2] for batch in whole] == own
        assert len(source.skipped) >= 10 - len(made)
    assert sorted(made) == sorted(one for batch in whole for (one,) in batch)


@pytest.mark.parametrize("settings", [{"prefetch": 0}, {"num_workers": 1}])
def test_what_is_drawn_while_a_piece_is_made_depends_on_its_place_alone(settings):
    def drawn(cut):
        loader = Loader(Squares(random=True), 4, **settings)
        loader.cut = cut
        return [(piece.number, piece.batch["x"].tolist()) for pieces in loader.batches(1) for piece in pieces.own]

    random.seed(3)
    whole, after = drawn(Cut(2, 0, 2)), random.random()
    assert sorted(drawn(Cut(2, 0, 1)) + drawn(Cut(2, 1, 1))) == sorted(whole)
    random.seed(3)
    assert random.random() == after  # what the run itself draws is the same in any number of processes
