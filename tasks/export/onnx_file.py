"""A graph as an ONNX model, straight from the weights: without Paddle, and nothing is traced."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from onion.errors import DataError, OnionError
from onion.tasks.export.graph import ExportedGraph

if TYPE_CHECKING:
    import onnx

    from onion.models.graphs.onnx_operations import OnnxOperations

LARGEST = 2 * 1000**3
"""Bytes of weights; an ONNX file, which is one protobuf message, holds 2 GiB."""


def onnx_model(graph: ExportedGraph, weights: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """Make an ONNX model.

    Args:
        graph: the graph.
        weights: parameters by path.

    Raises:
        DataError: the task of the graph cannot be exported, or the weights are too large for one file.
        WeightsError: the encoder has no graph.
        OnionError: the package ``onnx`` is not installed.
    """
    from onion import __version__

    if sum(4 * array.size for array in weights.values()) > LARGEST:
        raise DataError(f"the weights are larger than {LARGEST / 1e9:g} GB, which an ONNX file cannot hold")
    o = _operations(weights)
    outputs = graph.build(o, {name: o.input(name, graph.input_shape(name)) for name in graph.inputs})
    for (name, shape), value in zip(graph.outputs.items(), outputs, strict=True):
        o.output(name, value, shape)
    return o.model("onion", __version__)


def check_packages() -> None:
    """Refuse to write an ONNX file where that, or running it, is not possible.

    Raises:
        OnionError: ``onnx`` or ``onnxruntime`` is not installed.
    """
    for name in ("onnx", "onnxruntime"):
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            raise OnionError(f"an ONNX file needs {name}: pip install 'onion-paddle[export]'.") from None


def _operations(weights: Mapping[str, np.ndarray]) -> OnnxOperations:
    check_packages()
    from onion.models.graphs.onnx_operations import OnnxOperations

    return OnnxOperations(weights)
