"""benchmarks/layers.py: both sides classify the file in turns; what is told follows from what was measured."""

import json

import pytest

from benchmarks import layers
from tests.tasks.helpers import films, tiny_encoder, write_tsv


def test_it_measures_both_sides_in_every_round(tmp_path, capsys, monkeypatch):
    measured = []
    real = layers._seconds

    def seconds(runner):
        measured.append(runner["forward"].network.encoder.config.num_hidden_layers)
        return real(runner)

    monkeypatch.setattr(layers, "_seconds", seconds)
    dev = write_tsv(tmp_path / "dev.tsv", films(20, seed=1))
    layers.main([str(dev), "--encoder", str(tiny_encoder(tmp_path / "encoder")), "--layers", "2", "--rounds", "3"])
    assert measured == [2, 1, 1, 2, 2, 1]
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["rounds"] == 3
    assert min(told["2 layers"], told["1 layers"], told["ratio"]) > 0


def test_medians_are_told(capsys):
    layers.tell([(10.0, 30.0), (20.0, 50.0), (40.0, 80.0)], 6, 2)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told == {"rounds": 3, "6 layers": 20.0, "2 layers": 50.0, "ratio": pytest.approx(2.5)}
