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

    def written(self) -> tuple[dict[str, Any], bytes]:
        """Return what the JSON of the response has of it, and what follows behind the JSON."""
        values = self.values
        datatype, shape = (FP32, list(values.shape)) if isinstance(values, np.ndarray) else (BYTES, [len(values)])
        told = {"name": self.name, "datatype": datatype, "shape": shape}
        if not self.binary:
            return {**told, "data": self._listed()}, b""
        content = self._packed()
        return {**told, "parameters": {"binary_data_size": len(content)}}, content

    def _listed(self) -> list[Any]:
        if isinstance(self.values, np.ndarray):
            listed: list[Any] = self.values.astype(np.float32).reshape(-1).tolist()
            return listed
        return list(self.values)

    def _packed(self) -> bytes:
        """Return numbers as they are, and texts each behind its length in four bytes."""
        if isinstance(self.values, np.ndarray):
            return self.values.astype("<f4").tobytes()
        texts = (text.encode() for text in self.values)
        return b"".join(len(text).to_bytes(4, "little") + text for text in texts)


def written(answer: dict[str, Any], outputs: Sequence[Output]) -> tuple[bytes, int | None]:
    """Return the body of a response, and the length of its JSON if there is something in binary behind it."""
    parts = [each.written() for each in outputs]
    told = dumps({**answer, "outputs": [described for described, _ in parts]})
    binary = any(each.binary for each in outputs)
    return b"".join([told, *(content for _, content in parts)]), len(told) if binary else None
