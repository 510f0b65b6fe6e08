"""Operations that compute with Paddle; under ``paddle.jit.to_static`` they become a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import paddle
import paddle.nn.functional as F  # noqa: N812  the name everybody knows it by
from paddle import nn

from onion.models.graphs.operations import Operations, Value

FUNCTIONS = {
    "gelu": F.gelu,
    "relu": F.relu,
    "tanh": paddle.tanh,
    "softsign": F.softsign,
    "abs": paddle.abs,
    "sin": paddle.sin,
    "cos": paddle.cos,
}


class PaddleOperations(Operations):
    """Compute.

    Args:
        parameters: of a network by path; their values at the time of the graph's building are not read.
        arrays: the same as arrays.
        recurrent: the LSTM of the network, if it has one.
    """

    def __init__(
        self,
        parameters: Mapping[str, paddle.Tensor],
        arrays: Mapping[str, np.ndarray],
        recurrent: nn.LSTM | None = None,
    ) -> None:
        super().__init__(arrays)
        self._parameters, self._recurrent = parameters, recurrent

    def weight(self, path: str, scale: float = 1.0) -> paddle.Tensor:
        """See Operations."""
        parameter = self._parameters[path]
        return parameter if scale == 1 else paddle.scale(parameter, scale)

    def matmul(self, one: Value, other: Value) -> paddle.Tensor:
        """See Operations."""
        return paddle.matmul(one, other)

    def add(self, one: Value, other: Value) -> paddle.Tensor:
        """See Operations."""
        return paddle.add(one, other)

    def constant(self, array: np.ndarray) -> paddle.Tensor:
        """See Operations."""
        return paddle.to_tensor(array)

    # -- shapes -------------------------------------------------------------------------------------------------------

    def length(self, ids: Value) -> paddle.Tensor:
        """See Operations."""
        return paddle.shape(ids)[1]

    def columns(self, ids: Value) -> paddle.Tensor:
        """See Operations."""
        return paddle.arange(self.length(ids), dtype="int64")

    def reshape(self, x: Value, shape: Sequence[Value | int]) -> paddle.Tensor:
        """See Operations."""
        return x.reshape(list(shape))

    def transpose(self, x: Value, order: Sequence[int]) -> paddle.Tensor:
        """See Operations."""
        return x.transpose(list(order))

    def unsqueeze(self, x: Value, *axes: int) -> paddle.Tensor:
        """See Operations."""
        return paddle.unsqueeze(x, list(axes))

    def slice(self, x: Value, axis: int, begin: Value | int, end: Value | int | None = None) -> paddle.Tensor:
        """See Operations."""
        last = paddle.shape(x)[axis] if end is None else end
        return paddle.slice(x, [axis], [begin], [last])

    def concatenate(self, parts: Sequence[Value], axis: int) -> paddle.Tensor:
        """See Operations."""
        return paddle.concat(list(parts), axis=axis)

    # -- choice -------------------------------------------------------------------------------------------------------

    def rows(self, table: Value, places: Value) -> paddle.Tensor:
        """See Operations."""
        # embedding() does not take a table whose number of rows is not known, gather() no places with two axes.
        return paddle.gather(table, places) if places.ndim == 1 else F.embedding(places, table)

    def pick(self, x: Value, places: Value) -> paddle.Tensor:
        """See Operations."""
        wide = paddle.expand(paddle.unsqueeze(places, 2), [-1, -1, x.shape[2]])
        return paddle.take_along_axis(x, wide, 1, broadcast=False)

    def first(self, mask: Value) -> paddle.Tensor:
        """See Operations."""
        return paddle.argmax(mask, axis=1)

    def last(self, mask: Value) -> paddle.Tensor:
        """See Operations."""
        return paddle.argmax(mask * paddle.unsqueeze(self.columns(mask) + 1, 0), axis=1)

    def descending(self, keys: Value) -> paddle.Tensor:
        """See Operations."""
        return paddle.argsort(keys, axis=1, descending=True)

    # -- numbers ------------------------------------------------------------------------------------------------------

    def as_float(self, x: Value) -> paddle.Tensor:
        """See Operations."""
        return paddle.cast(x, "float32")

    def as_integer(self, x: Value) -> paddle.Tensor:
        """See Operations."""
        return paddle.cast(x, "int64")

    def equal(self, one: Value, other: Value) -> paddle.Tensor:
        """See Operations."""
        return paddle.equal(one, other)

    def at_least(self, x: Value, least: int) -> paddle.Tensor:
        """See Operations."""
        return x >= least

    def count_before(self, mask: Value) -> paddle.Tensor:
        """See Operations."""
        return paddle.cumsum(mask, axis=1) - mask

    def sum(self, x: Value, axis: int, keep: bool = False) -> paddle.Tensor:
        """See Operations."""
        return paddle.sum(x, axis=axis, keepdim=keep)

    def maximum(self, x: Value, axis: int) -> paddle.Tensor:
        """See Operations."""
        return paddle.max(x, axis=axis)

    def unit(self, x: Value) -> paddle.Tensor:
        """See Operations."""
        return F.normalize(x, axis=1)

    def bounded(self, x: Value, low: float, high: float) -> paddle.Tensor:
        """See Operations."""
        return paddle.clip(x, low, high)

    def softmax(self, x: Value) -> paddle.Tensor:
        """See Operations."""
        return F.softmax(x, axis=-1)

    def layer_norm(self, x: Value, path: str, epsilon: float) -> paddle.Tensor:
        """See Operations."""
        weight, bias = self.weight(f"{path}.weight"), self.weight(f"{path}.bias")
        return F.layer_norm(x, [weight.shape[0]], weight, bias, epsilon)

    def activation(self, x: Value, name: str) -> paddle.Tensor:
        """See Operations."""
        return x if name == "linear" else FUNCTIONS[name](x)

    def convolve(self, x: Value, path: str, padding: int) -> paddle.Tensor:
        """See Operations."""
        weight, bias = self.weight(f"{path}.weight"), self.weight(f"{path}.bias")
        return F.conv1d(x.transpose([0, 2, 1]), weight, bias, padding=padding).transpose([0, 2, 1])

    def lstm(self, x: Value, lengths: Value, path: str) -> paddle.Tensor:
        """See Operations."""
        assert self._recurrent is not None
        _, (last, _) = self._recurrent(x, sequence_length=lengths)  # [directions, batch, hidden]
        return paddle.concat([last[0], last[1]], axis=1)
