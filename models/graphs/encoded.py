"""What a graph takes and what that of an encoder gives."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from onion.models.graphs.operations import Value


@attrs.frozen
class Inputs:
    """A padded batch.

    Attributes:
        ids: of the tokens, int64 [batch, length].
        types: of the segments, int64 [batch, length].
        mask: int64 [batch, length], 1 for tokens, anywhere in a row, and 0 for padding.
    """

    ids: Value
    types: Value
    mask: Value


@attrs.frozen
class EncodedGraph:
    """The output of an encoder's graph.

    Attributes:
        tokens: float32 [batch, length, hidden], of no meaning for padding; None where there is only one vector a text.
        cls: float32 [batch, hidden], of the token that represents each row.
        pool: ``cls`` -> what heads over whole texts take, [batch, hidden].
    """

    tokens: Value | None
    cls: Value
    pool: Callable[[Value], Value]

    @property
    def pooled(self) -> Value:
        """float32 [batch, hidden]."""
        return self.pool(self.cls)
