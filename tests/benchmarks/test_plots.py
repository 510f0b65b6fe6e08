"""The plots of docs/benchmarks.md are those of the figures that are kept."""

from xml.etree import ElementTree

import pytest

from benchmarks import plots
from benchmarks.frame.section import Figure, Section


@pytest.mark.parametrize("name", plots.PLOTS)
def test_a_plot_is_drawn_from_what_was_measured(name):
    assert (plots.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == plots.plot(name), "run make figures"


def test_speeds_are_grouped_by_data_set_and_the_fastest_comes_first(tmp_path):
    figures = [
        Figure("SST-2: a <slow> one", "examples a second", [1.0, 3.0, 2.0]),
        Figure("SST-2: onion", "examples a second", [8.0]),
        Figure("onion beside it", "times as fast", [4.0]),
        Figure("SST-2, peak memory: onion", "MiB", [9.0]),
        Figure("MRPC: onion", "examples a second", [5.0]),
    ]
    panels = plots.finetune(Section("finetune", "", "", 3, figures))
    assert [list(panel.bars.items()) for panel in panels] == [[("onion", 8.0), ("a <slow> one", 2.0)], [("onion", 5.0)]]
    texts = [each.text for each in ElementTree.fromstring(plots.drawing(panels)).iter() if each.text]
    assert "a <slow> one" in texts
    assert "2.0" in texts


def test_the_overhead_of_engines_leaves_out_loops_and_callbacks():
    figures = [
        Figure("onion, minimal: above the bare loop with `to_tensors`", "µs a batch", [7.0]),
        Figure("onion, minimal: above it", "µs a batch", [-9.0]),
        Figure("Ignite: bare loop of its framework", "µs a batch", [60.0]),
        Figure("Ignite: above it", "µs a batch", [3.0]),
        Figure("Ignite: a callback more", "µs a batch", [1.0]),
    ]
    (panel,) = plots.loop(Section("loop", "", "", 1, figures))
    assert list(panel.bars.items()) == [("Ignite", 3.0), ("onion", 7.0)]


def test_all_plots_are_written(tmp_path):
    plots.main(tmp_path / "plots")
    assert sorted(path.stem for path in (tmp_path / "plots").iterdir()) == sorted(plots.PLOTS)
