import io
import pickle
import re
from collections import OrderedDict
from contextlib import suppress

import numpy as np
import pytest

from onion.errors import WeightsError
from onion.models.formats.pickle_containers import read_containers
from tests.models.foreign_files import named, number, text
from tests.models.formats.test_safe_pickle import DEEP

WORDS = ["中国", "的", "a", "", "long word", "\U0001f44d", "line\nend", "quote'\"", "back\\slash", "é"]


def write(tmp_path, data):
    (tmp_path / "dict.wordseg.pickle").write_bytes(data)
    return tmp_path / "dict.wordseg.pickle"


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "value",
    [
        {word: number for number, word in enumerate(WORDS)},
        {word: {"n": -number, "f": number / 3} for number, word in enumerate(WORDS)},
        OrderedDict.fromkeys(WORDS, True),
        set(WORDS),
        frozenset(WORDS),
        WORDS,
        tuple(WORDS),
        [],
        {},
        set(),
        {f"{i}字": f"{i}字" for i in range(2000)},
        {word: [1 << 70, -(1 << 70), 300, -1, 1e300, None, False, (1, 2)] for word in WORDS},
    ],
)
def test_containers_of_every_protocol(tmp_path, value, protocol):
    found = read_containers(write(tmp_path, pickle.dumps(value, protocol=protocol)))
    assert found == value
    assert isinstance(found, type(value) if not isinstance(value, dict) else dict)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"(dp0\nS'\\xe4\\xb8\\xad'\np1\nI1\nsS'it\\'s'\nL5L\ns.", {"中": 1, "it's": 5}),
        (b'(lp0\nS"it\'s"\np1\naV\\u4e2d\np2\nag1\na.', ["it's", "中", "it's"]),
        (b"\x80\x02}q\x00U\x03\xe4\xb8\xadq\x01K\x01s.", {"中": 1}),
        (b"\x80\x02c__builtin__\nset\nq\x00]q\x01(U\x03\xe4\xb8\xadq\x02U\x01aq\x03e\x85q\x04Rq\x05.", {"中", "a"}),
        (b"c__builtin__\nset\np0\n((lp1\nS'a'\np2\naS'\\xe4\\xb8\\xad'\np3\natp4\nRp5\n.", {"a", "中"}),
        (b"(I01\nF1.5\nNS''\nl.", [True, 1.5, None, ""]),
        (b"]q\x00(T\x03\x00\x00\x00\xe4\xb8\xadX\x03\x00\x00\x00\xe4\xb8\xade.", ["中", "中"]),
        (b"}(U\x01aK\x01U\x01bK\x02u.", {"a": 1, "b": 2}),
    ],
)
def test_what_python_2_writes(tmp_path, data, expected):
    """Written out from Python 2.7's pickle and cPickle: strings of bytes, in UTF-8."""
    assert read_containers(write(tmp_path, data)) == expected


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        (b"(" + text("x") + b"ios\nsystem\n", "INST os system"),
        (b"cos\nsystem\n(S'true'\ntR", "os.system"),
        (b"c__builtin__\neval\n(S'1'\ntR", "__builtin__.eval"),
        (b"c__builtin__\nset\n(c__builtin__\neval\n(S'1'\ntRtR", "__builtin__.eval"),
        (b"c__builtin__\nset\n)\x81", "NEWOBJ"),
        (named("numpy", "ndarray"), "numpy.ndarray"),
        (b"\x82\x01", "EXT1"),
        (b"P1\n", "PERSID 1"),
        (text("x") + b"Q", "BINPERSID"),
        (text("x") + b")R", "a call of str"),
        (text("a") + b"2", "DUP"),
        (b"(0", "POP"),
    ],
)
def test_what_words_do_not_need_is_refused_by_name(tmp_path, code, refused):
    path = write(tmp_path, b"\x80\x04}" + text("w") + code + b"s.")
    message = (
        rf"the pickle needs '{re.escape(refused)}.*', which is not allowed for lists of words; nothing was executed"
    )
    with pytest.raises(WeightsError, match=message):
        read_containers(path)


LONG = b"](" + b"NN" * 500 + b"eq\x00"  # a list of a thousand entries, remembered


@pytest.mark.parametrize(
    "code",
    [
        b"\x8f(}\x90.",  # a dict in a set
        b"\x8f(" + DEEP + b"\x90.",
        b"(" + DEEP + b"\x91.",
        b"c__builtin__\nset\n(](" + DEEP + b"etR.",
        b"}" + DEEP + b"K\x01s.",
        b"c__builtin__\nset\n(S'ab'\ntR.",
        b"c__builtin__\nset\n(K\x01tR.",
        b"]" + LONG + b"a" + b"c__builtin__\nset\n(h\x00tRa" * 500 + b".",  # a small file, much memory
        b"(K\x01d.",
        b"](K\x01\x90.",
        b"S'a\n.",
        b"Sa'\n.",
        b"S'a'",
        b"S'\\xff'\n.",
        b"U\x01\xff.",
        b"S'\\x4'\n.",
        b"I4x\n.",
        b"L4x\n.",
        b"F4x\n.",
        b"V\\ud8\n.",
        b"g7\n.",
        b"p0\n.",
        b"a.",
        b"s.",
        b"l.",
        b"\xff.",
        b"",
        b".",
        b"<html>not found</html>",
        b"X\xff\xff\xff\x7f.",
        b"\x8d" + b"\xff" * 8,
        b"K\x01",
    ],
)
def test_damage_is_named(tmp_path, code):
    with pytest.raises(WeightsError, match=r"dict\.wordseg\.pickle: (a damaged pickle|the pickle needs)"):
        read_containers(write(tmp_path, code))


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_cut_anywhere_is_refused(tmp_path, protocol):
    data = pickle.dumps({"words": set(WORDS[:4]), "中": [1, 2.5, "é"]}, protocol=protocol)
    for length in range(len(data)):
        with pytest.raises(WeightsError, match="a damaged pickle"):
            read_containers(write(tmp_path, data[:length]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python's, of escapes that are none
@pytest.mark.parametrize("protocol", range(6))
def test_flipped_bits_are_errors_or_containers_and_nothing_else(tmp_path, protocol):
    data = bytearray(pickle.dumps({"words": set(WORDS), "n": [1, 2.5], "中": frozenset(WORDS)}, protocol=protocol))
    generator = np.random.default_rng(protocol)

    def plain(value):
        if isinstance(value, dict):
            return all(map(plain, [*value, *value.values()]))
        if isinstance(value, (list, tuple, set, frozenset)):
            return all(map(plain, value))
        return value is None or isinstance(value, (str, bytes, bytearray, int, float))

    for at in generator.integers(0, len(data), 400):
        damaged = bytearray(data)
        damaged[at] ^= 1 << int(generator.integers(8))
        with suppress(WeightsError):
            assert plain(read_containers(write(tmp_path, damaged)))


def test_no_such_file(tmp_path):
    with pytest.raises(WeightsError, match="cannot read: No such file"):
        read_containers(tmp_path / "nothing")


def test_the_data_of_python_2_is_what_the_unpickler_reads_too():
    """The samples above are pickles: Python's own unpickler, told the encoding, reads the same."""
    data = b"(dp0\nS'\\xe4\\xb8\\xad'\np1\nI1\nsS'it\\'s'\nL5L\ns."
    assert pickle.load(io.BytesIO(data), encoding="utf-8") == {"中": 1, "it's": 5}


def test_numbers_may_stand_in_sets(tmp_path):
    data = b"\x8f(" + number(3) + text("a") + b"\x90."
    assert read_containers(write(tmp_path, data)) == {3, "a"}
