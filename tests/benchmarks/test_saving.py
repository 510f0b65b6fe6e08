"""benchmarks/saving.py: both ways save the same in turns; what is told follows from what was measured."""

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
    told = capsys.readouterr().out
    assert "| a step, in the background | " in told
    assert "2 rounds on " in told


def test_milliseconds_of_each_round():
    rounds = [{way: (0.1 * n, 0.01 * n * place) for place, way in enumerate(saving.WAYS, 1)} for n in (1, 2, 4)]
    told = {figure.what: figure.cells()[1] for figure in saving.figures_of(rounds)}
    assert told == {
        "a step, in the loop": "200.0 ms",
        "a step, in the background": "200.0 ms",
        "a step with a save is longer by, in the loop": "20.0 ms",
        "a step with a save is longer by, in the background": "40.0 ms",
    }
