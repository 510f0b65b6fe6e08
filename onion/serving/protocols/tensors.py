"""The outputs of the Open Inference Protocol: as JSON, or in binary behind the JSON.

Source: https://github.com/triton-inference-server/server, ``protocol/extension_binary_data.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from onion.http.messages import dumps

BYTES, FP32 = "BYTES", "FP32"


@attrs.frozen(eq=False)
class Output:
    """A tensor of texts or of numbers.

    Attributes:
        name: of the output.
        values: texts, or an array, which is sent as float32.
        binary: whether it is sent in binary.
    """

    name: str
    values: Sequence[str] | np.ndarray
    binary: bool = False

    def described(self) -> dict[str, Any]:
        """Return what the JSON of the response has of it."""
        numbers = isinstance(self.values, np.ndarray)
        shape = list(self.values.shape) if isinstance(self.values, np.ndarray) else [len(self.values)]
        told = {"name": self.name, "datatype": FP32 if numbers else BYTES, "shape": shape}
        if self.binary:
            return {**told, "parameters": {"binary_data_size": len(self.packed())}}
        return {**told, "data": self._listed()}

    def packed(self) -> bytes:
        """Return it in binary: numbers as they are, of a text its length in four bytes and its UTF-8."""
        if isinstance(self.values, np.ndarray):
            return self.values.astype("<f4").tobytes()
        texts = (text.encode() for text in self.values)
        return b"".join(len(text).to_bytes(4, "little") + text for text in texts)

    def _listed(self) -> list[Any]:
        if isinstance(self.values, np.ndarray):
            listed: list[Any] = self.values.astype(np.float32).reshape(-1).tolist()
            return listed
        return list(self.values)


def written(answer: dict[str, Any], outputs: Sequence[Output]) -> tuple[bytes, int | None]:
    """Return the body of a response, and the length of its JSON if there is something in binary behind it."""
    told = dumps({**answer, "outputs": [each.described() for each in outputs]})
    binary = [each.packed() for each in outputs if each.binary]
    return b"".join([told, *binary]), len(told) if binary else None
