"""The bars of tqdm: of text on a terminal, widgets in a notebook."""

from __future__ import annotations

import os
import warnings
from typing import Any, TextIO

from tqdm import TqdmWarning, tqdm

NOTEBOOK = "ipykernel.iostream"
"""Module of the streams that a kernel of Jupyter sends to its notebook."""


def shows_bars(file: TextIO) -> bool:
    """Tell whether a bar can be drawn again and again where a file is shown: on a terminal, or in a notebook."""
    return file.isatty() or _in_notebook(file)


def open_bar(file: TextIO, **settings: Any) -> Any:
    """Return a new bar; ``settings`` are tqdm's.

    In a notebook it is a widget, or text if ipywidgets is not installed.
    """
    bar = _notebook_bar() if _in_notebook(file) else tqdm
    return bar(file=file, **_size_of(file), **settings)


def set_total(bar: Any, total: int | None) -> None:
    """Change the length of a bar; None: unknown.

    tqdm gives a widget its length when it makes it, and in ``reset``, which would set the clock back.
    """
    bar.total = total
    if total and hasattr(bar, "container"):
        _, widget, _ = bar.container.children
        widget.max, widget.bar_style, widget.layout.width = total, "", None


def _in_notebook(file: TextIO) -> bool:
    return type(file).__module__ == NOTEBOOK


def _notebook_bar() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TqdmWarning)  # without ipywidgets tqdm shows text, which needs no warning
        from tqdm.autonotebook import tqdm as chosen
    return chosen


def _size_of(file: TextIO) -> dict[str, int]:
    """Return a size for a terminal that reports none (in some containers), where tqdm would show an empty line."""
    try:
        columns, lines = os.get_terminal_size(file.fileno())
    except (OSError, ValueError):
        return {}
    return {} if columns and lines else {"ncols": 120, "nrows": 24}
