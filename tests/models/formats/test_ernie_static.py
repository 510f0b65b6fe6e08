import struct

import numpy as np
import paddle
import pytest

from onion.errors import WeightsError
from onion.models.formats.ernie_static import read_static
from tests.models.foreign_files import paddle_tensor


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16", "int64", "int32"])
def test_types_of_static_files(tmp_path, kind):
    path = tmp_path / "v"
    paddle.save(paddle.to_tensor([[1.0, -2.0, 3.0]]).astype(kind), str(path), use_binary_format=True)
    found = read_static(path)
    assert found.tolist() == [[1, -2, 3]]
    assert found.dtype == (np.dtype(kind) if kind.startswith("int") else np.float32)


def test_a_static_file_cut_anywhere_is_refused(tmp_path):
    data = paddle_tensor(np.ones((2, 300), np.float32), levels=(b"\0" * 16,))
    path = tmp_path / "v"
    for length in [*range(70), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(WeightsError, match="v: damaged or not a Paddle tensor"):
            read_static(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(WeightsError, match=r"2401 bytes of values for the shape \[2, 300\]"):
        read_static(path)
    with pytest.raises(WeightsError, match="cannot read"):
        read_static(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "description",
    [
        b"",
        b"\x08\x05\x1a\x01",  # field 3
        b"\x08\x07\x10\x01",  # type 7
        b"\x10\x01",  # no type
        b"\x08" + b"\xff" * 12,  # an endless number
        b"\x08\x05\x10" + b"\xff" * 9 + b"\x01",  # -1 values
    ],
)
def test_an_unknown_description_is_refused(tmp_path, description):
    data = struct.pack("<IQIi", 0, 0, 0, len(description)) + description
    (tmp_path / "v").write_bytes(data + np.ones(1, np.float32).tobytes())
    with pytest.raises(WeightsError, match="damaged or not a Paddle tensor"):
        read_static(tmp_path / "v")
