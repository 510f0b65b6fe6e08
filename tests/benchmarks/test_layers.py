"""benchmarks.layers: both sides classify the file in turns; what is told follows from what was measured."""

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
    told = capsys.readouterr().out
    assert "| 2 layers | " in told
    assert "3 rounds on " in told


def test_the_small_one_is_held_against_the_whole_one():
    found = layers.figures_of([(10.0, 30.0), (20.0, 50.0), (40.0, 80.0)], 6, 2)
    assert [figure.cells()[:2] for figure in found] == [
        ("6 layers", "20 texts a second"),
        ("2 layers", "50 texts a second"),
        ("the few beside all", "2.50 times as fast"),
    ]


def test_without_the_file_it_says_so(tmp_path, capsys):
    assert layers.main([str(tmp_path / "none" / "dev.tsv")]) == 2
    assert "the data sets are not in" in capsys.readouterr().err
