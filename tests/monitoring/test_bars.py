"""Bars in notebooks: what real kernels send to be shown. Those on terminals are in tests/items/test_progress.py."""

import io

import pytest

from onion.monitoring.bars import shows_bars
from tests.kernel import running_kernel

pytestmark = pytest.mark.slow

IMPORTS = "from onion import *; from onion.testing import *"
NESTED = "Runner(Progress(0), Tester(Runner(Progress(0), Batches(7)), every=2), Batches(5)).run(passes=1);"


@pytest.fixture
def kernel(tmp_path):
    with running_kernel(tmp_path) as kernel:
        kernel.run(IMPORTS)
        yield kernel


def test_a_notebook_shows_a_widget_for_each_pass_and_removes_those_of_its_tests(kernel):
    cell = kernel.run(NESTED)
    assert (cell.printed, cell.warned, cell.error) == ("", "", None)
    assert all("application/vnd.jupyter.widget-view+json" in each for each in cell.displayed)
    bars = [(bar["value"], bar["max"], bar["bar_style"]) for bar in kernel.kind("FloatProgressModel")]
    assert bars == [(5, 5, "success"), (7, 7, ""), (7, 7, "")]
    hidden = [layout["visibility"] for layout in kernel.kind("LayoutModel") if layout.get("visibility")]
    assert hidden == ["hidden"] * 2
    left, right, *_ = [text["value"].replace("\u2007", " ") for text in kernel.kind("HTMLModel")]  # tqdm's spaces
    assert left == "pass 1: 100%"
    assert " 5/5 " in right

    cell = kernel.run("Runner(Progress(0), Failing('on_batch', 'in', 3), Batches(5)).run();")
    assert "PlannedError" in cell.error[-1]
    *_, last = kernel.kind("FloatProgressModel")
    assert (last["value"], last["max"], last["bar_style"]) == (3, 5, "danger")

    cell = kernel.run("Runner(Progress(lines=True), Batches(5)).run(passes=1);")
    assert cell.warned.startswith("step 5/5, pass 1/1, ")
    assert cell.displayed == []


def test_without_ipywidgets_the_bar_is_text_and_nobody_is_warned(kernel):
    kernel.run("import sys; sys.modules['ipywidgets'] = None")
    cell = kernel.run("Runner(Progress(0), Batches(5)).run(passes=1);")
    assert cell.displayed == []
    assert all(line.startswith("pass 1: ") for line in cell.warned.replace("\n", "\r").split("\r") if line.strip())
    assert "5/5" in cell.warned


def test_a_file_shows_no_bars():
    assert not shows_bars(io.StringIO())
