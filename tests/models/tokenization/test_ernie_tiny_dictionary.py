import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import WeightsError
from onion.models.tokenization.ernie_tiny_dictionary import WordDictionary, read_dictionary

WORDS = ["ab", "abc", "cd", "bcdea", "abcdea", "c", "e a", ""]


def write(tmp_path, value, protocol=2):
    (tmp_path / "dict.wordseg.pickle").write_bytes(pickle.dumps(value, protocol=protocol))
    return tmp_path / "dict.wordseg.pickle"


@given(text=st.text(st.sampled_from("abcde "), max_size=20))
def test_the_cut_is_the_greedy_one(text):
    found, rest = [], text
    while rest:
        length = next((length for length in (5, 4, 3, 2, 1) if rest[:length] in WORDS), 1)
        found.append(rest[:length])
        rest = rest[length:]
    assert WordDictionary(WORDS).cut(text) == found


@pytest.mark.parametrize("kind", [dict.fromkeys, set, frozenset, list, tuple])
def test_any_container_of_words_is_read(tmp_path, kind):
    assert read_dictionary(write(tmp_path, kind(["中国", "a"]))).words == {"中国", "a"}


def test_bytes_are_utf_8(tmp_path):
    assert read_dictionary(write(tmp_path, {"中".encode(): 1, "a": 2}, 4)).words == {"中", "a"}
    with pytest.raises(WeightsError, match=r"dict\.wordseg\.pickle: entry 1 is not UTF-8"):
        read_dictionary(write(tmp_path, ["a", b"\xff"], 4))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("words", "contains a str, not a dict, set or list of words"),
        (3, "contains a int"),
        (["a", 3], "entry 1 is a int, not a word"),
        ([["a"]], "entry 0 is a list, not a word"),
        ({"a": 1, None: 2}, "entry 1 is a NoneType"),
    ],
)
def test_anything_else_is_refused(tmp_path, value, message):
    with pytest.raises(WeightsError, match=rf"dict\.wordseg\.pickle: {message}"):
        read_dictionary(write(tmp_path, value))


def test_what_is_written_is_read_again(tmp_path):
    dictionary = WordDictionary(WORDS)
    (tmp_path / "again").write_bytes(dictionary.to_bytes())
    assert read_dictionary(tmp_path / "again").words == dictionary.words
    assert pickle.loads(dictionary.to_bytes()).keys() == set(WORDS)
