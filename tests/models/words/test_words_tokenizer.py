"""Texts into words in three ways, and a tokenizer of a list of words that is read back."""

import builtins
import json
import pickle

import numpy as np
import pytest

from onion.errors import DataError, OnionError, WeightsError
from onion.models.tokenizer import Tokenizer
from onion.models.words.config import WordsConfig
from onion.models.words.splitting import joined, splitter, splitting_of, tagged
from onion.models.words.tokenizer import word_tokenizer

WORDS = ["a", "film", "great", "bad"]


def saved(folder, words=WORDS, splitting="english"):
    tokenizer = word_tokenizer(words, splitting)
    tokenizer.save_pretrained(folder)
    WordsConfig(model_type="bow", vocab_size=tokenizer.vocab_size).write(folder)
    return tokenizer


@pytest.mark.parametrize(
    ("splitting", "text", "words"),
    [
        ("english", "It's GREAT, isn't it? 90s", ["it's", "great", ",", "isn't", "it", "?", "90s"]),
        ("english", "a [UNK] film [x]", ["a", "[UNK]", "film", "[", "x", "]"]),
        ("spaces", " 选择  珠江 花园\t[UNK] ", ["选择", "珠江", "花园", "[UNK]"]),
        ("english", "", []),
        ("spaces", "　 \n", []),
    ],
)
def test_words_of_a_text(splitting, text, words):
    assert splitter(splitting)(text) == words


def test_chinese_words():
    pytest.importorskip("rjieba")
    words = ["酒店", "的", "[UNK]", "服务", "很", "好", "wifi", "ok"]
    assert splitter("chinese")("酒店的[UNK]服务很好WiFi OK") == words
    assert joined(words, "chinese") == "酒店的[UNK]服务很好wifi ok"
    assert dict(tagged("酒店的服务很好")) == {"酒店": "n", "的": "uj", "服务": "vn", "很": "zg", "好": "a"}
    assert [word for word, _ in tagged("酒店[UNK]好")] == ["酒店", "好"]


@pytest.mark.parametrize(
    ("texts", "splitting"),
    [
        (["A great film.", "90 % 好"], "english"),
        (["酒店的服务很好", "ok 我们选择这里的原因"], "chinese"),
        (["酒店 的 服务 很 好", "我们 选择 这里"], "spaces"),
        ([], "english"),
    ],
)
def test_the_splitting_that_suits_texts(texts, splitting):
    assert splitting_of(texts) == splitting


def test_without_rjieba_the_extra_is_named(monkeypatch):
    found = builtins.__import__

    def missing(name, *rest):
        if name == "rjieba":
            raise ModuleNotFoundError(name=name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(OnionError, match=r"Chinese words need rjieba: pip install 'onion-paddle\[chinese\]'"):
        word_tokenizer(["好"], "chinese")


def test_ids_of_a_text_and_of_a_pair():
    tokenizer = word_tokenizer(WORDS, "english")
    text, empty = tokenizer(["A great [UNK] film [SEP]", ""])
    assert tokenizer.tokens(text.ids) == ["a", "great", "[UNK]", "film", "[UNK]", "[UNK]", "[UNK]", "[SEP]"]
    assert tokenizer.tokens(empty.ids) == ["[SEP]"]
    (pair,) = tokenizer(["A film"], ["bad"])
    assert tokenizer.tokens(pair.ids) == ["a", "film", "[SEP]", "bad", "[SEP]"]
    assert pair.types.tolist() == [0, 0, 0, 1, 1]
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.vocab_size) == (0, 4, 9)


def test_a_text_that_is_cut_and_words_with_places():
    tokenizer = word_tokenizer(WORDS, "english")
    (cut,) = tokenizer(["a film a film"], max_length=3)
    assert (tokenizer.tokens(cut.ids), cut.truncated) == (["a", "film", "[SEP]"], True)
    (placed,) = tokenizer([["great", "film"]], offsets=True, pre_split=True)
    assert placed.offsets.tolist() == [[0, 5], [0, 4], [0, 0]]
    assert placed.words.tolist() == [0, 1, -1]
    with pytest.raises(DataError, match="knows no offsets"):
        tokenizer(["a film"], offsets=True)


def test_a_tokenizer_that_is_saved_and_read_back(tmp_path):
    tokenizer = saved(tmp_path)
    for again in (Tokenizer.from_pretrained(tmp_path), pickle.loads(pickle.dumps(tokenizer))):
        assert again.files() == tokenizer.files()
        assert np.array_equal(again(["A bad film"])[0].ids, tokenizer(["A bad film"])[0].ids)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("words.txt", "[PAD]\na\n", "special tokens are missing"),
        ("words.txt", "\x80", "words.txt"),
        ("tokenizer_config.json", json.dumps({"word_splitting": "german"}), "word_splitting must be one of spaces"),
        ("tokenizer_config.json", "{}", "word_splitting must be one of spaces"),
    ],
)
def test_damaged_files(name, content, told, tmp_path):
    saved(tmp_path)
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(WeightsError, match=told):
        Tokenizer.from_pretrained(tmp_path)
