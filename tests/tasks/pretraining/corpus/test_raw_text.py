"""Raw text: each format gives the same documents, and what is wrong is told with file and line."""

import gzip
import json

import pytest

from onion.errors import DataError
from onion.tasks.pretraining.corpus import raw_text
from onion.tasks.pretraining.corpus.raw_text import FORMATS, read_documents

PLAIN = "\ufeff\n 北京 \n第一段。\r\n\u3000\n\nParis\nA city.\nIt is old.\n\n"
JSON = (
    {"title": "北京", "text": "北京\n\n 第一段。\r\n", "url": "x"},
    {"title": "", "paragraphs": ["", "\n"]},
    {"title": "Paris", "paragraphs": ["A city.", "It is old."]},
)
LINES = "\n".join(json.dumps(each) for each in JSON) + "\n\n"
WANTED = [("北京", "第一段。"), ("Paris", "A city.", "It is old.")]


def put(path, content):
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if path.suffix.lower() == ".gz" else content)
    return path


@pytest.mark.parametrize("ending", FORMATS)
def test_the_same_documents_in_every_format(tmp_path, ending):
    path = put(tmp_path / f"a{ending.upper()}", LINES if "json" in ending else PLAIN)
    found = list(read_documents(path))
    assert [each.paragraphs for each in found] == WANTED
    assert [each.line for each in found] == ([1, 3] if "json" in ending else [2, 6])
    assert {each.path for each in found} == {path}


WRONG = {
    "json": ("a.jsonl", '{"text": "a"}\n{"text": ', "a.jsonl:2: broken JSON at column 10"),
    "list": ("a.jsonl", '["a"]', "a.jsonl:1: this line is a JSON list"),
    "no text": ("a.jsonl", '{"content": "a"}', "a.jsonl:1: either 'text' or 'paragraphs', and perhaps 'title'"),
    "two texts": ("a.jsonl", '{"text": "a", "paragraphs": []}', "it has 'text', 'paragraphs'"),
    "number": ("a.jsonl", '{"text": 1}', "a.jsonl:1: 'title' and 'text' must be strings, 'paragraphs' a list"),
    "numbers": ("a.jsonl", '{"paragraphs": ["a", 1]}', "a.jsonl:1: 'title' and 'text' must be strings"),
    "no title": ("a.jsonl", '{"paragraphs": ["a"], "title": null}', "a.jsonl:1: 'title' and 'text' must be strings"),
    "surrogate": ("a.jsonl", '{"text": "a\\ud800"}', "a.jsonl:1: the text has an unpaired surrogate"),
    "not UTF-8": ("a.txt.gz", b"a\n\xff\n", "a.txt.gz:2: byte 0xff at offset 0 of this line is not UTF-8"),
    "nothing": ("a.txt", " \n\n", "a.txt: there is no text in the file"),
    "no documents": ("a.jsonl", '{"text": " "}', "a.jsonl: there is no text in the file"),
    "ending": ("a.gz", "a", "a.gz: cannot tell the format by the ending; name the file .txt, .jsonl, .txt.gz"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path, name):
    file, content, told = WRONG[name]
    with pytest.raises(DataError) as error:
        list(read_documents(put(tmp_path / file, content)))
    assert str(error.value).startswith(str(tmp_path))
    assert told in str(error.value)


def test_a_damaged_gzip_file_is_told_where_it_breaks(tmp_path):
    path = put(tmp_path / "a.txt.gz", "".join(f"line {number}\n\n" for number in range(9)))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    found = read_documents(path)
    with pytest.raises(DataError, match=r"a\.txt\.gz:\d+: the file is not gzip, or was cut off here"):
        list(found)
    path.write_bytes(b"plain")
    with pytest.raises(DataError, match=r"a\.txt\.gz:1: the file is not gzip"):
        next(read_documents(path))


def test_documents_come_one_by_one_and_none_fills_the_memory(tmp_path, monkeypatch):
    path = put(tmp_path / "a.txt", "a\n\n" + "b\n" * 5)
    monkeypatch.setattr(raw_text, "MAX_CHARACTERS", 4)
    found = read_documents(path)
    assert next(found).paragraphs == ("a",)
    with pytest.raises(DataError, match=r"a\.txt:3: this document has more than .* put a blank line between documents"):
        next(found)
