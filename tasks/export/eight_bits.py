"""An ONNX model with weights of 8 bits, by ONNX Runtime's own quantization.

The weights use 7 of them: a processor without VNNI adds up products of 8 bits in 16, where they may overflow without a
word, and nobody knows on which processor a file will be run.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onion.errors import OnionError

if TYPE_CHECKING:
    import onnx


def with_dynamic_ranges(model: onnx.ModelProto, target: Path) -> None:
    """Write a model whose products find the range of their input each time.

    Args:
        model: of 32 bits.
        target: the file.

    Raises:
        OnionError: the package that quantizes is not installed.
    """
    quantization = _quantization()
    with _file_of(model, target.parent) as source, _silently():
        quantization.quantize_dynamic(
            source, target, per_channel=True, reduce_range=True, weight_type=quantization.QuantType.QInt8
        )


def with_static_ranges(model: onnx.ModelProto, target: Path, batches: Iterable[Mapping[str, np.ndarray]]) -> None:
    """Write a model whose products have ranges for their input that were measured on some batches.

    The second product of each feed-forward network keeps 32 bits. What comes into it, behind the activation, is small
    but for a few numbers, and one range for all of it leaves nothing of the rest: a MiniLM that was fine-tuned on MRPC
    (seed 1, 256 rows to calibrate on) changed 40 of the 408 answers of its dev file with that product in 8 bits, and 2
    without.

    Args:
        model: of 32 bits.
        target: the file.
        batches: inputs of the model.

    Raises:
        OnionError: the package that quantizes is not installed.
    """
    quantization = _quantization()
    names = {each.name for each in model.graph.input}
    given = ({name: each[name] for name in names} for each in batches)
    with _file_of(model, target.parent) as source, _silently():
        quantization.quantize_static(
            source,
            target,
            _reader(quantization, given),
            quant_format=quantization.QuantFormat.QDQ,
            op_types_to_quantize=["MatMul", "Gather"],
            nodes_to_exclude=[node.name for node in model.graph.node if _is_behind_activation(node)],
            per_channel=True,
            reduce_range=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            # The other methods keep all activations in memory, and need batches of one shape.
            calibrate_method=quantization.CalibrationMethod.MinMax,
            extra_options={"MatMulConstBOnly": True},
        )


SECOND_PRODUCTS = ("linear2.weight", "ff.layer_2.weight")
"""What the names of the weights end with that stand behind the activation of a feed-forward network."""


def _is_behind_activation(node: onnx.NodeProto) -> bool:
    return node.op_type == "MatMul" and node.input[1].endswith(SECOND_PRODUCTS)


def _quantization() -> Any:
    try:
        from onnxruntime import quantization
    except ModuleNotFoundError as error:
        if error.name not in ("onnx", "onnxruntime"):
            raise
        raise OnionError("8 bits need onnx and onnxruntime: pip install 'onion-paddle[export]'.") from None
    return quantization


def _reader(quantization: Any, batches: Iterable[Mapping[str, np.ndarray]]) -> Any:
    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.batches = iter(batches)

        def get_next(self) -> dict[str, np.ndarray] | None:
            found = next(self.batches, None)
            return None if found is None else dict(found)

    return Reader()


@contextmanager
def _file_of(model: onnx.ModelProto, folder: Path) -> Iterator[Path]:
    """Yield a file with a model, prepared for quantization as onnxruntime asks for."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory(dir=folder) as work:
        plain, prepared = Path(work) / "plain.onnx", Path(work) / "prepared.onnx"
        plain.write_bytes(model.SerializeToString())
        quant_pre_process(plain, prepared, skip_symbolic_shape=True)
        yield prepared


@contextmanager
def _silently() -> Iterator[None]:
    """Keep silent of what onnxruntime uses of onnx, which nobody here can change, and of what it prints (1.15 does).

    Its quantizer tells the root logger of every tensor without a range; where the program logs INFO, as it does once
    Paddle is imported, that would be hundreds of lines.
    """
    root = logging.getLogger()
    root.addFilter(_is_worth_reading)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        root.removeFilter(_is_worth_reading)


def _is_worth_reading(record: logging.LogRecord) -> bool:
    return record.levelno > logging.INFO or "onnxruntime" not in Path(record.pathname).parts
