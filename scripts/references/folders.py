"""A model's folder: its layouts, and beside them what the reference computes. ``by`` is one of the by_*.py."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from references.architectures import Case

EXPECTED = "expected.npz"


def write(by: Any, case: Case, folder: Path, layouts: Iterable[str], expected: bool = True) -> None:
    """Write a case into ``folder``, a sub-folder for each layout.

    Args:
        by: the reference.
        case: the model and the batch.
        folder: where to.
        layouts: of the reference; ``"static"`` gets outputs of its own, for its epsilon is another.
        expected: whether the outputs and gradients are written, which all other layouts share.
    """
    model = by.make(case)
    for layout in layouts:
        shutil.rmtree(folder / layout, ignore_errors=True)
        by.save(model, case, layout, folder / layout)
    if expected:
        np.savez_compressed(folder / EXPECTED, **by.run(model, case))
    if "static" in layouts:
        np.savez_compressed(folder / "static" / EXPECTED, **by.run(by.as_static(model), case))


def read_back(by: Any, case: Case, folder: Path) -> None:
    """Load the folder of a model that onion saved, and write what the reference makes of it."""
    np.savez(folder / EXPECTED, **by.run(by.load(folder, case), case))
