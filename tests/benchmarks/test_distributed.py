"""benchmarks/distributed and benchmarks/channel: what is told of the rounds, the calculation, and small runs."""

import pytest

from benchmarks import channel
from benchmarks.distributed import __main__ as distributed
from benchmarks.distributed import scaling, scaling_page
from benchmarks.frame.processes import FailedError
from onion.distributed.sums import BUCKET


def rank(number, seconds, control=0.0, losses=(1.0, 0.5)):
    calls = {"collectives": [[4_000_000, 0.010 * (number + 1)]] * 2, "control": [[70, control]] * 2}
    answer = {"rank": number, "steps": 2, "seconds": seconds, "processor": 4.0, "losses": losses, "calls": calls}
    return {**answer, "peak_bytes": (100 + number) << 20}


ROUND = {
    distributed.PLAIN: {"ranks": [rank(0, [1.0, 3.0], 0.008), rank(1, [2.0, 2.0], 0.001)]},
    distributed.APART: {"ranks": [rank(0, [1.0, 1.0], losses=(9.0, 9.0)), rank(1, [1.0, 1.0], losses=(9.0, 9.0))]},
}


def test_a_step_is_over_with_the_last_rank_and_a_transfer_is_that_of_who_waits_least():
    told = {figure.what: figure.values for figure in distributed.figures_of([ROUND], batch=10)}
    side = distributed.PLAIN
    assert told[f"speed: {side}"] == [4.0]
    assert told[f"processor time of a step: {side}"] == [4.0]
    assert told[f"peak memory of a rank: {side}"] == [101.0]
    assert told[f"collectives, a step and rank: {side}"] == [4.0]
    assert told[f"collectives, a step: {side}"] == pytest.approx([10.0])
    assert told[f"control, a step: {side}"] == pytest.approx([1.0])
    assert told[f"a step beside {distributed.APART}: {side}"] == [2.5]


def test_no_time_is_told_of_sides_with_other_losses():
    distributed.require_equal([ROUND])  # who exchanges nothing learns something else
    other = {**ROUND, distributed.FLEET: {"ranks": [rank(0, [1.0, 1.0], losses=(1.0, 0.6))]}}
    with pytest.raises(FailedError, match="fleet does not do the work of onion, two processes"):
        distributed.require_equal([other])


@pytest.mark.ranks
def test_a_small_run(capsys):
    shape = ["--batch", "4", "--length", "8", "--layers", "1", "--width", "32", "--steps", "3"]
    assert distributed.main(["--rounds", "1", "--only", "exact", "paddle", "apart", *shape]) == 0
    assert "a step beside paddle.DataParallel" not in capsys.readouterr().out  # of the plain side only


@pytest.mark.parametrize("differs", [False, True])
def test_an_exchange_is_timed_with_ranks_that_say_the_same_or_not(differs):
    wall, busy = channel.exchanged(3, 2, differs)
    assert wall > 0
    assert busy >= 0


def test_a_sum_is_bound_by_the_slowest_network_between_ranks():
    size = 4.0 * BUCKET
    assert scaling.all_reduce(size, 2, 10) == pytest.approx(size / scaling.NVLINK + 2 * 4 * scaling.LATENCY)
    assert scaling.all_reduce(size, 16, 10) == pytest.approx(1.875 * size / 1.25e9, rel=0.02)
    assert scaling.all_reduce(size, 1000, 200) < 2 * size / 25e9 + 999 * 2 * 4 * scaling.LATENCY  # a tree


def test_the_sum_of_exact_mode_gives_and_takes_one_after_the_other():
    size = 4.0 * BUCKET
    latency = 2 * 2 * 4 * scaling.LATENCY
    assert scaling.exact_sum(size, 8, 10) == pytest.approx(2 * 1.75 * size / scaling.NVLINK + 3 * latency)
    outside = 2 * 2 * (1 / 8 - 1 / 16) * 8 * size / 1.25e9
    assert scaling.exact_sum(size, 16, 10) == pytest.approx(2 * 1.75 * size / scaling.NVLINK + outside + 4 * latency)


def test_a_step_names_what_takes_most_of_the_rest():
    found = scaling.Step(compute=6.0, sums=1.0, control=2.0, saving=0.5, reading=0.5)
    assert (found.whole, found.efficiency, found.bottleneck) == (10.0, 0.6, "the control channel")
    assert scaling.share(found, during=True) == pytest.approx(6 / 9)


def test_an_exchange_between_the_measured_numbers_is_a_share_of_the_next_one():
    assert scaling.exchange(16, {8: 1.0, 64: 8.0}) == 2.0


def test_the_page_is_made_of_what_was_measured():
    made = scaling_page.page(scaling.measured_channel())
    assert scaling_page.PAGE.read_text(encoding="utf-8") == made, "run make figures"
