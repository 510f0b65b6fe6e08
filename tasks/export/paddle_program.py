"""A graph as a program of Paddle: ``paddle.jit.load``, Paddle Inference, FastDeploy and others run it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import paddle
from paddle import nn
from paddle.static import InputSpec

from onion.errors import WeightsError
from onion.models.graphs.operations import Value
from onion.models.graphs.paddle_operations import PaddleOperations
from onion.models.pretrained_encoder import arrays_of
from onion.tasks.export.graph import ExportedGraph
from onion.tasks.export.names import MODEL


class PaddedNetwork(nn.Layer):
    """The parameters of a network, computed on padded batches: nothing of it needs the host.

    Args:
        graph: of the network.
        network: its parameters are shared.
        recurrent: the LSTM of the network, if it has one.
    """

    def __init__(self, graph: ExportedGraph, network: nn.Layer, recurrent: nn.LSTM | None) -> None:
        super().__init__()
        self.network = network
        self._graph, self._recurrent = graph, recurrent
        self._arrays = arrays_of(network)

    def forward(self, first: Any, second: Any, third: Any = None, fourth: Any = None) -> Any:
        """Return the outputs of the graph for its inputs, in their order; of several a tuple."""
        return self._computed((first, second, third, fourth))

    # There is nothing in it that depends on a value, so Paddle need not read its source.
    @paddle.jit.not_to_static  # type: ignore[untyped-decorator]
    def _computed(self, given: Sequence[Value]) -> Value:
        o = PaddleOperations(dict(self.network.named_parameters()), self._arrays, self._recurrent)
        outputs = self._graph.build(o, dict(zip(self._graph.inputs, given, strict=False)))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def write_program(folder: Path, graph: ExportedGraph, network: nn.Layer, encoder: nn.Layer) -> None:
    """Write ``model.json`` (before Paddle 3: ``model.pdmodel``) and ``model.pdiparams``.

    Args:
        folder: the target.
        graph: of the network.
        network: in evaluation mode; adapters are merged.
        encoder: of the network.

    Raises:
        WeightsError: the files cannot be written, or Paddle makes no program of the network.
        DataError: the task of the graph cannot be exported.
    """
    padded = PaddedNetwork(graph, network, getattr(encoder, "lstm", None))
    padded.eval()
    specs = [InputSpec([None] * len(graph.input_shape(name)), "int64", name) for name in graph.inputs]
    try:
        paddle.jit.save(paddle.jit.to_static(padded, specs, full_graph=True), str(folder / MODEL))
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise WeightsError(f"Paddle {paddle.__version__} makes no program of this network: {error}") from error
