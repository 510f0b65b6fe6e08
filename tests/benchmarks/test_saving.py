"""benchmarks/saving.py: both ways save the same in turns; what is told follows from what was measured."""

import json

import pytest

from benchmarks import saving
from tests.tasks.helpers import tiny_encoder


def test_it_measures_both_ways_in_every_round(tmp_path, capsys, monkeypatch):
    measured = []
    real = saving._run

    def run(encoder, batches, folder, background, every):
        measured.append(background)
        return real(encoder, batches, folder, background, every)

    monkeypatch.setattr(saving, "_run", run)
    monkeypatch.setattr(saving, "FIRST_ID", 0)
    words = "--batch 2 --length 5 --steps 8 --every 3 --rounds 2"
    saving.main(["--encoder", str(tiny_encoder(tmp_path / "encoder")), *words.split()])
    assert measured == [False, True, True, False]
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["rounds"] == 2
    assert told["step in the loop"] > 0


def test_medians_are_told_in_milliseconds(capsys):
    saving.tell([{way: (0.1 * n, 0.01 * n * place) for place, way in enumerate(saving.WAYS, 1)} for n in (1, 2, 4)])
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["save in the loop"] == pytest.approx(20.0)
    assert told["save in the background"] == pytest.approx(40.0)
