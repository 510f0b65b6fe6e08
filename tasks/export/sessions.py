"""The engines that run an exported model: ONNX Runtime, or Paddle with a program."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from onion.device import chosen_threads, paddle
from onion.errors import OnionError, WeightsError
from onion.tasks.export.names import MODEL


class Session(Protocol):
    """Runs a model; thread-safe."""

    def __call__(self, given: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the first output for inputs by name; those that the model does not have are passed over."""


class OnnxSession:
    """Runs an ONNX model by ONNX Runtime, on the CPU unless told otherwise.

    Args:
        model: the file, or its content.
        threads: that one call computes on. Default: as :func:`onion.device.use_threads`.
        providers: of ONNX Runtime, in order of preference. Default: the CPU.

    Raises:
        OnionError: onnxruntime is not installed.
        WeightsError: the model is damaged.
    """

    def __init__(
        self, model: Path | bytes, threads: int | None = None, providers: tuple[str, ...] = ("CPUExecutionProvider",)
    ) -> None:
        try:
            import onnxruntime
        except ModuleNotFoundError as error:
            if error.name != "onnxruntime":
                raise
            raise OnionError("running an ONNX model needs onnxruntime: pip install 'onion-paddle[onnx]'.") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = chosen_threads(threads)
        options.log_severity_level = 3  # errors; warnings are for the authors of graphs
        given = model if isinstance(model, bytes) else str(model)
        try:
            self._session: Any = onnxruntime.InferenceSession(given, options, providers=list(providers))
        except Exception as error:  # of classes that onnxruntime does not export
            told = "the model" if isinstance(model, bytes) else model
            raise WeightsError(f"{told}: ONNX Runtime {onnxruntime.__version__} cannot load it: {error}") from None
        self._names = [each.name for each in self._session.get_inputs()]
        self._first = [self._session.get_outputs()[0].name]

    def __call__(self, given: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the first output; see :class:`Session`."""
        first: np.ndarray = self._session.run(self._first, {name: given[name] for name in self._names})[0]
        return first


class ProgramSession:
    """Runs a program that Paddle has saved, one call at a time: Paddle keeps what is between its inputs and outputs.

    Args:
        folder: has ``model.json`` (before Paddle 3: ``model.pdmodel``) and ``model.pdiparams``.
        names: of the inputs, in their order.

    Raises:
        WeightsError: the program is damaged, or of another version of Paddle.
    """

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self._names, self._lock = names, threading.Lock()
        try:
            self._layer = paddle().jit.load(str(folder / MODEL))
        except (OSError, RuntimeError, ValueError) as error:
            raise WeightsError(f"{folder}: Paddle {paddle().__version__} cannot load the program: {error}") from None
        self._layer.eval()

    def __call__(self, given: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the first output; see :class:`Session`."""
        with self._lock, paddle().no_grad():
            found = self._layer(*(paddle().to_tensor(given[name]) for name in self._names))
            first: np.ndarray = (found[0] if isinstance(found, (list, tuple)) else found).numpy()
        return first
