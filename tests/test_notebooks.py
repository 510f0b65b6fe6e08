"""The notebooks of docs/tutorials run and show what is stored in them; tests/test_site.py looks at their pages."""

import re

import nbformat
import pytest

from scripts.notebooks import FOLDER, METADATA, executed, lasting

NOTEBOOKS = {path.stem: nbformat.read(path, as_version=4) for path in sorted(FOLDER.glob("*.ipynb"))}
FIGURE = re.compile(r"\d+\.\d+")
ANOTHER_PROCESSOR = 0.2
"""By how much an accuracy may differ, or an accuracy on the docstrings of another version of Python."""


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(outputs):
    """Return what a cell prints, without its figures; of a picture its kind."""
    kinds = [sorted(output.get("data", {})) for output in outputs]
    texts = [output.get("text") or output.data["text/plain"] for output in outputs]
    return [(*kind, FIGURE.sub("#", text)) for kind, text in zip(kinds, texts, strict=True)]


def figures(outputs):
    return [float(figure) for output in outputs for figure in FIGURE.findall(output.get("text", ""))]


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_shows_what_is_stored_and_warns_of_nothing(name, tmp_path):
    fresh = executed(FOLDER / f"{name}.ipynb", tmp_path)
    for old, new in zip(code(NOTEBOOKS[name]), code(fresh), strict=True):
        outputs = lasting(new.outputs)
        assert shown(outputs) == shown(old.outputs)
        assert figures(outputs) == pytest.approx(figures(old.outputs), abs=ANOTHER_PROCESSOR)
        logged = "".join(output.text for output in new.outputs if output.get("name") == "stderr")
        assert "WARN" not in logged.upper()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_is_short_and_tells_nothing_of_the_machine_that_ran_it(name):
    notebook = NOTEBOOKS[name]
    assert notebook.metadata == METADATA
    assert len(notebook.cells) <= 13
    for cell in notebook.cells:
        assert cell.metadata == {}
        assert cell.get("execution_count") is None
        assert cell.get("outputs", []) == lasting(cell.get("outputs", []))
        assert len(str(cell.get("outputs"))) < 50_000
    assert not re.search(r"/(tmp|home|work|root)/|site-packages", str(notebook))
