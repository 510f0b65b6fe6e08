"""Sentence order: every pair of a hand-written corpus."""

import numpy as np
import pytest

from onion.errors import DataError
from onion.tasks.pretraining.tasks.sentence_order import SentenceOrder
from tests.tasks.pretraining.texts import (
    assert_drawn_by_seed_and_pass,
    corpus_of,
    drawn,
    examples_of,
    learnt,
    tokenizer_of,
)

ORDERED, SWAPPED = SentenceOrder().classes


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tokenizer_of(tmp_path_factory.mktemp("vocabulary"), "甲乙丙丁戊己庚辛壬癸子丑寅卯。")


def test_a_hand_written_corpus_has_these_pairs_and_no_others(tokenizer):
    corpus = corpus_of(tokenizer, ["甲乙。丙丁。", "戊己庚。"], ["癸。"], ["子。丑。"])
    assert drawn(SentenceOrder(), corpus) == {
        ("甲乙。/丙丁。戊己庚。/", ORDERED),
        ("丙丁。戊己庚。/甲乙。/", SWAPPED),
        ("甲乙。丙丁。/戊己庚。/", ORDERED),
        ("戊己庚。/甲乙。丙丁。/", SWAPPED),
        ("子。/丑。/", ORDERED),
        ("丑。/子。/", SWAPPED),
    }


def documents(count, seed):
    """Documents whose sentences begin with their place, among characters that say nothing."""
    generator = np.random.default_rng(seed)
    return [["".join(f"{place}{generator.choice([*'壬癸子丑'])}。" for place in "甲乙丙丁戊己")] for _ in range(count)]


def test_half_of_the_examples_are_swapped(tokenizer):
    found = examples_of(SentenceOrder(), corpus_of(tokenizer, *documents(300, 0)), 5)
    assert np.mean([each["label"] for each in found]) == pytest.approx(0.5, abs=0.04)


def test_examples_depend_on_seed_and_pass(tokenizer):
    assert_drawn_by_seed_and_pass(SentenceOrder(), corpus_of(tokenizer, *documents(20, 1)))


def test_no_part_of_a_sentence_tells_the_order(tokenizer):
    # Room for 9 tokens; a sentence of 12 is cut, and its end and beginning would stand beside whole sentences.
    corpus = corpus_of(tokenizer, ["甲乙。" + "丙" * 11 + "。丁戊。己庚。辛壬。子。丑。"])
    found = drawn(SentenceOrder(max_length=12), corpus)
    assert {text for text, _ in found} == {
        "辛壬。/子。丑。/",
        "子。丑。/辛壬。/",
        "辛壬。子。/丑。/",
        "丑。/辛壬。子。/",
    }


def test_a_corpus_without_pairs_is_refused(tokenizer):
    with pytest.raises(DataError, match="sentence-order: no document of the corpus has two sentences in a row"):
        SentenceOrder().samples(corpus_of(tokenizer, ["甲乙。"], ["丙丁。"]), 0)


def test_a_network_learns_the_order(tokenizer):
    task = SentenceOrder()
    train, held_out = (examples_of(task, corpus_of(tokenizer, *documents(count, count)), 1) for count in (600, 150))
    baseline = task.baseline(train, held_out)
    assert set(baseline) == {"accuracy.commonest", "accuracy.lengths"}
    assert learnt(task, train, held_out, passes=4) > max(baseline.values()) + 0.1
