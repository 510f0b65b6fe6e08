"""benchmarks/loop: what is told of the rounds; the clock; no time of sides that differ; our own sides run."""

import sys

import pytest

from benchmarks.loop import __main__ as loop
from benchmarks.loop import work
from tests.paths import ROOT

ROUNDS = [
    {
        "onion": {"bare": 100.0, "lean": 104.0, "many": 108.0, "ten": 112.0, "to_tensors": 99.0, "distributed": 104.5},
        "Slow": {"bare": 50.0, "lean": 70.0, "many": 110.0},
        "Quick": {"bare": 50.0, "lean": 53.0, "many": 55.0},
    },
    {
        "onion": {"bare": 100.0, "lean": 106.0, "many": 110.0, "ten": 118.0, "to_tensors": 97.0, "distributed": 105.5},
        "Slow": {"bare": 60.0, "lean": 70.0, "many": 90.0},
        "Quick": {"bare": 50.0, "lean": 53.0, "many": 53.0},
    },
]


SLOW = loop.Peer("Slow", "slow", "bare_slow", "env")
QUICK = loop.Peer("Quick", "quick", "bare_slow")


def by_name(lines):
    return {line.what: line for line in lines}


def test_onion_is_told_above_its_bare_loop_with_its_goals():
    told = by_name(loop.of_onion(ROUNDS))
    assert told["onion, minimal: above it"].values == [4.0, 6.0]
    assert told["onion, minimal: above it"].met
    assert told["onion, ten more items: above it"].values == [12.0, 18.0]
    assert told["onion: an item more"].values == pytest.approx([0.2, 0.2])
    assert told["onion: an item more"].met
    assert told["onion, with `distributed` in one process: above onion, minimal"].values == [0.5, -0.5]
    assert told["bare loop with onion's `to_tensors` for `paddle.to_tensor`: above it"].values == [-1.0, -3.0]
    assert told["onion, minimal: above the bare loop with `to_tensors`"].values == [5.0, 9.0]

    slower = [{"onion": {**each["onion"], "lean": 106.0, "ten": 116.0}} for each in ROUNDS]
    told = by_name(loop.of_onion(slower))
    assert told["onion, minimal: above it"].met is told["onion, ten more items: above it"].met is False


def test_a_peer_is_told_above_its_own_bare_loop():
    assert SLOW.sides == {"bare": ("bare_slow", 0), "lean": ("slow", 0), "many": ("slow", 20)}
    told = by_name(loop.of_peer(SLOW, ROUNDS))
    assert told["Slow: above it"].values == [20.0, 10.0]
    assert told["Slow: a callback more"].values == pytest.approx([2.0, 1.0])


def test_the_verdict_names_the_peers_that_cost_less_and_more_and_those_that_overlap():
    told = "onion's minimal loop beside {} peers, by quartiles of the rounds; a batch: {}; an item or callback: {}."
    assert loop.verdict([SLOW], ROUNDS) == told.format(1, "below all", "below all")
    assert loop.verdict([SLOW, QUICK], ROUNDS) == told.format(2, "below 1, above Quick", "below 1, above Quick")

    overlapping = [{**ROUNDS[i], "Quick": {"bare": 50.0, "lean": 55.0, "many": (58.0, 62.0)[i]}} for i in (0, 1)]
    unclear = "below 0, not told apart from Quick"
    assert loop.verdict([QUICK], overlapping) == told.format(1, unclear, unclear)


def test_every_peer_has_an_environment_and_engines_that_are_there():
    for peer in loop.PEERS.values():
        for engine in (peer.engine, peer.bare):
            module, name = engine.split(".")
            source = (ROOT / "benchmarks" / "loop" / f"{module}.py").read_text(encoding="utf-8")
            assert f'    "{name}": work.Engine(' in source
        requirements = ROOT / "scripts" / "reference_outputs" / f"requirements-{peer.environment}.txt"
        assert peer.environment is None or requirements.is_file()


def test_the_clock_is_of_the_last_calls():
    work.CALLS[:] = [0.0, 5.0, 6.0, 8.0]
    assert work.seconds_between(3) == pytest.approx(1.5)
    assert work.CALLS == []


@pytest.fixture
def engine(monkeypatch):
    """Put an engine there that learns what it is told to."""

    def put(name, learned):
        def train(batches, callbacks):
            for _ in batches:
                work.note_call()
            return work.taken(learned, [0.0])

        module = type(sys)(name)
        module.ENGINES = {"engine": work.Engine(train, list, ["numpy"])}
        monkeypatch.setitem(sys.modules, f"benchmarks.loop.{name}", module)

    return put


def test_all_sides_are_timed_where_they_learn_the_same(engine):
    engine("one", [1.0])
    engine("other", [1.0 + 5e-7])
    ask = work.prepare({"batches": 10, "sides": {"bare": ("one.engine", 0), "lean": ("other.engine", 0)}})
    assert all(set(ask()) == {"bare", "lean"} for _ in range(3))


@pytest.mark.parametrize("learned", [1.1, float("nan")])
def test_no_time_is_told_where_a_side_learns_something_else(engine, learned):
    engine("one", [1.0])
    engine("other", [learned])
    with pytest.raises(SystemExit, match=r"lean ends .* away"):
        work.prepare({"batches": 10, "sides": {"bare": ("one.engine", 0), "lean": ("other.engine", 0)}})


def test_a_small_run_of_onion_alone(capsys):
    assert loop.main(["--rounds", "2", "--batches", "20", "--only"]) == 0
    told = capsys.readouterr().out
    assert "onion, ten more items: above it" in told
    assert "2 rounds on" in told
    assert "with paddlepaddle" in told
