"""What all exports share: the checks of their arguments, and the ONNX file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from onion.checkpointing.atomic_files import write_synced
from onion.errors import DataError
from onion.messages import shown
from onion.tasks.export import eight_bits
from onion.tasks.export.graph import ExportedGraph
from onion.tasks.export.names import DYNAMIC, EIGHT_BITS, FORMATS, ONNX, ONNX_FILE, STATIC
from onion.tasks.export.onnx_file import onnx_model

AT_ONCE = 8
"""Rows of a calibration file in a batch."""


def check_choices(format: str, int8: str | None, calibrate: str | Path | None) -> None:
    """Refuse what does not go together.

    Raises:
        DataError: a choice is unknown, or contradicts another one.
    """
    if format not in FORMATS:
        raise DataError(f"format {shown(format)}: must be one of {', '.join(FORMATS)}")
    if int8 is not None and int8 not in EIGHT_BITS:
        raise DataError(f"int8 {shown(int8)}: must be one of {', '.join(EIGHT_BITS)}")
    if int8 is not None and format != ONNX:
        raise DataError(f"int8 is for the format {ONNX} only, not for {format}")
    if int8 == STATIC and calibrate is None:
        raise DataError(f"int8 {STATIC} needs a calibration file: --calibrate FILE")
    if int8 != STATIC and calibrate is not None:
        raise DataError(f"calibrate is for int8 {STATIC} only; leave it out")


def write_onnx(
    folder: Path,
    graph: ExportedGraph,
    weights: Mapping[str, np.ndarray],
    int8: str | None = None,
    calibration: Iterable[Mapping[str, np.ndarray]] | None = None,
) -> None:
    """Write ``model.onnx``.

    Args:
        folder: the target.
        graph: the graph.
        weights: parameters by path.
        int8: how activations get 8 bits. Default: everything has 32.
        calibration: inputs on which static ranges are measured.

    Raises:
        DataError: the task of the graph cannot be exported, or the weights are too large for one file.
        OnionError: a package is not installed.
    """
    model = onnx_model(graph, weights)
    if int8 == DYNAMIC:
        eight_bits.with_dynamic_ranges(model, folder / ONNX_FILE)
    elif calibration is not None:
        eight_bits.with_static_ranges(model, folder / ONNX_FILE, calibration)
    else:
        write_synced(folder / ONNX_FILE, model.SerializeToString())
