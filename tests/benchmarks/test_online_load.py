"""benchmarks/online_load: the samples, a run in each kind of way, what a page makes of figures."""

import numpy as np
import pytest

from benchmarks.frame.processes import FailedError
from benchmarks.online_load import __main__ as load
from benchmarks.online_load import client, training
from onion.models.config import EncoderConfig

WAYS = {way.name: way for way in training.WAYS}


@pytest.fixture
def tiny():
    """A tiny encoder with the vocabulary of the samples."""
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    return training.Training(EncoderConfig(vocab_size=client.VOCABULARY, max_position_embeddings=80, **shape))


def test_samples_are_as_long_as_those_of_sst_2():
    samples = client.made_up(3200, seed=1)
    lengths = np.array([len(each["ids"]) for each in samples])
    assert 12 < lengths.mean() < 14
    assert 30 < lengths.reshape(-1, 32).max(1).mean() < 45
    assert (lengths.min(), lengths.max() <= 66) == (3, True)
    assert {each["label"] for each in samples} == {0, 1}
    assert client.made_up(5, seed=1) == client.made_up(5, seed=1)
    assert client.made_up(5, seed=1) != client.made_up(5, seed=2)


def test_every_round_has_all_ways_and_there_and_back():
    rounds = [training.order(number) for number in range(2 * len(training.WAYS))]
    assert all(sorted(each.name for each in one) == sorted(each.name for each in training.WAYS) for one in rounds)
    places = [one.index(training.OFF) for one in rounds]
    assert set(places) == set(range(len(training.WAYS)))
    assert {one + other for one, other in zip(places[::2], places[1::2], strict=True)} == {len(training.WAYS) - 1}


@pytest.mark.parametrize(
    ("name", "steps"), [("off", 3), ("idle", 3), ("watched", 300), ("http 100", 60), ("spool 1", 60), ("commands", 150)]
)
def test_batches_are_counted_while_a_client_works(tiny, name, steps):
    told = tiny.run(WAYS[name], 1, steps)
    heard = told["client"]
    assert len(told["batches"]) == steps
    assert min(told["batches"]) > 0
    assert told["processor"] > 0
    if name in ("off", "idle"):
        assert heard is None
    elif name == "watched":
        assert heard["events"] > 0
    elif name == "commands":
        assert heard["refused"] == 0
        assert min(heard["seconds"]) > 0
    else:
        assert heard["refused"] == 0
        assert heard["taken"] > 0
        assert heard["taken"] % int(name.split()[1]) == 0


def test_a_client_that_fails_is_told(tmp_path):
    process = training.Client(("nothing",), tmp_path / "samples.db", "http://127.0.0.1:9", "a token")
    try:
        process.begin()
        with pytest.raises(FailedError, match="status 1"):
            process.told()
    finally:
        process.stop()


def result(seconds, load_average=0.1):
    """A round in which each way took so many seconds a batch; those that are not named, one."""
    ways = {}
    for each in training.WAYS:
        took = seconds.get(each.name, 1.0)
        client = {"taken": 500, "seconds": 2.0, "refused": 0} if each.client[:1] in (("post",), ("write",)) else None
        if each.client[:1] == ("steer",):
            client = {"seconds": [number / 100 for number in range(1, 101)], "refused": 0}
        ways[each.name] = {"batches": [took, took], "processor": 3 * took, "client": client}
    about = {"machine": "a machine", "date": "2026-01-01", "versions": {"paddle": "3"}, "load": load_average}
    return {"ways": ways, **about}


def test_a_page_tells_of_other_work_and_of_what_was_not_run():
    rounds = [result({"off": 1.0, "idle": 1.1}), result({"off": 2.0, "idle": 2.0})]
    page = load.page([*rounds, result({"off": 4.0, "idle": 4.08})])
    assert "| idle | the service runs without clients | 2000 | 2.0 % (1.0 to 6.0) | 2.0 % (1.0 to 6.0) |" in page
    assert "| http 1 | 250 (250 to 250) | 0 |" in page
    assert "| 300 | 500 | 990 | 1000 | 0 |" in page
    assert "Rounds: 3, of 2 batches in each mode." in page
    assert "other work" not in page
    assert "load average of up to 2.5" in load.page([result({}, 2.5)])
    empty = load.page([])
    assert empty.count("not run yet") > len(training.WAYS)
    assert "Machine" not in empty


def test_a_round_is_kept(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("signal.signal", lambda *given: None)
    monkeypatch.setattr(load, "use_threads", lambda count: count)
    monkeypatch.setattr(load, "Training", lambda: tiny)
    monkeypatch.setattr(load, "order", lambda number: training.WAYS[:2])
    monkeypatch.setattr(load, "page", lambda found: f"{len(found)} rounds of {len(found[0]['ways']) if found else 0}")
    words = ["--rounds", "1", "--steps", "2", "--out", str(tmp_path / "out"), "--table", str(tmp_path / "page.md")]
    assert load.OnlineLoad.main(words) == 0
    assert (tmp_path / "page.md").read_text() == "1 rounds of 2"
