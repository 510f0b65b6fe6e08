"""Gradients of parameters, as one part of a batch makes them."""

from __future__ import annotations

from collections.abc import Sequence

import paddle


class Gradients:
    """The sum of what was put in, for each parameter that learns."""

    def __init__(self) -> None:
        self._sums: dict[str, paddle.Tensor] = {}

    def put(self, parameter: paddle.Tensor, gradient: paddle.Tensor) -> None:
        """Add to a parameter's gradient; the tensor is taken over and may be changed later."""
        known = self._sums.get(parameter.name)
        self._sums[parameter.name] = gradient if known is None else known.add_(gradient)

    def of(self, parameter: paddle.Tensor) -> paddle.Tensor | None:
        """Return a parameter's gradient; None: it does not learn."""
        return self._sums.get(parameter.name)

    def take(self, others: Sequence[Gradients], parameters: Sequence[paddle.Tensor]) -> None:
        """Add the gradients that others have of these parameters."""
        for parameter in parameters:
            for other in others:
                gradient = other.of(parameter)
                if gradient is not None:
                    self.put(parameter, gradient)
