"""benchmarks.resuming: both sides in every round; what is told follows from what was measured."""

from benchmarks import resuming


def test_it_measures_both_sides_in_every_round(capsys):
    words = "--examples 3000 --tokens 2048 --further 9 --rounds 2"
    resuming.main(words.split())
    told = capsys.readouterr().out
    assert "3,000 examples of 289,241 tokens" in told
    assert "| by tokens: to the first batch in mid-pass | " in told
    assert "| by examples: peak memory | " in told
    assert "2 rounds on " in told


def test_only_batches_by_tokens_have_a_goal():
    names = ("made", "first", "each", "kept", "later", "peak")
    found = resuming.figures_of([{side: dict.fromkeys(names, n) for side in resuming.SIDES} for n in (1, 2, 3)])
    told = {figure.what: figure.cells() for figure in found}
    assert told["by tokens: to the first batch in mid-pass"][1] == "2.00 s"
    assert told["by tokens: each further batch"][1] == "2,000.000 ms"
    assert [what for what, cells in told.items() if cells[-1]] == ["by tokens: to the first batch in mid-pass"]
