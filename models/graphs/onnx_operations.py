"""Operations that write an ONNX graph, straight from the weights.

Only operators of the standard are used, of operator set 17 (ONNX 1.12, 2022). ONNX Runtime fuses them when it loads a
file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onion.models.graphs.operations import Operations

OPERATOR_SET = 17
FILE_VERSION = 8
"""ONNX's version of the file format that belongs to the operator set."""

SHORTEST = 1e-12


@attrs.frozen(eq=False)
class Node:
    """A value of the graph, with the operators of a tensor."""

    graph: OnnxOperations
    name: str

    def __add__(self, other: Any) -> Node:
        return self.graph.node("Add", self, other)

    def __sub__(self, other: Any) -> Node:
        return self.graph.node("Sub", self, other)

    def __mul__(self, other: Any) -> Node:
        return self.graph.node("Mul", self, other)

    def __truediv__(self, other: Any) -> Node:
        return self.graph.node("Div", self, other)

    def __matmul__(self, other: Any) -> Node:
        return self.graph.node("MatMul", self, other)


class OnnxOperations(Operations):
    """Write a graph; see :meth:`model`.

    Args:
        weights: see Operations.
    """

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        super().__init__(weights)
        self._nodes: list[onnx.NodeProto] = []
        self._arrays: dict[str, np.ndarray] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    # -- the graph ----------------------------------------------------------------------------------------------------

    def input(self, name: str, shape: Sequence[str | int]) -> Node:
        """Add an input, int64; names in the shape are dimensions of any length."""
        self._inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, shape))
        return Node(self, name)

    def output(self, name: str, value: Node, shape: Sequence[str | int]) -> None:
        """Add an output, float32."""
        self._nodes.append(helper.make_node("Identity", [value.name], [name], name=name))
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def model(self, producer: str, version: str) -> onnx.ModelProto:
        """Return the model, checked by ONNX."""
        arrays = [numpy_helper.from_array(array, name) for name, array in self._arrays.items()]
        graph = helper.make_graph(self._nodes, "onion", self._inputs, self._outputs, arrays)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPERATOR_SET)],
            producer_name=producer,
            producer_version=version,
            ir_version=FILE_VERSION,
        )
        onnx.checker.check_model(model, full_check=True)
        return model

    def node(self, kind: str, *inputs: Any, **attributes: Any) -> Node:
        """Add a node with one output; inputs that are no nodes become constants, floats as float32."""
        return self.nodes(kind, inputs, 1, **attributes)[0]

    def nodes(self, kind: str, inputs: Sequence[Any], outputs: int, **attributes: Any) -> list[Node]:
        """Add a node with several outputs; None stands for an input or output that is left out."""
        name = f"{kind.lower()}_{len(self._nodes)}"
        names = [name if outputs == 1 else f"{name}.{number}" for number in range(outputs)]
        given = ["" if each is None else self._named(each).name for each in inputs]
        self._nodes.append(helper.make_node(kind, given, names, name=name, **attributes))
        return [Node(self, each) for each in names]

    def _named(self, value: Any) -> Node:
        if isinstance(value, Node):
            return value
        if isinstance(value, float):
            return self.constant(np.array(value, np.float32))
        return self.constant(np.asarray(value))

    def weight(self, path: str, scale: float = 1.0) -> Node:
        """See Operations."""
        array = self.weights[path].astype(np.float32)
        return self._stored(path, array) if scale == 1 else self._stored(f"{path}.scaled", array * np.float32(scale))

    def matmul(self, one: Node, other: Node) -> Node:
        """See Operations."""
        return one @ other

    def add(self, one: Node, other: Node) -> Node:
        """See Operations."""
        return one + other

    def constant(self, array: np.ndarray) -> Node:
        """See Operations."""
        return self._stored(f"constant_{len(self._arrays)}", array)

    def _stored(self, name: str, array: np.ndarray) -> Node:
        self._arrays[name] = np.array(array, order="C")  # ascontiguousarray would give a scalar an axis
        return Node(self, name)

    # -- shapes -------------------------------------------------------------------------------------------------------

    def length(self, ids: Node) -> Node:
        """See Operations."""
        return self.node("Gather", self.node("Shape", ids), np.int64(1))

    def columns(self, ids: Node) -> Node:
        """See Operations."""
        return self.node("Range", np.int64(0), self.length(ids), np.int64(1))

    def reshape(self, x: Node, shape: Sequence[Node | int]) -> Node:
        """See Operations."""
        return self.node("Reshape", x, self._numbers(shape))

    def _numbers(self, values: Sequence[Node | int]) -> Node:
        """Return integers, some of which are nodes, as one value: int64 [values]."""
        if not any(isinstance(each, Node) for each in values):
            return self.constant(np.array(values, np.int64))
        parts = [
            self.unsqueeze(each, 0) if isinstance(each, Node) else self.constant(np.array([each], np.int64))
            for each in values
        ]
        return self.concatenate(parts, 0)

    def transpose(self, x: Node, order: Sequence[int]) -> Node:
        """See Operations."""
        return self.node("Transpose", x, perm=list(order))

    def unsqueeze(self, x: Node, *axes: int) -> Node:
        """See Operations."""
        return self.node("Unsqueeze", x, np.array(axes, np.int64))

    def slice(self, x: Node, axis: int, begin: Node | int, end: Node | int | None = None) -> Node:
        """See Operations."""
        last = np.iinfo(np.int64).max if end is None else end
        return self.node("Slice", x, self._numbers([begin]), self._numbers([last]), np.array([axis], np.int64))

    def concatenate(self, parts: Sequence[Node], axis: int) -> Node:
        """See Operations."""
        return self.node("Concat", *parts, axis=axis)

    # -- choice -------------------------------------------------------------------------------------------------------

    def rows(self, table: Node, places: Node) -> Node:
        """See Operations."""
        return self.node("Gather", table, places)

    def pick(self, x: Node, places: Node) -> Node:
        """See Operations."""
        return self.node("GatherND", x, self.unsqueeze(places, 2), batch_dims=1)

    def first(self, mask: Node) -> Node:
        """See Operations."""
        # Of float32: old ONNX Runtimes (1.15) have none of int64.
        return self.node("ArgMax", self.as_float(mask), axis=1, keepdims=0)

    def last(self, mask: Node) -> Node:
        """See Operations."""
        return self.node("ArgMax", self.as_float(mask), axis=1, keepdims=0, select_last_index=1)

    def descending(self, keys: Node) -> Node:
        """See Operations."""
        count = self.unsqueeze(self.length(keys), 0)
        return self.nodes("TopK", [keys, count], 2, axis=1, largest=1, sorted=1)[1]

    # -- numbers ------------------------------------------------------------------------------------------------------

    def as_float(self, x: Node) -> Node:
        """See Operations."""
        return self.node("Cast", x, to=TensorProto.FLOAT)

    def as_integer(self, x: Node) -> Node:
        """See Operations."""
        return self.node("Cast", x, to=TensorProto.INT64)

    def equal(self, one: Node, other: Node) -> Node:
        """See Operations."""
        return self.node("Equal", one, other)

    def at_least(self, x: Node, least: int) -> Node:
        """See Operations."""
        return self.node("GreaterOrEqual", x, np.int64(least))

    def count_before(self, mask: Node) -> Node:
        """See Operations."""
        return self.node("CumSum", mask, np.int64(1), exclusive=1)

    def sum(self, x: Node, axis: int, keep: bool = False) -> Node:
        """See Operations."""
        return self.node("ReduceSum", x, np.array([axis], np.int64), keepdims=int(keep))

    def maximum(self, x: Node, axis: int) -> Node:
        """See Operations."""
        return self.node("ReduceMax", x, axes=[axis], keepdims=0)

    def unit(self, x: Node) -> Node:
        """See Operations."""
        return x / self.node("Max", self.node("ReduceL2", x, axes=[1], keepdims=1), SHORTEST)

    def bounded(self, x: Node, low: float, high: float) -> Node:
        """See Operations."""
        return self.node("Clip", x, float(low), float(high))

    def softmax(self, x: Node) -> Node:
        """See Operations."""
        return self.node("Softmax", x, axis=-1)

    def layer_norm(self, x: Node, path: str, epsilon: float) -> Node:
        """See Operations."""
        weight, bias = self.weight(f"{path}.weight"), self.weight(f"{path}.bias")
        return self.node("LayerNormalization", x, weight, bias, axis=-1, epsilon=epsilon)

    def activation(self, x: Node, name: str) -> Node:
        """See Operations."""
        if name == "linear":
            return x
        if name == "gelu":
            # In the form that ONNX Runtime knows and computes as one.
            return x * (self.node("Erf", x / float(np.sqrt(2))) + 1.0) * 0.5
        return self.node(name.capitalize(), x)

    def convolve(self, x: Node, path: str, padding: int) -> Node:
        """See Operations."""
        weight, bias = self.weight(f"{path}.weight"), self.weight(f"{path}.bias")
        found = self.node("Conv", self.transpose(x, [0, 2, 1]), weight, bias, pads=[padding, padding])
        return self.transpose(found, [0, 2, 1])

    def lstm(self, x: Node, lengths: Node, path: str) -> Node:
        """See Operations."""
        ends = ("l0", "l0_reverse")
        weights = [np.stack([self._gates(f"{path}.weight_{part}_{end}") for end in ends]) for part in ("ih", "hh")]
        biases = [np.concatenate([self._gates(f"{path}.bias_{part}_{end}") for part in ("ih", "hh")]) for end in ends]
        hidden = weights[1].shape[2]
        given = [
            self.transpose(x, [1, 0, 2]),
            *weights,
            np.stack(biases),
            self.node("Cast", lengths, to=TensorProto.INT32),
        ]
        _, last, _ = self.nodes("LSTM", given, 3, hidden_size=hidden, direction="bidirectional")
        return self.reshape(self.transpose(last, [1, 0, 2]), [0, -1])

    def _gates(self, path: str) -> np.ndarray:
        """Return a parameter of an LSTM in ONNX's order of gates (input, output, forget, cell), not Paddle's."""
        into, forget, cell, out = np.split(self.weights[path].astype(np.float32), 4)
        return np.concatenate([into, out, forget, cell])
