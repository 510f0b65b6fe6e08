"""The control channel, between threads of one process: what ranks hear of each other, and of who is missing."""

import json
import threading
from multiprocessing import Pipe

import pytest

from onion.distributed.channel import FAILED, GONE, Channel
from onion.errors import RankError
from tests.patience import PATIENCE


def connected(ranks, timeout=60):
    """Return the channel of each rank."""
    pairs = [Pipe() for _ in range(1, ranks)]
    first = Channel(0, {rank: ours for rank, (ours, _) in enumerate(pairs, 1)}, timeout)
    return [first, *(Channel(rank, {0: theirs}, timeout) for rank, (_, theirs) in enumerate(pairs, 1))]


def exchanged(channels, messages):
    """Return what each rank hears, or the error that it meets; a rank without a message says nothing."""
    heard = {}

    def say(rank):
        try:
            heard[rank] = channels[rank].exchange(messages[rank])
        except RankError as error:
            heard[rank] = str(error)

    threads = [threading.Thread(target=say, args=(rank,)) for rank in messages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [heard[rank] for rank in sorted(heard)]


def test_ranks_that_say_the_same_hear_so():
    assert exchanged(connected(3), {rank: {"at": {"place": "here"}} for rank in range(3)}) == [None, None, None]


def test_ranks_that_say_something_else_hear_it_all_in_order():
    messages = {rank: {"rank": rank} for rank in range(3)}
    assert exchanged(connected(3), messages) == [[*messages.values()]] * 3


@pytest.mark.parametrize("failed", [0, 1])
def test_all_hear_of_the_rank_that_has_failed(failed):
    channels = connected(3)
    channels[failed].fail("step 7: ValueError: trouble")
    others = {rank: {} for rank in range(3) if rank != failed}
    told = exchanged(channels, others)
    assert told == [f"rank {failed}: step 7: ValueError: trouble"] * 2


def test_all_hear_of_the_rank_that_is_gone():
    channels = connected(3)
    channels[2]._others[0].close()  # as the system does when its process ends
    assert exchanged(channels, {0: {}, 1: {}}) == [f"rank 2: {GONE}"] * 2


def test_a_rank_that_is_late_is_named():
    channels = connected(3)
    channels[1]._others[0].send_bytes(b"{}")
    with pytest.raises(RankError, match=r"^rank 2: did not come within 0\.01 seconds$"):
        channels[0].exchange({}, timeout=0.01)
    assert json.loads(channels[1]._answer(PATIENCE))[2] == {FAILED: "did not come within 0.01 seconds"}


def test_a_rank_that_fails_after_it_has_spoken_is_not_waited_for():
    channels = connected(3)
    channels[1]._others[0].send_bytes(b"{}")
    channels[1].fail("step 7: ValueError: trouble")
    assert exchanged(channels, {0: {}}) == ["rank 1: step 7: ValueError: trouble"]  # rank 2 says nothing


def test_what_many_ranks_say_is_in_order():
    messages = {rank: {"rank": rank} for rank in range(40)}
    assert exchanged(connected(40), messages) == [[*messages.values()]] * 40


def handed(channels, messages, ranks):
    """Return what some ranks are handed, or the error that they meet."""
    found = {}

    def take(rank):
        try:
            found[rank] = channels[rank].scatter(messages if rank == 0 else ())
        except RankError as error:
            found[rank] = str(error)

    threads = [threading.Thread(target=take, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[rank] for rank in ranks]


def test_rank_0_hands_each_rank_its_own():
    messages = [{"rank": rank, "text": "x" * 10**6} for rank in range(3)]  # more than a socket holds
    assert handed(connected(3), messages, range(3)) == messages


def test_nothing_is_handed_out_where_rank_0_has_failed():
    channels = connected(3)
    channels[0].fail("trouble")
    assert handed(channels, (), [1, 2]) == ["rank 0: trouble"] * 2
    channels = connected(3, timeout=0.01)
    assert handed(channels, (), [1, 2]) == ["rank 0: did not answer within 0.02 seconds"] * 2
