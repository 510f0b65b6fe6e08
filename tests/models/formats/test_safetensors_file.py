import json
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

from onion.errors import WeightsError
from onion.models.formats.safetensors_file import as_float32, read_metadata, read_safetensors, write_safetensors


def write(path, header, data=b""):
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)
    return path


@pytest.mark.parametrize(
    ("shape", "data"), [([0, 2**62], b""), ([0, 2**63 + 5], b""), ([1] * 100, b"abcd")], ids=["62", "63", "axes"]
)
def test_shapes_that_no_array_can_have_are_refused(tmp_path, shape, data):
    path = write(tmp_path / "w", {"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, len(data)]}}, data)
    with pytest.raises(WeightsError, match=r"w: a has an impossible shape|w: damaged"):
        read_safetensors(path)


def test_metadata_is_read_and_is_no_array(tmp_path):
    write_safetensors(tmp_path / "w", {"a": np.ones(2, np.float32)}, {"format": "pt", "more": "é"})
    assert read_metadata(tmp_path / "w") == {"format": "pt", "more": "é"}
    assert list(read_safetensors(tmp_path / "w")) == ["a"]


def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    write_safetensors(tmp_path / "w", {}, {})

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(WeightsError, match=r"w: cannot read: Permission denied$"):
        read_safetensors(tmp_path / "w")


def test_what_float32_cannot_hold_becomes_infinite_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_float32(np.array([1.0, 1e300, -1e300])).tolist() == [1.0, np.inf, -np.inf]
