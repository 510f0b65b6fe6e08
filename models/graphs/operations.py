"""What the graphs of networks are made of: values with operators, and a few operations besides.

A graph is a function that is written once. Whoever carries it out decides what it gives: nodes of an ONNX file, or
tensors of Paddle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Value: TypeAlias = Any
"""A tensor of Paddle, or a node of an ONNX graph; both have ``+ - * / @``, also with numbers on the right."""


class Operations(ABC):
    """Carries out the operations of a graph.

    Args:
        weights: parameters by path, float32.
    """

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        self.weights = weights

    def linear(self, x: Value, path: str, scale: float = 1.0) -> Value:
        """[..., in] -> [..., out], by the weight and the bias below a path, both times ``scale``."""
        product = self.matmul(x, self.weight(f"{path}.weight", scale))
        return self.add(product, self.weight(f"{path}.bias", scale))

    def shape_of(self, path: str) -> tuple[int, ...]:
        """Return the shape of a parameter."""
        return self.weights[path].shape

    @abstractmethod
    def weight(self, path: str, scale: float = 1.0) -> Value:
        """Return a parameter, times ``scale``."""

    # Where Paddle makes a program, its operators do not take parameters.

    @abstractmethod
    def matmul(self, one: Value, other: Value) -> Value:
        """Return ``one @ other``; either may be a parameter."""

    @abstractmethod
    def add(self, one: Value, other: Value) -> Value:
        """Return ``one + other``; either may be a parameter."""

    @abstractmethod
    def constant(self, array: np.ndarray) -> Value:
        """Return an array of float32 or int64."""

    # -- shapes -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def length(self, ids: Value) -> Value:
        """[batch, length] -> the length, an integer that :meth:`reshape` and :meth:`slice` take."""

    @abstractmethod
    def columns(self, ids: Value) -> Value:
        """[batch, length] -> 0, 1, 2, ...: int64 [length]."""

    @abstractmethod
    def reshape(self, x: Value, shape: Sequence[Value | int]) -> Value:
        """Change the shape; 0 keeps a dimension, and -1 is what is left."""

    @abstractmethod
    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        """Change the order of the axes."""

    @abstractmethod
    def unsqueeze(self, x: Value, *axes: int) -> Value:
        """Add axes of length 1."""

    @abstractmethod
    def slice(self, x: Value, axis: int, begin: Value | int, end: Value | int | None = None) -> Value:
        """Return a part of an axis; without ``end`` the rest."""

    @abstractmethod
    def concatenate(self, parts: Sequence[Value], axis: int) -> Value:
        """Join values along an axis."""

    # -- choice -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def rows(self, table: Value, places: Value) -> Value:
        """[rows, width] and int64 [...] -> [..., width]."""

    @abstractmethod
    def pick(self, x: Value, places: Value) -> Value:
        """[batch, length, width] and int64 [batch, any] -> [batch, any, width], each row from its own."""

    @abstractmethod
    def first(self, mask: Value) -> Value:
        """int64 [batch, length] -> the place of the first 1 of each row, int64 [batch]."""

    @abstractmethod
    def last(self, mask: Value) -> Value:
        """int64 [batch, length] -> the place of the last 1 of each row, int64 [batch]."""

    @abstractmethod
    def descending(self, keys: Value) -> Value:
        """int64 [batch, length], distinct in a row -> the places by which a row is in descending order."""

    # -- numbers ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def as_float(self, x: Value) -> Value:
        """int64 or bool -> float32."""

    @abstractmethod
    def as_integer(self, x: Value) -> Value:
        """Bool or float32 -> int64."""

    @abstractmethod
    def equal(self, one: Value, other: Value) -> Value:
        """Return where two int64 values are equal: bool."""

    @abstractmethod
    def at_least(self, x: Value, least: int) -> Value:
        """Return where an int64 value is not below a number: bool."""

    @abstractmethod
    def count_before(self, mask: Value) -> Value:
        """int64 [batch, length] -> the sum of a row before each place."""

    @abstractmethod
    def sum(self, x: Value, axis: int, keep: bool = False) -> Value:
        """Return the sum over an axis, which is kept with length 1 if ``keep``."""

    @abstractmethod
    def maximum(self, x: Value, axis: int) -> Value:
        """Return the largest value over an axis."""

    @abstractmethod
    def unit(self, x: Value) -> Value:
        """[batch, width] -> each row divided by its length, or by 1e-12 if that is more."""

    @abstractmethod
    def bounded(self, x: Value, low: float, high: float) -> Value:
        """Return values between two bounds."""

    @abstractmethod
    def softmax(self, x: Value) -> Value:
        """Return probabilities along the last axis."""

    @abstractmethod
    def layer_norm(self, x: Value, path: str, epsilon: float) -> Value:
        """Normalize the last axis, then apply the weight and the bias below a path."""

    @abstractmethod
    def activation(self, x: Value, name: str) -> Value:
        """Apply a function by its name: gelu (by erf), relu, tanh, softsign, abs, sin, cos; linear is none."""

    @abstractmethod
    def convolve(self, x: Value, path: str, padding: int) -> Value:
        """[batch, length, in] -> [batch, length, out], by the filters below a path, [out, in, width]."""

    @abstractmethod
    def lstm(self, x: Value, lengths: Value, path: str) -> Value:
        """[batch, length, in] and int64 [batch] -> the last states of both directions, [batch, 2 * hidden].

        The parameters below the path are those of ``paddle.nn.LSTM`` with one layer.
        """
