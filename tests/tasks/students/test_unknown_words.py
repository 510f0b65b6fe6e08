"""The unknown word of copies is the teacher's own, for a teacher whose tokenizer writes it in another way."""

import json

import numpy as np
import pytest

from onion.models.tokenizer import Tokenizer
from onion.tasks.finetune.fine_tune import train as fine_tuned
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.students.augmentation import UNKNOWN_WORDS, Augmentation
from onion.tasks.students.kept_logits import logits_of
from onion.tasks.students.unknown_words import as_read_by, unknown_word
from tests.tasks.helpers import tiny_encoder


@pytest.fixture(scope="module")
def other_encoder(tmp_path_factory):
    """An encoder whose unknown token is written as RoBERTa's."""
    folder = tiny_encoder(tmp_path_factory.mktemp("other") / "encoder")
    words = (folder / "vocab.txt").read_text(encoding="utf-8")
    (folder / "vocab.txt").write_text(words.replace("[UNK]", "<unk>"), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"unk_token": "<unk>"}))
    return folder


@pytest.fixture(scope="module")
def teacher(other_encoder, make_settings, tmp_path_factory):
    out = tmp_path_factory.mktemp("taught") / "out"
    fine_tuned(make_settings(encoder=str(other_encoder), passes=1), out)
    return Predictor.load(out)


def test_each_tokenizer_reads_its_own_as_one_token(tokenizer, other_encoder):
    other = Tokenizer.from_pretrained(other_encoder)
    assert (unknown_word(tokenizer), unknown_word(other)) == ("[UNK]", "<unk>")
    assert other(["a <unk> film"])[0].ids.tolist().count(other.unk_id) == 1


def test_copies_have_it_as_they_are_asked_to():
    texts = ["a lovely warm film of an actor"] * 50
    copies = [
        Augmentation(texts, "english", 1, {UNKNOWN_WORDS: 1.0}, unknown="<unk>")(texts[:1], each, 0)
        for each in range(50)
    ]
    assert any("<unk>" in text for (text,) in copies)
    assert not any("[UNK]" in text for (text,) in copies)


def test_a_teacher_is_asked_in_its_own_words(teacher):
    students, own = ([*teacher.task.text_rows([text])] for text in ("a [UNK] film", "a <unk> film"))
    assert as_read_by(teacher.tokenizer, students)[0].cells == own[0].cells
    assert np.array_equal(logits_of(teacher, students), logits_of(teacher, own))
