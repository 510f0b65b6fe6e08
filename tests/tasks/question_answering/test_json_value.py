import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.question_answering.json_value import Place, read_json

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)


@pytest.fixture
def root(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('\ufeff{"list": [{"text": "über"}, 5, "5", true, 1.5, "\\ud83d"], "long": "' + "x" * 99 + '"}')
    return read_json(path)


def test_the_way_to_a_value(root):
    first, number, digits, truth, *_ = root["list"].items()
    assert (first["text"].text(), number.whole(), digits.text(), truth.truth()) == ("über", 5, "5", True)
    assert (number.word(), digits.word()) == ("5", "5")
    assert str(first["text"]).endswith("a.json: list[0].text")
    assert str(root).endswith("a.json")
    assert str(first.called("id 7")["text"]).endswith("a.json: list[0] (id 7).text")
    assert ("list" in root, "other" in root, "list" in number) == (True, False, False)


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda items: items[0]["other"], "list[0]: there is no 'other' here, only 'text'"),
        (lambda items: items[1]["text"], "list[1]: is 5, not an object with 'text'"),
        (lambda items: list(items[0].items()), 'list[0]: is {"text": "\\u00fcber"}, not a list'),
        (lambda items: items[1].text(), "list[1]: is 5, not a string"),
        (lambda items: items[2].whole(), 'list[2]: is "5", not an integer'),
        (lambda items: items[3].whole(), "list[3]: is true, not an integer"),
        (lambda items: items[4].word(), "list[4]: is 1.5, not an integer"),
        (lambda items: items[1].truth(), "list[1]: is 5, not true or false"),
        (lambda items: items[5].text(), "list[5]: has an unpaired surrogate"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(root, ask, told):
    with pytest.raises(DataError) as caught:
        ask(list(root["list"].items()))
    assert f"a.json: {told}" in str(caught.value)


def test_a_long_value_is_shown_in_part(root):
    with pytest.raises(DataError, match=r'long: is "x{36}\.\.\., not a list'):
        list(root["long"].items())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{\n"a": }', r"a\.json:2: broken JSON at column 6"),
        (b"", r"a\.json:1: broken JSON at column 1"),
        (b'{"a":\n"\xff"}', r"a\.json:2: byte 0xff is not UTF-8"),
        (b"[" * 100_000, r"a\.json: JSON that Python does not read"),
        (b"1" * 5000, r"a\.json: JSON that Python does not read"),
    ],
)
def test_files_that_do_not_do(tmp_path, content, told):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DataError, match=told):
        read_json(tmp_path / "a.json")


@given(JSON)
def test_any_value_is_what_was_asked_for_or_an_error(value):
    place = Place("a.json", "x", json.loads(json.dumps(value)))
    for ask in (place.text, place.whole, place.word, place.truth, lambda: list(place.items()), lambda: place["a"]):
        try:
            told = ask() and ""
        except DataError as error:
            told = str(error)
        assert not told or told.startswith("a.json: x: ")
