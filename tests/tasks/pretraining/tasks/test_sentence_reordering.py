"""Sentence reordering: every order of every cut, by hand, and its number."""

import pytest

from onion.errors import DataError
from onion.tasks.pretraining.tasks.sentence_reordering import SentenceReordering
from tests.tasks.pretraining.texts import (
    assert_drawn_by_seed_and_pass,
    corpus_of,
    drawn,
    examples_of,
    learnt,
    tokenizer_of,
)

THREE, TWO, ONE = "甲甲。乙。丙丙丙。", "丁。戊。", "己。"
OF_TWO = {("丁。戊。/", "1"), ("丁。/戊。/", "12"), ("戊。/丁。/", "21")}
OF_THREE = {
    ("甲甲。乙。丙丙丙。/", "1"),
    ("甲甲。/乙。丙丙丙。/", "12"),
    ("乙。丙丙丙。/甲甲。/", "21"),
    ("甲甲。乙。/丙丙丙。/", "12"),
    ("丙丙丙。/甲甲。乙。/", "21"),
    ("甲甲。/乙。/丙丙丙。/", "123"),
    ("甲甲。/丙丙丙。/乙。/", "132"),
    ("乙。/甲甲。/丙丙丙。/", "213"),
    ("乙。/丙丙丙。/甲甲。/", "231"),
    ("丙丙丙。/甲甲。/乙。/", "312"),
    ("丙丙丙。/乙。/甲甲。/", "321"),
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tokenizer_of(tmp_path_factory.mktemp("vocabulary"), "甲乙丙丁戊己。")


def test_a_hand_written_document_has_these_cases_and_no_others(tokenizer):
    corpus = corpus_of(tokenizer, [THREE, ONE, TWO])
    assert drawn(SentenceReordering(), corpus, passes=200) == OF_THREE | OF_TWO
    of_two = {(text, order) for text, order in OF_THREE if len(order) < 3}
    assert drawn(SentenceReordering(max_segments=2), corpus) == of_two | OF_TWO


def test_the_labels_are_numbered_by_segments_and_as_in_a_dictionary():
    assert SentenceReordering().classes == ["1", "12", "21", "123", "132", "213", "231", "312", "321"]
    four = SentenceReordering(max_segments=4).classes
    assert len(four) == 33
    assert four[:9] == SentenceReordering().classes
    assert (four[9], four[-1]) == ("1234", "4321")


def test_a_paragraph_that_is_too_long_gives_several_examples(tokenizer):
    # Room for 8 tokens beside [CLS] and 3 [SEP]: sentences of 3 and 2, and one of 4 that is alone and left out.
    corpus = corpus_of(tokenizer, [THREE])
    samples = SentenceReordering(max_length=12).samples(corpus, 0)
    assert samples.lengths.tolist() == [3 + 2 + 1 + 2]
    assert drawn(SentenceReordering(max_length=12), corpus) == {
        ("甲甲。乙。/", "1"),
        ("甲甲。/乙。/", "12"),
        ("乙。/甲甲。/", "21"),
    }


@pytest.mark.parametrize(("token_types", "wanted"), [(1, [0, 0, 0]), (2, [0, 1, 1]), (4, [0, 1, 2])])
def test_segments_have_the_types_of_tokens_that_the_encoder_has(tokenizer, token_types, wanted):
    corpus = corpus_of(tokenizer, [THREE])
    of_three = [
        each for each in examples_of(SentenceReordering(token_types=token_types), corpus, 20) if each["label"] > 2
    ]
    for example in of_three:
        ends = (example["ids"] == tokenizer.sep_id).nonzero()
        assert example["types"][ends].tolist() == wanted
    assert of_three


def test_numbers_of_segments_and_orders_are_equally_common(tokenizer):
    found = examples_of(SentenceReordering(), corpus_of(tokenizer, [THREE]), 3000)
    counts = [sum(each["label"] == label for each in found) for label in range(9)]
    assert counts[0] == pytest.approx(1000, abs=100)
    assert counts[1:3] == pytest.approx([500] * 2, abs=80)
    assert counts[3:] == pytest.approx([167] * 6, abs=50)


def test_examples_depend_on_seed_and_pass(tokenizer):
    assert_drawn_by_seed_and_pass(SentenceReordering(), corpus_of(tokenizer, [THREE, TWO], [THREE]))


def test_a_corpus_without_two_sentences_in_a_paragraph_is_refused(tokenizer):
    with pytest.raises(DataError, match="sentence-reordering: no paragraph of the corpus has two sentences in a row"):
        SentenceReordering().samples(corpus_of(tokenizer, [ONE, ONE], [ONE]), 0)
    with pytest.raises(DataError, match="max_segments must be an integer from 2 to 6, got 1"):
        SentenceReordering(max_segments=1)


def test_a_network_learns_the_order(tokenizer):
    # The first character of a sentence tells its place in the paragraph; the second one says nothing.
    task = SentenceReordering(max_length=20)
    paragraphs = [f"甲{a}。乙{b}。丙{c}。" for a in "丁戊己" for b in "丁戊己" for c in "丁戊己"]
    train, held_out = (
        examples_of(task, corpus_of(tokenizer, *([each] for each in part)), passes)
        for part, passes in ((paragraphs[::2] + paragraphs[1::4], 40), (paragraphs[3::4], 40))
    )
    baseline = task.baseline(train, held_out)
    assert baseline["accuracy.commonest"] == pytest.approx(1 / 3, abs=0.08)
    assert baseline["accuracy.segments"] == pytest.approx((1 + 1 / 2 + 1 / 6) / 3, abs=0.08)
    assert learnt(task, train, held_out, passes=8) > baseline["accuracy.segments"] + 0.2
