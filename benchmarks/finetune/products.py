"""What the matrix products of a training step take by themselves: the machine's own speed at an encoder's shapes.

Those of the linear layers, forward and both ways back. Attention's own products are left out, which makes the share of
a step that this is a little smaller than it could be.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from onion.device import paddle

TIMES = 5

Product = Callable[[], Any]


def seconds(tokens: int, hidden: int, inner: int, layers: int) -> float:
    """Return the seconds of the products of one step: the median time of one layer, for each layer."""
    with paddle().no_grad():
        products = [product for shape in shapes(hidden, inner) for product in _products(tokens, *shape)]
        _run(products)  # warms up
        return layers * statistics.median(_run(products) for _ in range(TIMES))


def shapes(hidden: int, inner: int) -> list[tuple[int, int]]:
    """Return width in and width out of a layer's linear layers: q, k, v, out, and the two of its feed-forward part."""
    return [(hidden, hidden)] * 4 + [(hidden, inner), (inner, hidden)]


def _products(tokens: int, width_in: int, width_out: int) -> Iterator[Product]:
    """Give a linear layer's product forward, that for the gradient of what went in, and that for its weight's."""
    x = paddle().rand([tokens, width_in])
    weight = paddle().rand([width_in, width_out])
    gradient = paddle().rand([tokens, width_out])
    matmul = paddle().matmul
    yield lambda: matmul(x, weight)
    yield lambda: matmul(gradient, weight, transpose_y=True)
    yield lambda: matmul(x, gradient, transpose_x=True)


def _run(products: list[Product]) -> float:
    begun = time.perf_counter()
    for product in products:
        product()
    return time.perf_counter() - begun
