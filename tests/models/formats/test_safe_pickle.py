import io
import pickle
import re
import struct
from collections import OrderedDict
from contextlib import suppress

import numpy as np
import paddle
import pytest

from onion.errors import WeightsError
from onion.models.formats.paddle_file import read_pdparams
from onion.models.formats.safe_pickle import PickleReader, numpy_calls
from tests.models.foreign_files import named, number, text, tuple_of
from tests.models.helpers import assert_equal_bits

ARRAYS = {
    "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "empty": np.zeros((0, 3), np.float32),
    "scalar": np.array(2.5, np.float32),
    "integers": np.array([1, -2], np.int64),
    "truths": np.array([True, False]),
    "large": np.random.default_rng(0).normal(size=(50, 400)).astype(np.float32),  # beyond KEPT_STRING
}


# Tuples in tuples: hashing, printing or comparing them would overflow the stack.
DEEP = b")" + b"\x85" * 300_000


def written(folder, data):
    (folder / "w.pdparams").write_bytes(data)
    return folder / "w.pdparams"


def pickled(folder, value, protocol):
    return written(folder, pickle.dumps(value, protocol=protocol))


def stack_global(module, name):
    return text(module) + text(name) + b"\x93"


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        (stack_global("numpy", "ndarray.tofile"), "numpy.ndarray.tofile"),
        (stack_global("numpy.core.multiarray", "_reconstruct.__globals__"), "_reconstruct.__globals__"),
        (stack_global("numpy.core", "multiarray._reconstruct.__self__"), "multiarray._reconstruct.__self__"),
        (number(1) + text("system") + b"\x93", "a name that is not a string"),
        (b"(" + text("x") + b"ios\nsystem\n", "INST os system"),
        (b"(" + named("numpy", "ndarray") + b"o", "OBJ"),
        (named("numpy", "ndarray") + b")\x81", "NEWOBJ"),
        (named("numpy", "ndarray") + b")}\x92", "NEWOBJ_EX"),
        (b"\x82\x01", "EXT1"),
        (b"P1\n", "PERSID 1"),
        (text("x") + b"Q", "BINPERSID"),
        (named("numpy", "ndarray") + b")R", "a call of numpy.ndarray"),
        (text("x") + b")R", "a call of str"),
        (b"I1\n", "INT"),
        (text("a") + b"2", "DUP"),
    ],
)
def test_what_arrays_do_not_need_is_refused_by_name(tmp_path, code, refused):
    path = written(tmp_path, b"\x80\x04}" + text("w") + code + b"s.")
    message = (
        rf"w\.pdparams: the pickle needs '.*{re.escape(refused)}.*', which is not allowed for weights; nothing was"
    )
    with pytest.raises(WeightsError, match=message):
        read_pdparams(path)


@pytest.mark.parametrize(
    "code",
    [
        named("numpy.core.multiarray", "_reconstruct") + b"}b",  # attributes for a function
        named("_codecs", "encode") + tuple_of(text("cm0"), text("rot13")) + b"R",
        named("_codecs", "encode") + tuple_of(number(3), text("latin1")) + b"R",
        named("numpy", "dtype") + tuple_of(text("O8"), b"\x89", b"\x88") + b"R",
        named("numpy", "dtype") + tuple_of(text("V8")) + b"R",
        named("__builtin__", "tuple") + tuple_of(text("ab")) + b"R",
        text("x") + b"}b",
        b"h\x07",  # what was never remembered
        b"\x85\x85\x85\x85s",
        b"t",
        b"}}" + number(1) + b"s",  # a dict as a key
        b"\x8e" + struct.pack("<Q", 1 << 62),  # more bytes than there are
        b"\x8e" + struct.pack("<Q", (1 << 64) - 1),
        b"]" + text("a") + number(1) + b"s",
        DEEP + number(1) + b"s",
        named("numpy", "dtype") + b"(" + DEEP + b"tR",
        named("_codecs", "encode") + b"(" + text("a") + DEEP + b"tR",
        DEEP,
    ],
)
def test_damage_is_named(tmp_path, code):
    path = written(tmp_path, b"\x80\x04}" + text("w") + code + b"s.")
    with pytest.raises(WeightsError, match=r"w\.pdparams: (a damaged pickle|w is a)"):
        read_pdparams(path)


def test_a_pickle_cut_anywhere_is_refused(tmp_path):
    data = pickle.dumps({name: ARRAYS[name] for name in ("matrix", "columns", "empty")}, protocol=4)
    for length in range(len(data)):
        with pytest.raises(WeightsError, match=r"w\.pdparams: a damaged pickle"):
            read_pdparams(written(tmp_path, data[:length]))


def test_flipped_bits_are_errors_or_arrays_and_nothing_else(tmp_path):
    data = bytearray(pickle.dumps({name: ARRAYS[name] for name in ("matrix", "integers")}, protocol=2))
    generator = np.random.default_rng(1)
    for at in generator.integers(0, len(data), 600):
        damaged = bytearray(data)
        damaged[at] ^= 1 << int(generator.integers(8))
        found = {}
        with suppress(WeightsError):
            found = read_pdparams(written(tmp_path, damaged))
        assert all(isinstance(array, np.ndarray) and array.dtype != object for array in found.values())


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_arrays_of_every_protocol(tmp_path, protocol):
    found = read_pdparams(pickled(tmp_path, ARRAYS, protocol))
    assert list(found) == list(ARRAYS)
    assert_equal_bits(found, ARRAYS)
    assert not found["large"].flags.owndata  # a view of the bytes that were read


