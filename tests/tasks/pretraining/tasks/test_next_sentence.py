"""Next sentence: every pair of a hand-written corpus, and that lengths tell little."""

import numpy as np
import pytest

from onion import DataProvider, Observer, Runner
from onion.errors import DataError
from onion.tasks.pretraining.baselines.text_baselines import by_number
from onion.tasks.pretraining.examples import collate
from onion.tasks.pretraining.masking.masking import MaskedExamples, Masking
from onion.tasks.pretraining.tasks.next_sentence import NextSentence
from tests.tasks.pretraining.texts import (
    assert_drawn_by_seed_and_pass,
    corpus_of,
    drawn,
    examples_of,
    learnt,
    said,
    tokenizer_of,
)

THREE, TWO, ONE = ["甲乙。丙丁。", "戊己庚。"], ["子丑。寅卯。"], ["癸。"]
OTHER, NEXT = NextSentence().classes


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tokenizer_of(tmp_path_factory.mktemp("vocabulary"), "甲乙丙丁戊己庚辛壬癸子丑寅卯。")


def test_a_hand_written_corpus_has_these_pairs_and_no_others(tokenizer):
    # Of another document comes the longest run of sentences that is no longer than the second part, without the
    # document's first sentence, which no sentence that follows is; the one of a single sentence has none.
    assert drawn(NextSentence(), corpus_of(tokenizer, THREE, TWO, ONE), passes=300) == {
        ("甲乙。/丙丁。戊己庚。/", NEXT),
        ("甲乙。丙丁。/戊己庚。/", NEXT),
        ("甲乙。/寅卯。/", OTHER),
        ("甲乙。丙丁。/寅卯。/", OTHER),
        ("子丑。/寅卯。/", NEXT),
        ("子丑。/丙丁。/", OTHER),
    }


def test_of_a_sentence_that_is_too_long_comes_the_beginning(tokenizer):
    found = drawn(NextSentence(), corpus_of(tokenizer, ["甲。乙。"], ["子丑寅卯。"]))
    assert found == {("甲。/乙。/", NEXT), ("甲。/子丑/", OTHER)}


def test_a_segment_has_no_more_than_the_room(tokenizer):
    # Room for 6 tokens: the third sentence is a segment alone, and cannot be cut.
    assert drawn(NextSentence(max_length=9), corpus_of(tokenizer, THREE, ONE)) == {
        ("甲乙。/丙丁。/", NEXT),
        ("甲乙。/癸。/", OTHER),
    }


def random_documents(count, seed):
    generator = np.random.default_rng(seed)

    def sentence():
        return "".join(generator.choice(list("甲乙丙丁戊己庚辛"), int(generator.gamma(2, 4)) + 1)) + "。"

    return [["".join(sentence() for _ in range(generator.integers(2, 30)))] for _ in range(count)]


def test_halves_are_drawn_half_and_half_and_lengths_tell_little(tokenizer):
    found = examples_of(NextSentence(), corpus_of(tokenizer, *random_documents(200, 0)), 4)
    assert np.mean([each["label"] for each in found]) == pytest.approx(0.5, abs=0.03)
    half = len(found) // 2
    for number in (lambda each: each["types"].sum(), lambda each: len(each["ids"])):
        assert by_number(found[:half], found[half:], number) < 0.54


def test_no_sentence_is_cut_where_a_whole_one_fits(tokenizer):
    # Three of four segments are one long sentence; its beginning alone would tell that it does not follow.
    corpus = corpus_of(tokenizer, *[["丙" * 80 + "。"]] * 90, *[["戊己。庚辛。"]] * 30)
    found = examples_of(NextSentence(), corpus, 4)
    assert {said(tokenizer, each, "") for each in found if not each["label"]} == {"戊己。/庚辛。/"}


def test_where_there_is_nothing_else_the_beginning_of_a_document_is_taken(tokenizer):
    found = drawn(NextSentence(), corpus_of(tokenizer, ["甲。乙。"], ["丙。"]))
    assert found == {("甲。/乙。/", NEXT), ("甲。/丙。/", OTHER)}


