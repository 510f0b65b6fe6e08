"""What is so of most examples is told, wherever features are made; what is so of a few is not."""

import logging
from collections import Counter

import numpy as np
import pytest

from onion.models.tokenizer import Tokenizer
from onion.tasks.classification import Classification
from onion.tasks.data.features.cache import cached_features
from onion.tasks.data.features.stream import FeatureStream
from onion.tasks.data.features.text_checks import Tally
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.embedding.files import embed_file
from onion.tasks.finetune.fine_tune import train
from onion.tasks.finetune.inference import evaluate, predict, predict_lines, predict_texts
from tests.tasks.helpers import films, write_tsv

PAD, UNK, CLS, SEP, MASK, WORD = range(6)
EMPTY, UNKNOWN, FILM = [CLS, SEP], [CLS, UNK, UNK, SEP], [CLS, WORD, UNK, SEP]
SILENT = "texts without any token, out of {} (are the texts missing, or is the tokenizer incomplete?)"
UNFIT = "does the vocabulary fit these texts? The encoder minilm is for English, wiki-zh for Chinese"
STRANGE = f"texts of unknown tokens only, out of {{}} ({UNFIT})"
STRANGE_TOKENS = f"unknown tokens, out of {{}} ({UNFIT})"


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([], {}),
        ([FILM], {}),
        ([EMPTY], {SILENT.format(1): 1}),
        ([EMPTY, FILM], {}),
        ([FILM, EMPTY, [CLS, PAD, SEP, SEP]], {SILENT.format(3): 2}),
        ([UNKNOWN, UNKNOWN, FILM], {STRANGE.format(3): 2}),
        ([UNKNOWN, EMPTY, FILM], {SILENT.format(3): 1, STRANGE.format(3): 1}),
        ([[CLS, WORD, UNK, UNK, SEP]], {STRANGE_TOKENS.format(3): 2}),
        ([FILM, UNKNOWN, [CLS, WORD, SEP]], {STRANGE_TOKENS.format(5): 3}),
        ([FILM, UNKNOWN, [CLS, WORD, WORD, SEP]], {}),  # half of them
        ([[CLS, MASK, SEP]], {}),  # what a masked language model is asked
        ([FILM, [], EMPTY, []], {SILENT.format(4): 3}),
    ],
)
@pytest.mark.parametrize("chunk", [1, 2, 9])
def test_more_than_half_is_told(tokenizer, ids, told, chunk):
    tally, notes = Tally(tokenizer), Counter()
    examples = [{"ids": np.array(each, np.int64)} for each in ids]
    for begin in range(0, len(examples) + 1, chunk):
        tally.add(examples[begin : begin + chunk])
    tally.note(notes)
    assert notes == told


def test_what_nothing_can_be_learned_from(tokenizer):
    for unlearned, told in ((1, []), (2, [2])):
        tally, notes = Tally(tokenizer), Counter()
        tally.add([{"ids": np.array(FILM)}] * 3, unlearned)
        tally.note(notes)
        assert list(notes.values()) == told


@pytest.fixture
def told(caplog, tmp_path, monkeypatch):
    """What was told since it was asked last."""
    monkeypatch.setenv("ONION_HOME", str(tmp_path / "home"))
    caplog.set_level(logging.WARNING, "onion")

    def since():
        found = list(caplog.messages)
        caplog.clear()
        return found

    return since


@pytest.fixture
def strange(tmp_path):
    """A file of words that no vocabulary has."""
    return write_tsv(tmp_path / "strange.tsv", [("qqq", "good"), ("www", "bad"), ("film", "good")])


def test_of_features_that_are_kept_or_streamed(told, strange, tokenizer):
    task = Classification(max_length=16).fitted(strange)
    for _ in range(2):
        assert cached_features(task, strange, tokenizer).notes == {STRANGE.format(3): 2}
    list(FeatureStream(task, strange, tokenizer))
    assert told() == [f"{strange}: {STRANGE.format(3)}: 2"]


def test_of_training_evaluation_and_prediction(told, strange, tmp_path, make_settings):
    settings = make_settings(train=str(strange), dev=str(strange), passes=1)
    train(settings, tmp_path / "out")
    once = f"{strange}: {STRANGE.format(3)}: 2"
    assert once in told()
    evaluate(tmp_path / "out", str(strange))
    assert told() == [once]
    assert len(list(predict(tmp_path / "out", str(strange)))) == 3
    assert told() == [once]
    list(predict_lines(tmp_path / "out", [b"\n", b" \n", b"film\n"], chunk=1))
    assert told() == [f"standard input: {SILENT.format(3)}: 2"]
    list(predict_texts(tmp_path / "out", ["film", "", "a"]))
    assert told() == []


def test_of_a_training_on_texts_of_another_language(told, tmp_path, make_settings):
    path = write_tsv(tmp_path / "chinese.tsv", [("中国人民", "good"), ("文学作品", "bad"), ("中华文明", "good")])
    train(make_settings(train=str(path), dev=str(path), passes=1), tmp_path / "out")
    assert told().count(f"{path}: {STRANGE_TOKENS.format(12)}: 8") == 1


def test_of_embeddings(told, tmp_path, encoder_folder):
    embedder = Embedder.from_pretrained(encoder_folder, max_length=16, batch_size=2)
    embedder(["", "film"])
    assert told() == []
    embedder(["", " ", "film"])
    assert told() == [f"the texts to embed: {SILENT.format(3)}: 2"]


def test_of_files_to_embed_that_a_broken_tokenizer_made_empty(told, tmp_path, encoder_folder, monkeypatch):
    monkeypatch.setattr("onion.tasks.embedding.files.CHUNK", 3)
    embedder = Embedder.from_pretrained(encoder_folder, max_length=16, batch_size=4)
    path = write_tsv(tmp_path / "a.tsv", films(50, seed=1))
    embed_file(embedder, path, tmp_path / "well")
    assert told() == []
    whole, cut = embedder.tokenizer, lambda texts, *more, **settings: whole([""] * len(texts), *more, **settings)
    broken = type("Broken", (Tokenizer,), {"__call__": lambda self, *given, **settings: cut(*given, **settings)})
    embedder.tokenizer = object.__new__(broken)
    vars(embedder.tokenizer).update(vars(whole))
    embed_file(embedder, path, tmp_path / "broken")
    assert told() == [f"{path}: {SILENT.format(50)}: 50"]
