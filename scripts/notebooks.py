"""Run the notebooks of docs/tutorials, each in a kernel and a folder of its own, and store what they print.

    python -m scripts.notebooks               all
    python -m scripts.notebooks gan online    these

What differs from run to run is left out: progress bars, log lines, times and the names of kernels.
"""

from __future__ import annotations

import sys
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
WIDGET = "application/vnd.jupyter.widget-view+json"


def executed(path: Path, folder: Path) -> Any:
    """Return a notebook with the outputs of a fresh kernel, whose working directory is the folder.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised an error.
    """
    notebook = nbformat.read(path, as_version=4)
    settings = {"kernel_name": "python3", "timeout": None, "store_widget_state": False, "record_timing": False}
    NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, **settings).execute()
    return notebook


def store(notebook: Any, path: Path) -> None:
    """Write a notebook with the outputs that are the same in every run."""
    notebook.metadata = METADATA
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, lasting(cell.outputs)
    nbformat.write(notebook, path)


def lasting(outputs: list[Any]) -> list[Any]:
    """Return the outputs of a cell without bars and log lines, and what it printed in one piece."""
    kept: list[Any] = []
    for output in deepcopy(outputs):
        if output.get("name") == "stderr" or WIDGET in output.get("data", {}):
            continue
        if output.output_type == "stream" and kept and kept[-1].output_type == "stream":
            kept[-1].text += output.text
            continue
        if output.output_type == "execute_result":
            output.execution_count = None
        kept.append(output)
    return kept


if __name__ == "__main__":
    for path in [FOLDER / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        with TemporaryDirectory() as folder:
            store(executed(path, Path(folder)), path)
        print(path)
