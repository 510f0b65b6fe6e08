"""benchmarks/online_load: the samples, a run in each kind of way, what a page makes of figures."""

import importlib

import numpy as np
import pytest

from tests.paths import ROOT


@pytest.fixture
def load(monkeypatch):
    """Import a module of benchmarks/online_load."""
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.online_load.{name}")


@pytest.fixture
def training(load):
    """A tiny encoder with the vocabulary of the samples."""
    from onion.models.config import EncoderConfig

    module = load("training")
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    return module.Training(EncoderConfig(vocab_size=load("samples").VOCABULARY, max_position_embeddings=80, **shape))


def way(load, name):
    return next(each for each in load("ways").WAYS if each.name == name)


def test_samples_are_as_long_as_those_of_sst_2(load):
    samples = load("samples").made_up(3200, seed=1)
    lengths = np.array([len(each["ids"]) for each in samples])
    assert 12 < lengths.mean() < 14
    assert 30 < lengths.reshape(-1, 32).max(1).mean() < 45
    assert (lengths.min(), lengths.max() <= 66) == (3, True)
    assert {each["label"] for each in samples} == {0, 1}
    assert load("samples").made_up(5, seed=1) == load("samples").made_up(5, seed=1)
    assert load("samples").made_up(5, seed=1) != load("samples").made_up(5, seed=2)


def test_every_round_has_all_ways_and_there_and_back(load):
    ways = load("ways")
    rounds = [ways.order(number) for number in range(2 * len(ways.WAYS))]
    assert all(sorted(each.name for each in one) == sorted(each.name for each in ways.WAYS) for one in rounds)
    places = [one.index(ways.OFF) for one in rounds]
    assert set(places) == set(range(len(ways.WAYS)))
    assert {one + other for one, other in zip(places[::2], places[1::2], strict=True)} == {len(ways.WAYS) - 1}


@pytest.mark.parametrize("name", ["off", "idle"])
def test_a_run_counts_its_batches(load, training, name):
    told = training.run(way(load, name), 0, steps=3)
    assert len(told["batches"]) == 3
    assert min(told["batches"]) > 0
    assert told["processor"] > 0
    assert told["client"] is None


@pytest.mark.parametrize(("name", "steps"), [("watched", 300), ("http 100", 60), ("spool 1", 60), ("commands", 150)])
def test_a_client_works_while_batches_count(load, training, name, steps):
    told = training.run(way(load, name), 1, steps)
    client = told["client"]
    assert len(told["batches"]) == steps
    if name == "watched":
        assert client["events"] > 0
    elif name == "commands":
        assert client["refused"] == 0
        assert min(client["seconds"]) > 0
    else:
        assert client["refused"] == 0
        assert client["taken"] > 0
        assert client["taken"] % int(name.split()[1]) == 0


def test_a_client_that_fails_is_told(load, tmp_path):
    company = load("company").Company(("nothing",), tmp_path / "samples.db", "http://127.0.0.1:9", "a token")
    try:
        company.begin()
        with pytest.raises(importlib.import_module("benchmarks.common.processes").FailedError, match="status 1"):
            company.told()
    finally:
        company.stop()


# -- the page ----------------------------------------------------------------------------------------------------------


def result(load, seconds, load_average=0.1):
    """A round in which each way took so many seconds a batch; those that are not named, one."""
    ways = {}
    for each in load("ways").WAYS:
        took = seconds.get(each.name, 1.0)
        client = {"taken": 500, "seconds": 2.0, "refused": 0} if each.client[:1] in (("post",), ("write",)) else None
        if each.client[:1] == ("steer",):
            client = {"seconds": [number / 100 for number in range(1, 101)], "refused": 0}
        ways[each.name] = {"batches": [took, took], "processor": 3 * took, "client": client}
    about = {"machine": "a machine", "date": "2026-01-01", "versions": {"paddle": "3"}, "load": load_average}
    return {"ways": ways, **about}


def test_a_page_tells_medians_of_ratios_within_rounds(load):
    rounds = [result(load, {"off": 1.0, "idle": 1.1}), result(load, {"off": 2.0, "idle": 2.0})]
    page = load("page").page([*rounds, result(load, {"off": 4.0, "idle": 4.08})], 2)
    assert "| idle | the service is there, and nobody calls | 2000 | 2.0 % (1.0 to 6.0) | 2.0 % (1.0 to 6.0) |" in page
    assert "| http 1 | 250 (250 to 250) | 0 |" in page
    assert "| 300 | 500 | 990 | 1000 | 0 |" in page
    assert "Rounds: 3, of 2 batches in each way." in page
    assert "other work" not in page


def test_a_page_tells_of_other_work_and_of_what_was_not_run(load):
    assert "load average of up to 2.5" in load("page").page([result(load, {}, 2.5)], 2)
    empty = load("page").page([], 2)
    assert empty.count("not run yet") > len(load("ways").WAYS)
    assert "Machine" not in empty


def test_a_quantile_is_one_of_the_values(load):
    quantile = load("page").quantile
    assert [quantile([3, 1, 2], share) for share in (0.01, 0.5, 0.99)] == [1, 2, 3]
    assert quantile(list(range(1, 201)), 0.99) == 198


def test_a_round_that_is_there_is_not_run_again(load, training, tmp_path, monkeypatch, capsys):
    main = load("__main__")
    monkeypatch.setattr("signal.signal", lambda *given: None)
    monkeypatch.setattr(main, "use_threads", lambda count: count)
    monkeypatch.setattr(main, "Training", lambda: training)
    monkeypatch.setattr(main, "order", lambda number: load("ways").WAYS[:2])
    monkeypatch.setattr(main, "page", lambda found, threads: f"{len(found)} rounds, {threads} threads")
    words = ["--rounds", "1", "--steps", "2", "--out", str(tmp_path / "out"), "--table", str(tmp_path / "page.md")]
    assert main.main(words) == 0
    assert "1 of 1: 0" in capsys.readouterr().out
    assert (tmp_path / "page.md").read_text() == "1 rounds, 2 threads"
    assert main.main(words) == 0
    assert "of 1:" not in capsys.readouterr().out
    assert main.main([*words, "--rounds", "2"]) == 0
    assert "1 of 1: 1" in capsys.readouterr().out