def test_no_part_of_a_sentence_tells_the_class(tokenizer):
    # The room is for 21 tokens: most segments begin or end within a sentence of 30.
    texts = [[("甲" * 30 + "。") + "乙丙。丁戊。己庚。" * 3 + ("辛" * 30 + "。") + "壬癸。" * 3] for _ in range(20)]
    found = examples_of(NextSentence(max_length=24), corpus_of(tokenizer, *texts), 4)
    assert {each["label"] for each in found} == {0, 1}
    whole = {"乙丙", "丁戊", "己庚", "壬癸"}
    for each in found:
        first, second, _ = said(tokenizer, each, "").split("/")
        assert {*first.split("。")[:-1], *second.split("。")[:-1]} <= whole
        assert first[-1] == second[-1] == "。"


def test_negatives_are_never_of_the_same_document(tokenizer):
    # Each document has a character of its own in every sentence.
    corpus = corpus_of(tokenizer, *([f"{own}甲。" * 3 + f"{own}乙。" * 40] for own in "戊己庚辛壬癸"))
    task = NextSentence(max_length=24)
    for pass_id in range(20):
        for example in task.samples(corpus, 5).of_pass(pass_id):
            first, second, _ = said(tokenizer, example, "").split("/")
            assert (first[0] == second[0]) == bool(example["label"])
            assert len(set(second) & set("戊己庚辛壬癸")) == 1


def test_examples_depend_on_seed_and_pass(tokenizer):
    assert_drawn_by_seed_and_pass(NextSentence(), corpus_of(tokenizer, *random_documents(10, 1)))


@pytest.mark.parametrize(
    ("documents", "told"),
    [
        ([THREE], "next-sentence: the corpus has one document only"),
        ([["甲。"], ["乙。"]], "next-sentence: no document of the corpus has two sentences in a row of at most 125"),
        ([[""], THREE], "next-sentence: the corpus has one document only"),
    ],
)
def test_a_corpus_without_pairs_is_refused(tokenizer, documents, told):
    with pytest.raises(DataError, match=told):
        NextSentence().samples(corpus_of(tokenizer, *documents), 0)


def test_a_length_without_room_is_refused(tokenizer):
    with pytest.raises(DataError, match="max_length 3 leaves no room for text beside 3 special tokens"):
        NextSentence(max_length=3).samples(corpus_of(tokenizer, THREE, TWO), 0)


def test_a_provider_gives_other_masked_examples_in_every_pass(tokenizer):
    task, corpus = NextSentence(), corpus_of(tokenizer, *random_documents(12, 2))

    def batches(start):
        source, seen = MaskedExamples(task.samples(corpus, 0), Masking(), tokenizer, 1), []
        watch = Observer(on_batch_begin=lambda state: seen.append(state.batch))
        Runner(DataProvider(source, 4, shuffle=True, collate=collate), watch).run(passes=2)
        return seen[start:]

    first, again = batches(0), batches(0)
    half = len(first) // 2
    for one, other in zip(first, again, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in one)
    words = [sorted(np.concatenate([each["word_labels"] for each in part])) for part in (first[:half], first[half:])]
    assert words[0] != words[1]


def test_a_network_learns_which_text_follows(tokenizer):
    # The first character of a sentence tells its place in one of two kinds of document; lengths are drawn.
    generator = np.random.default_rng(0)

    def document():
        kind = generator.choice(["甲乙丙丁", "戊己庚辛"])
        fill = ("".join(generator.choice([*"壬癸子丑"], generator.integers(1, 4))) for _ in kind)
        return ["".join(f"{place}{other}。" for place, other in zip(kind, fill, strict=True))]

    task = NextSentence()
    train, held_out = (
        examples_of(task, corpus_of(tokenizer, *(document() for _ in range(count))), 1) for count in (600, 200)
    )
    baseline = task.baseline(train, held_out)
    counted = ("commonest", "lengths", "shared_tokens", "shared_bigrams", "overlap")
    assert [*baseline] == [f"accuracy.{each}" for each in counted]
    assert learnt(task, train, held_out, passes=12) > max(baseline.values()) + 0.1
