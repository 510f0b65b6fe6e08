"""benchmarks.layers and benchmarks.saving: both sides in turns; what is told follows from what was measured."""

from benchmarks import layers, saving
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
    told = capsys.readouterr().out
    assert "| 2 layers | " in told
    assert "3 rounds on " in told


def test_the_small_one_is_compared_with_the_whole_one_if_the_file_is_there(tmp_path, capsys):
    found = layers.figures_of([(10.0, 30.0), (20.0, 50.0), (40.0, 80.0)], 6, 2)
    assert [figure.cells()[:2] for figure in found] == [
        ("6 layers", "20 texts a second"),
        ("2 layers", "50 texts a second"),
        ("the few beside all", "2.50 times as fast"),
    ]
    assert layers.main([str(tmp_path / "none" / "dev.tsv")]) == 2
    assert "the data sets are not in" in capsys.readouterr().err


def test_saving_is_measured_in_both_ways_in_every_round(tmp_path, capsys, monkeypatch):
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


def test_saving_is_told_in_milliseconds_of_each_round():
    rounds = [{way: (0.1 * n, 0.01 * n * place) for place, way in enumerate(saving.WAYS, 1)} for n in (1, 2, 4)]
    told = {figure.what: figure.cells()[1] for figure in saving.figures_of(rounds)}
    assert told == {
        "a step, in the loop": "200.0 ms",
        "a step, in the background": "200.0 ms",
        "a step with a save is longer by, in the loop": "20.0 ms",
        "a step with a save is longer by, in the background": "40.0 ms",
    }
