import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.data.labels import Labels
from onion.tasks.token_classification.label_map import read_label_map


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
        ("{}", "not of the form"),
        ("[]", "not of the form"),
        ('{"O": "0"}', "not of the form"),
        ('{"O": 0, "B": true}', "not of the form"),
        ('{"O": 0, "B": 2}', "no label has the number 1, and 'B' has 2; number the 2 labels from 0 to 1"),
        ('{"O": 1, "B": 2}', "no label has the number 0, and 'O' has 1"),
        ('{"O": 0, "B": 0}', "no label has the number 1, and 'B' has 0"),
    ],
)
def test_files_that_do_not_do(tmp_path, content, what):
    path = tmp_path / "map.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=rf"map\.json(:\d)?: {what}"):
        read_label_map(path)


def test_no_file(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_label_map(tmp_path / "map.json")


@given(st.one_of(st.binary(max_size=20), st.dictionaries(st.text(max_size=3), st.integers(-1, 3), max_size=4)))
def test_labels_or_an_error_with_the_file(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "map.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    try:
        assert isinstance(read_label_map(path), Labels)
    except DataError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - some maps are right
