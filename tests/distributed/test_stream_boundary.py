"""A stream that rank 0 reads for all: who is given what, and what happens where a rank stops."""

import threading

import attrs
import pytest

from onion import Runner, State
from onion.distributed.group import Group
from onion.errors import DataError
from tests.distributed.test_channel import connected


class Letters:
    """A stream of two batches of letters; rank 0 has to ask ``waits`` times for each."""

    def __init__(self, group, waits=0):
        self.group, self.waits, self.asked = group, waits, 0
        self.left = ["abcdefg", "hi"]

    def ready(self, timeout):
        assert self.group.rank == 0
        self.asked += 1
        return self.asked % (self.waits + 1) == 0

    def over(self):
        return not self.left

    def take(self):
        batch = self.left.pop(0)
        cuts = [self.group.cut.of_rank(rank) for rank in range(self.group.world_size)]
        return [{"examples": len(batch), "parts": cut.parts(batch)} for cut in cuts]

    def pieces(self, given):
        return self.group.cut.made(given["parts"], given["examples"], "".join)

    def __length_hint__(self):
        return NotImplemented


class Broken(Letters):
    def ready(self, timeout):
        raise OSError("the file is gone")


@attrs.define
class Rank:
    """A rank of three that draws in a thread: what it drew, and why it ended."""

    group: Group
    stream: Letters
    batches: list = attrs.field(factory=list)
    state: State = attrs.field(factory=lambda: State(runner=Runner()))
    error: Exception | None = None

    def draw(self, stop_after=None):
        boundary = self.group.scattered(self.state, self.stream)
        try:
            for batch in boundary:
                self.batches.append(batch)
                self.state.batch_id += 1
                if len(self.batches) == stop_after:
                    self.state.stop("enough")
            boundary.leave()
        except Exception as error:
            self.error = error


def drawn(kind=Letters, stops=None, **settings):
    """Let three ranks draw; ``stops``: rank -> after how many batches it stops."""
    groups = [Group(channel.rank, 3, 3, channel) for channel in connected(3)]
    ranks = [Rank(group, kind(group, **settings)) for group in groups]
    threads = [threading.Thread(target=each.draw, args=((stops or {}).get(each.group.rank),)) for each in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ranks


@pytest.mark.parametrize("waits", [0, 3])
def test_each_rank_has_its_pieces_and_all_end_together(waits):
    ranks = drawn(waits=waits)
    assert [rank.error for rank in ranks] == [None] * 3
    assert [rank.batches for rank in ranks] == [["abc", "h"], ["de", "i"], ["fg", "h"]]
    assert ranks[0].stream.asked == 3 * (waits + 1)
    assert [[piece.weight for piece in rank.group._drawn[rank.state][0].own] for rank in ranks] == [[0.5], [0.5], [0]]


@pytest.mark.parametrize("rank", [0, 1])
def test_where_a_rank_stops_no_batch_is_taken_for_nothing(rank):
    ranks = drawn(stops={rank: 1})
    assert [each.batches for each in ranks] == [["abc"], ["de"], ["fg"]]
    assert ranks[0].stream.left == ["hi"]
    assert [each.state.stopped for each in ranks] == ["enough"] * 3


def test_an_error_of_the_source_is_told_on_all_ranks():
    ranks = drawn(Broken)
    assert [type(each.error) for each in ranks] == [OSError, DataError, DataError]
    assert "rank 0: OSError: the file is gone" in str(ranks[1].error)
    assert all(each.state.data_error is each.error for each in ranks)
