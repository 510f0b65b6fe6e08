import pickle
import zipfile

import numpy as np
import pytest

from onion.errors import WeightsError
from onion.models.formats.torch_file import read_torch
from tests.models.foreign_files import (
    number,
    text,
    torch_state,
    torch_tensor,
    tuple_of,
    write_old_torch,
    write_torch,
    write_torch_zip,
)  # fmt: skip


def test_views_of_a_storage(tmp_path):
    base = np.arange(10, dtype=np.float32)
    matrix = base[:6].reshape(2, 3)
    bits = (base.view(np.uint32) >> 16).astype(np.uint16)
    tensors = {
        "transposed": torch_tensor("0", matrix.T, count=10),
        "middle": torch_tensor("0", base[2:7], offset=2, count=10),
        "scalar": torch_tensor("0", base[4:5].reshape(()), offset=4, count=10),
        "empty": torch_tensor("0", base[:0].reshape(0, 4), count=10),
        "half": torch_tensor("1", base.astype(np.float16)),
        "brain": torch_tensor("2", bits),
    }
    storages = {"0": base.tobytes(), "1": base.astype(np.float16).tobytes(), "2": bits.tobytes()}
    found = read_torch(write_torch_zip(tmp_path / "m.bin", torch_state(tensors), storages))
    expected = {"transposed": matrix.T, "middle": base[2:7], "scalar": base[4], "empty": np.zeros((0, 4), np.float32)}
    expected |= {"half": base, "brain": base}
    assert list(found) == list(tensors)
    assert all(found[name].shape == array.shape for name, array in expected.items())
    assert all(found[name].tobytes() == array.tobytes() for name, array in expected.items())
    assert np.shares_memory(found["transposed"], found["middle"])
    assert not found["middle"].flags.writeable


def spread(sizes, steps, offset=0, count=4):
    """A tensor over a storage of four values with sizes and steps of one's choice."""
    start = torch_tensor("0", np.ones(4, np.float32), count=count)
    given = tuple_of(number(4)), tuple_of(number(1))
    chosen = tuple_of(*map(number, sizes)), tuple_of(*map(number, steps))
    return start.replace(number(0) + b"".join(given), number(offset) + b"".join(chosen))


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (spread([5], [1]), "reaches beyond its storage"),
        (spread([4], [1], offset=1), "reaches beyond its storage"),
        (spread([2, 2], [1, 3]), "reaches beyond its storage"),
        (spread([30000, 30000], [0, 0]), "reaches beyond its storage"),
        (spread([2], [-1], offset=3), "a tensor without a storage"),
        (spread([2, 2], [1]), "more sizes than strides"),
        (spread([0, 2**30, 2**30, 2**30], [1] * 4), "damaged"),
        (spread([4], [1], count=5), "storage 0 is missing or not 20 bytes"),
        (torch_tensor("7", np.ones(4, np.float32)), "storage 7 is missing"),
        (torch_tensor("../0", np.ones(4, np.float32)), "is missing"),
        (number(3), "w is a int, not a tensor"),
        (tuple_of(text("module"), text("x")) + b"Q", "damaged pickle"),
    ],
)
def test_tensors_that_do_not_fit_their_storage_are_refused(tmp_path, tensor, message):
    path = write_torch_zip(tmp_path / "m.bin", torch_state({"w": tensor}), {"0": np.ones(4, np.float32).tobytes()})
    refused(path, message)


@pytest.mark.parametrize("step", [2**62, 2**70])
def test_steps_that_no_memory_has_are_refused(tmp_path, step):
    data = step.to_bytes(10, "little")
    far = spread([1], [1]).replace(tuple_of(number(1)) + b"\x89", tuple_of(b"\x8a\x0a" + data) + b"\x89")
    path = write_torch_zip(tmp_path / "m.bin", torch_state({"w": far}), {"0": np.ones(4, np.float32).tobytes()})
    refused(path, r"m\.bin: damaged")


def refused(path, message):
    with pytest.raises(WeightsError, match=message):
        read_torch(path)


def test_damaged_files_of_pytorch_are_refused(tmp_path):
    arrays = {"w": np.arange(8, dtype=np.float32), "b": np.ones(3, np.float32)}
    path = write_torch(tmp_path / "m.bin", arrays)
    whole = path.read_bytes()
    for keep in (0, 1, 2, 30, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:keep])
        refused(path, r"m\.bin: (a )?damaged")
    at = whole.index(arrays["w"].tobytes())
    path.write_bytes(whole[: at + 5] + b"\x7f" + whole[at + 6 :])
    refused(path, "Bad CRC-32")
    old = write_old_torch(path, arrays).read_bytes()
    for keep in range(0, len(old), 7):
        path.write_bytes(old[:keep])
        refused(path, r"m\.bin: ")


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "m.bin"
    path.write_bytes(pickle.dumps({"w": 1}, protocol=2))
    refused(path, "not a file of PyTorch$")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", torch_state({}))
    refused(path, "a compressed zip file, so not PyTorch's; unpack it$")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "<html/>")
    refused(path, r"without data\.pkl")
    refused(write_torch_zip(path, torch_state({}), {}, order=b"big"), "big-endian")
