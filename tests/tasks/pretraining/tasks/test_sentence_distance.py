"""Sentence distance: every pair of a hand-written corpus, and that lengths tell nothing."""

import numpy as np
import pytest

from onion.errors import DataError
from onion.tasks.pretraining.baselines.text_baselines import by_number
from onion.tasks.pretraining.sampling.length_matching import limits
from onion.tasks.pretraining.tasks.sentence_distance import SentenceDistance
from tests.tasks.pretraining.texts import (
    assert_drawn_by_seed_and_pass,
    corpus_of,
    drawn,
    examples_of,
    learnt,
    tokenizer_of,
)

FOUR, TWO = ["甲乙。丙丁。", "戊己。庚辛。"], ["子丑。寅卯。"]
ADJACENT, SAME, OTHER = SentenceDistance().classes


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tokenizer_of(tmp_path_factory.mktemp("vocabulary"), "甲乙丙丁戊己庚辛壬癸子丑寅卯。")


def test_a_hand_written_corpus_has_these_pairs_and_no_others(tokenizer):
    assert drawn(SentenceDistance(), corpus_of(tokenizer, FOUR, TWO), passes=120) == {
        ("甲乙。/丙丁。/", ADJACENT),
        ("甲乙。/戊己。/", SAME),
        ("甲乙。/庚辛。/", SAME),
        ("甲乙。/寅卯。/", OTHER),
        ("丙丁。/戊己。/", ADJACENT),
        ("丙丁。/庚辛。/", SAME),
        ("丙丁。/寅卯。/", OTHER),
        ("戊己。/庚辛。/", ADJACENT),
        ("戊己。/甲乙。/", SAME),
        ("戊己。/寅卯。/", OTHER),
    }


def test_sentences_of_other_lengths_are_not_taken(tokenizer):
    # Behind the first sentence comes one of 3 tokens; those of 6 and 7 are too long to stand in its place.
    longer = ["甲乙。丙丁。", "戊己戊己己。庚辛。"], ["子丑。寅卯寅卯寅卯。"]
    assert drawn(SentenceDistance(), corpus_of(tokenizer, *longer)) == {
        ("甲乙。/丙丁。/", ADJACENT),
        ("甲乙。/庚辛。/", SAME),
        ("甲乙。/子丑。/", OTHER),
        ("戊己戊己己。/庚辛。/", ADJACENT),
        ("戊己戊己己。/甲乙。/", SAME),
        ("戊己戊己己。/子丑。/", OTHER),
    }


def test_of_long_sentences_the_end_is_a_and_the_beginning_is_b(tokenizer):
    # Room for 4 tokens a sentence: 甲乙丙丁 and 戊。; 己庚辛壬 and 癸。; and only the first one has another one in its
    # document that is not its neighbour.
    found = drawn(
        SentenceDistance(max_length=11), corpus_of(tokenizer, ["甲乙丙丁戊。己庚辛壬癸。子丑寅。"], ["卯卯卯。"])
    )
    assert found == {
        ("戊。/己庚辛壬/", ADJACENT),
        ("戊。/子丑寅。/", SAME),
        ("戊。/卯卯卯。/", OTHER),
    }


def random_documents(count, seed):
    generator = np.random.default_rng(seed)

    def sentence():
        return "".join(generator.choice(list("甲乙丙丁戊己庚辛"), int(generator.gamma(2, 4)) + 1)) + "。"

    return [["".join(sentence() for _ in range(generator.integers(1, 30)))] for _ in range(count)]


def test_lengths_do_not_tell_the_class(tokenizer):
    task = SentenceDistance()
    found = examples_of(task, corpus_of(tokenizer, *random_documents(150, 0)), 3)
    shares = np.bincount([each["label"] for each in found]) / len(found)
    assert shares == pytest.approx([1 / 3] * 3, abs=0.02)
    half = len(found) // 2
    for number in (lambda each: each["types"].sum(), lambda each: len(each["ids"])):
        assert by_number(found[:half], found[half:], number) < 0.37
    # Whereas that of any other sentence of the document would.
    means = [np.mean([each["types"].sum() for each in found if each["label"] == label]) for label in range(3)]
    assert means == pytest.approx([means[0]] * 3, rel=0.03)


def test_examples_depend_on_seed_and_pass(tokenizer):
    assert_drawn_by_seed_and_pass(SentenceDistance(), corpus_of(tokenizer, *random_documents(10, 1)))


@pytest.mark.parametrize("documents", [[FOUR], [TWO, TWO], [["甲乙。"], ["丙丁。"]], [[""], FOUR]])
def test_a_corpus_that_lacks_a_class_is_refused(tokenizer, documents):
    with pytest.raises(DataError, match="sentence-distance: no sentence of the corpus can have all of a neighbour"):
        SentenceDistance().samples(corpus_of(tokenizer, *documents), 0)


def test_limits_are_an_eighth_or_one_token():
    assert [each.tolist() for each in limits(np.array([1, 8, 16, 40]))] == [[0, 7, 14, 35], [2, 9, 18, 45]]


def test_a_network_learns_which_sentence_follows(tokenizer):
    # The first character of a sentence tells its place in the document; the second one says nothing.
    generator = np.random.default_rng(0)

    def document():
        return ["".join(f"{place}{generator.choice([*'壬癸子丑'])}。" for place in "甲乙丙丁")]

    task = SentenceDistance()
    train, held_out = (
        examples_of(task, corpus_of(tokenizer, *(document() for _ in range(count))), 1) for count in (250, 80)
    )
    baseline = task.baseline(train, held_out)
    assert set(baseline) == {"accuracy.commonest", "accuracy.shared_tokens", "accuracy.shared_bigrams"}
    assert max(baseline.values()) < 0.5
    assert learnt(task, train, held_out, passes=6) > max(baseline.values()) + 0.1
