import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.data.labels import Labels
from onion.tasks.data.rows import Row
from onion.tasks.token_classification.tagged_text import labelled_text, read_label_map, unlabelled_text

WORDS = st.lists(st.text(st.characters(exclude_characters="\x02", exclude_categories=["Cs"]), max_size=4))
ANYTHING = st.one_of(
    st.none(), st.integers(), st.text(max_size=5), st.lists(st.one_of(st.text(max_size=3), st.integers()), max_size=4)
)


def row(**cells):
    return Row(Path("a.jsonl"), 3, cells)


def both(words, tags):
    return row(text_a=words, label=tags)


def test_words_and_tags_by_hand():
    text = labelled_text(both("科\x02技\x02AB", "O\x02B-x\x02I-x"), characters=True)
    assert (text.text, text.words, text.tags) == ("科技AB", ["科", "技", "AB"], ["O", "B-x", "I-x"])
    assert text.places == [(0, 1), (1, 2), (2, 4)]
    text = labelled_text(both(["New", "", "York"], ["O", "O", "O"]), characters=False)
    assert (text.text, text.places) == ("New  York", [(0, 3), (4, 4), (5, 9)])


def test_a_text_that_is_not_joined_is_one_word_where_it_has_a_tag():
    assert labelled_text(both("New York", "O"), characters=False).words == ["New York"]
    assert labelled_text(both("", "O"), characters=True).words == [""]


def test_a_list_says_by_itself_where_a_tag_ends():
    assert labelled_text(both(["Guernica"], [" B-work of art "]), characters=False).tags == ["B-work of art"]


@pytest.mark.parametrize(
    ("characters", "words", "places"),
    [
        (True, ["中", "国", "A", "I", "。"], [(0, 1), (1, 2), (3, 4), (4, 5), (7, 8)]),
        (False, ["中国", "AI", "。"], [(0, 2), (3, 5), (7, 8)]),
    ],
)
def test_a_plain_text_is_cut(characters, words, places):
    text = unlabelled_text(row(text_a="中国 AI\u3000\t。\n"), characters)
    assert (text.words, text.places, text.text) == (words, places, "中国 AI\u3000\t。\n")


def test_without_tags_words_are_told_by_the_mark_or_the_list():
    assert unlabelled_text(row(text_a="New York\x02 \x02is"), characters=False).words == ["New York", " ", "is"]
    assert unlabelled_text(row(text_a=["New York"]), characters=True).words == ["New York"]
    assert unlabelled_text(row(text_a=[]), characters=True).words == []
    assert unlabelled_text(row(text_a=" "), characters=True).words == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("She met Jo in Berlin.", "She met Jo in Berlin ."),
        ('"U.N." (AT&T), it\'s 5,000!?', '" U.N . " ( AT&T ) , it\'s 5,000 ! ?'),
        ("... -- $5", ". . . - - $ 5"),
        ("हिन्दी है।", "हिन्दी है ।"),  # ends with vowel signs, which are no punctuation
        (" ", ""),
    ],
)
def test_punctuation_at_the_ends_of_words_is_apart_where_it_is_so_in_the_training_file(text, words):
    split = unlabelled_text(row(text_a=text), characters=False, punctuation=True)
    assert split.words == words.split()
    assert split.text == text
    assert unlabelled_text(row(text_a=text), characters=False).words == text.split()


@pytest.mark.parametrize(
    ("words", "tags", "what"),
    [
        ("a\x02b", "O", "text_a has 2 words, but label has 1 tags"),
        ("a b", "O\x02O", r"text_a has 1 words, but label has 2 tags; join both by U\+0002"),
        (["a", "b"], ["O", ""], "tag 2 is empty"),
        ("John went", "B-P O", r"tag 1 in label, 'B-P O', contains whitespace; join words and tags by U\+0002, or"),
        ("a\x02b", "O\x02B-P\u3000O", r"tag 2 in label, 'B-P\\u3000O', contains whitespace"),
        ([], [], "this row has no words; remove it"),
        (["a", 5], ["O", "O"], r"text_a\[1\] is 5, not a string"),
        (["a"], [None], r"label\[0\] is empty \(null\)"),
        (["\ud83d"], ["O"], r"text_a\[0\] has an unpaired surrogate"),
        (7, "O", "text_a is 7, not a string"),
        ({}, {}, "text_a is {}, not a string"),
    ],
)
def test_rows_that_do_not_do(words, tags, what):
    with pytest.raises(DataError, match=rf"^a\.jsonl:3: {what}"):
        labelled_text(both(words, tags), characters=True)


@given(WORDS, st.booleans(), st.booleans())
def test_words_stay_what_they_are_and_where_they_are(words, characters, joined):
    given_words = "\x02".join(words) if joined and len(words) > 1 else words
    text = unlabelled_text(row(text_a=given_words), characters)
    assert text.words == words
    assert text.text == ("" if characters else " ").join(words)
    assert all(one[1] <= other[0] for one, other in zip(text.places, text.places[1:], strict=False))


@settings(max_examples=300)
@given(ANYTHING, ANYTHING, st.booleans())
def test_whatever_stands_in_a_row_it_is_read_or_its_line_is_named(words, tags, characters):
    try:
        text = labelled_text(both(words, tags), characters)
        assert len(text.words) == len(text.tags) > 0
    except DataError as error:
        assert str(error).startswith("a.jsonl:3: ")  # noqa: PT017 - some rows are right
    try:
        json.dumps(unlabelled_text(row(text_a=words), characters).words)
    except DataError as error:
        assert str(error).startswith("a.jsonl:3: ")  # noqa: PT017 - some rows are right


def test_the_numbers_are_the_order(tmp_path):
    path = tmp_path / "label_map.json"
    for encoding in ("utf-8", "utf-8-sig"):
        path.write_text('{"B-人": 1, "O": 2, "I-人": 0}', encoding=encoding)
        assert read_label_map(path).names == ("I-人", "B-人", "O")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('{"O": 0', "broken JSON at column 8"),
        ("[" * 100000, "JSON that Python does not read"),
        ('{\n"\xff"', "byte 0xff is not UTF-8"),
        ("{}", "is not a label map"),
        ("[]", "is not a label map"),
        ('{"O": "0"}', "is not a label map"),
        ('{"O": 0, "B": true}', "is not a label map"),
        ('{"O": 0, "B": 2}', "no label has the number 1, and 'B' has 2; number the 2 labels from 0 to 1"),
        ('{"O": 1, "B": 2}', "no label has the number 0, and 'O' has 1"),
        ('{"O": 0, "B": 0}', "no label has the number 1, and 'B' has 0"),
    ],
)
def test_label_maps_that_do_not_do(tmp_path, content, what):
    path = tmp_path / "map.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=rf"map\.json(:\d)?: {what}"):
        read_label_map(path)


@given(st.one_of(st.binary(max_size=20), st.dictionaries(st.text(max_size=3), st.integers(-1, 3), max_size=4)))
def test_labels_or_an_error_with_the_file(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "map.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    try:
        assert isinstance(read_label_map(path), Labels)
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - some maps are right
