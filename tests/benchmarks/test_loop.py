"""benchmarks/loop: what is told of the rounds; the clock; no time of sides that differ; our own sides run."""

import sys

import pytest

from benchmarks.loop import __main__ as loop
from benchmarks.loop import work
from tests.paths import ROOT


def onion(lean, many, ten, to_tensors):
    return {"bare": 100.0, "lean": lean, "many": many, "ten": ten, "to_tensors": to_tensors}


def peer(bare, lean, many):
    return {"bare": bare, "lean": lean, "many": many}


ROUNDS = [
    {"onion": onion(104.0, 108.0, 112.0, 99.0), "Slow": peer(50.0, 70.0, 110.0), "Quick": peer(50.0, 53.0, 55.0)},
    {"onion": onion(106.0, 110.0, 118.0, 97.0), "Slow": peer(60.0, 70.0, 90.0), "Quick": peer(50.0, 53.0, 53.0)},
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
    assert told["onion: a ring more"].values == pytest.approx([0.2, 0.2])
    assert told["onion: a ring more"].met
    assert told["bare loop with onion's `to_tensors` for `paddle.to_tensor`: above it"].values == [-1.0, -3.0]
    assert told["onion, minimal: above the bare loop with `to_tensors`"].values == [5.0, 9.0]
    rounds = [{"onion": {**each["onion"], "lean": 106.0, "ten": 116.0}} for each in ROUNDS]
    told = by_name(loop.of_onion(rounds))
    assert told["onion, minimal: above it"].met is False
    assert told["onion, ten more items: above it"].met is False


def test_a_peer_is_told_above_its_own_bare_loop():
    told = by_name(loop.of_peer(SLOW, ROUNDS))
    assert told["Slow: above it"].values == [20.0, 10.0]
    assert told["Slow: a callback more"].values == pytest.approx([2.0, 1.0])
    assert SLOW.sides == {"bare": ("bare_slow", 0), "lean": ("slow", 0), "many": ("slow", 20)}


def test_the_verdict_names_the_peers_that_do_not_cost_more_and_those_that_overlap():
    told = "onion's minimal loop beside {} peers, by quartiles of the rounds; a batch: {}; a ring or callback: {}."
    assert loop.verdict([SLOW], ROUNDS) == told.format(1, "below all", "below all")
    assert loop.verdict([SLOW, QUICK], ROUNDS) == told.format(2, "below 1, above Quick", "below 1, above Quick")
    many = [58.0, 62.0]
    rounds = [
        {**each, "Quick": {"bare": 50.0, "lean": 55.0, "many": more}} for each, more in zip(ROUNDS, many, strict=True)
    ]
    assert loop.verdict([QUICK], rounds).endswith(
        "a batch: below 0, not told apart from Quick; a ring or callback: below 0, not told apart from Quick."
    )


def test_every_peer_has_an_environment_and_engines_that_are_there():
    for peer in loop.PEERS.values():
        for engine in (peer.engine, peer.bare):
            module, name = engine.split(".")
            source = (ROOT / "benchmarks" / "loop" / f"{module}.py").read_text(encoding="utf-8")
            assert f'    "{name}": Engine(' in source
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


def test_sides_are_timed_where_they_learn_the_same(engine):
    job = {"batches": 10, "sides": {"bare": ("one.engine", 0), "lean": ("other.engine", 0)}}
    engine("one", [1.0])
    engine("other", [1.0 + 5e-7])
    ask = work.prepare(job)
    assert all(set(ask()) == {"bare", "lean"} for _ in range(3))
    for learned in (1.1, float("nan")):
        engine("other", [learned])
        with pytest.raises(SystemExit, match=r"lean ends .* away"):
            work.prepare(job)


def test_a_small_run_of_onion_alone(capsys):
    assert loop.main(["--rounds", "2", "--batches", "20", "--only"]) == 0
    told = capsys.readouterr().out
    assert "onion, ten more items: above it" in told
    assert "2 rounds on" in told
    assert "with paddlepaddle" in told