def test_names_of_older_numpy_and_of_python_2(tmp_path):
    array = ARRAYS["matrix"]
    state = tuple_of(number(1), tuple_of(number(2), number(3)), b"%s", b"\x89", b"T\x18\0\0\0" + array.tobytes())
    dtype_state = tuple_of(number(3), b"U\x01>", b"NNN", number(-1), number(-1), number(0))
    dtype = named("numpy", "dtype") + tuple_of(b"U\x02f4", number(0), number(1)) + b"R" + dtype_state + b"b"
    new = named("numpy.core.multiarray", "_reconstruct")
    new += tuple_of(named("numpy", "ndarray"), tuple_of(number(0)), b"U\x01b") + b"R"
    path = written(tmp_path, b"\x80\x02}" + b"U\x01w" + new + state.replace(b"%s", dtype) + b"bs.")
    assert (read_pdparams(path)["w"] == array.view(">f4").astype(np.float32)).all()


def test_one_array_under_two_names_is_one(tmp_path):
    found = read_pdparams(pickled(tmp_path, {"a": ARRAYS["large"], "b": ARRAYS["large"]}, 2))
    assert found["a"] is found["b"]


@pytest.mark.parametrize(
    ("remembered", "copied"),
    [
        (b"](" + b"NN" * 500 + b"eq\x00", named("builtins", "tuple") + b"h\x00\x85R"),
        (text("a" * 1000) + b"q\x00", named("_codecs", "encode") + b"h\x00" + text("latin1") + b"\x86R"),
    ],
    ids=["tuple", "encode"],
)
def test_what_is_copied_again_and_again_does_not_fill_the_memory(tmp_path, remembered, copied):
    path = written(tmp_path, b"\x80\x02" + remembered + b"](" + copied * 500 + b"e.")
    with pytest.raises(WeightsError, match=r"w\.pdparams: a damaged pickle \(it makes more copies than"):
        read_pdparams(path)


def test_the_file_is_left_behind_the_pickle(tmp_path):
    file = io.BytesIO(pickle.dumps([1, "a", (2.5, None)], 2) + pickle.dumps({"b": True}, 4) + b"rest")
    reader = PickleReader(tmp_path, numpy_calls())
    assert reader.read(file) == [1, "a", (2.5, None)]
    assert reader.read(file) == {"b": True}
    assert file.read() == b"rest"


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_what_paddle_saves(tmp_path, protocol):
    layer = paddle.nn.Linear(3, 5)
    path = tmp_path / "model_state.pdparams"
    paddle.save(layer.state_dict(), str(path), protocol=protocol)
    found = read_pdparams(path)
    assert list(found) == ["weight", "bias"]
    assert (found["weight"] == layer.weight.numpy()).all()


def test_paddles_tensors_and_bfloat16(tmp_path):
    path = tmp_path / "w.pdparams"
    bits = paddle.to_tensor([1.0, -2.5, 3.140625]).astype("bfloat16")
    paddle.save({"nested": [paddle.ones([2])], "b": bits}, str(path))
    with pytest.raises(WeightsError, match="nested is a list, not an array"):
        read_pdparams(path)
    paddle.save({"b": bits, "a": np.float64(2) * np.ones(2)}, str(path))
    found = read_pdparams(path)
    assert found["b"].tolist() == [1.0, -2.5, 3.140625]
    assert {array.dtype for array in found.values()} == {np.dtype(np.float32)}


class Pair:
    """Pickles as Paddle's pickler writes a tensor in a list: a call of tuple."""

    def __reduce__(self):
        return tuple, (("linear_0.w_0", ARRAYS["matrix"]),)


def test_tensors_stored_as_name_and_array(tmp_path):
    found = read_pdparams(pickled(tmp_path, OrderedDict({"w": Pair(), "v": ("v", ARRAYS["matrix"])}), 4))
    assert (found["w"] == ARRAYS["matrix"]).all()
    assert (found["v"] == ARRAYS["matrix"]).all()


def test_slices_of_a_large_array_are_joined(tmp_path):
    flat = np.arange(6, dtype=np.float32)
    info = {"w": {"OriginShape": (2, 3), "slices": ["w@@.0", "w@@.1"]}}
    state = {"w@@.0": flat[:4], "w@@.1": flat[4:], "UnpackBigParamInfor@@": info}
    assert (read_pdparams(pickled(tmp_path, state, 2))["w"] == flat.reshape(2, 3)).all()
    for damaged, message in (
        (state | {"w@@.1": flat[5:]}, "w: its slices do not form an array"),
        ({"UnpackBigParamInfor@@": [1]}, "UnpackBigParamInfor@@ is a list, not a dict"),
    ):
        with pytest.raises(WeightsError, match=message):
            read_pdparams(pickled(tmp_path, damaged, 2))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(WeightsError, match="cannot read: No such file"):
        read_pdparams(tmp_path / "w.pdparams")
    with pytest.raises(WeightsError, match="damaged pickle"):
        read_pdparams(written(tmp_path, b"<html>not found</html>"))
    with pytest.raises(WeightsError, match="holds a list, not parameters by name"):
        read_pdparams(pickled(tmp_path, [1, 2], 2))
