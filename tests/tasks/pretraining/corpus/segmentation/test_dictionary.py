"""A dictionary of one's own: the longest match, kinds, and what is wrong with the file."""

import hashlib
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.pretraining.corpus.segmentation.dictionary import Dictionary


def dictionary(folder, content, kind="phrase"):
    path = folder / "dictionary.txt"
    path.write_text(content, encoding="utf-8")
    return Dictionary(path, kind)


def found(spans, text):
    kinds = spans.words, spans.phrases, spans.entities
    return [[text[begin:end] for begin, end in units.tolist()] for units in kinds]


def test_the_longest_entry_is_found_with_its_kind(tmp_path):
    content = "南京\tentity\n南京市\tentity\n长江大桥\n桥\tword\n\n art \tword\nNew York\tentity\n"
    made = dictionary(tmp_path, content)
    texts = ["南京市长江大桥的桥", "南京 party art. Arts, in New York!", "", "New Yorker桥art桥"]
    assert [found(*each) for each in zip(made.segment(texts), texts, strict=True)] == [
        [["桥", "桥"], ["长江大桥"], ["南京市"]],
        [["art"], [], ["南京", "New York"]],
        [[], [], []],
        [["桥", "art", "桥"], [], []],
    ]
    assert made.dictionary_sha256 == hashlib.sha256(content.encode()).hexdigest()
    again = pickle.loads(pickle.dumps(made))
    assert found(again.segment(texts[:1])[0], texts[0]) == [["桥", "桥"], ["长江大桥"], ["南京市"]]
    assert found(dictionary(tmp_path, "南京\n", "entity").segment(["南京"])[0], "南京") == [[], [], ["南京"]]


@given(st.lists(st.text("中文字", min_size=1, max_size=4), min_size=1), st.text("中文字x", max_size=20))
def test_matches_are_those_of_a_plain_search(tmp_path_factory, entries, text):
    made = dictionary(tmp_path_factory.mktemp("own"), "\n".join(entries), "word")
    wanted, place = [], 0
    while place < len(text):
        fits = [entry for entry in entries if text.startswith(entry, place)]
        wanted += [max(fits, key=len)] if fits else []
        place += len(wanted[-1]) if fits else 1
    assert found(made.segment([text])[0], text)[0] == wanted


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a\tword\nb\tnoun\n", r"dictionary\.txt:2: the kind must be one of word, phrase, entity, not 'noun'"),
        ("\tword\n", r"dictionary\.txt:1: there is no entry before the tab"),
        ("\n \n", r"dictionary\.txt: there is no entry in the dictionary; write one a line"),
    ],
)
def test_what_is_wrong_with_the_file_is_told(tmp_path, content, told):
    with pytest.raises(DataError, match=told):
        dictionary(tmp_path, content)
