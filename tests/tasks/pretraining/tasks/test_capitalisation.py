"""Capitalisation: the labels of a hand-written document, written down by hand."""

import numpy as np
import pytest

from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.examples import UNLABELLED, collate
from onion.tasks.pretraining.tasks.capitalisation import Capitalisation
from tests.tasks.pretraining.texts import SPECIAL, check, corpus_of, examples_of, learnt, same, tokenizer_of

WORDS = (
    "the",
    "film",
    "paris",
    "in",
    "was",
    "good",
    "mr",
    "##s",
    "covid",
    "##19",
    "new",
    "york",
    "he",
    "19",
    ".",
    ",",
    "'",
    "中",
    "a",
    "mary",
    "saw",
)
DOCUMENT = ["The film was good. In Paris, Mr. Films saw NEW york 19 covid19 中 zebra.", "he was in New York. 'The Film"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tokenizer_of(tmp_path_factory.mktemp("vocabulary"), WORDS)


def labels(task, corpus):
    return [example["token_labels"].tolist() for example in task.samples(corpus, 0).of_pass(0)]


def test_labels_of_a_hand_written_document(tokenizer):
    corpus = corpus_of(tokenizer, DOCUMENT)
    example = Capitalisation().samples(corpus, 0).of_pass(0)[0]
    tokens = tokenizer.tokens(example["ids"].tolist())
    # Each token, and behind it C: began with a capital, c: it did not; nothing: no label.
    assert " ".join(
        token + {1: "/C", 0: "/c", UNLABELLED: ""}[label]
        for token, label in zip(tokens, example["token_labels"].tolist(), strict=True)
    ) == (
        "[CLS] the/C film/c was/c good/c . in/C paris/C , mr/C . film/C ##s saw/c new/C york/c 19 covid ##19 中 "
        "[UNK] . he/c was/c in/c new/C york/C . ' the/C film/C [SEP]"
    )
    check(Capitalisation(), tokenizer, example, 128)


def test_labels_without_the_first_words_of_sentences(tokenizer):
    corpus = corpus_of(tokenizer, DOCUMENT)
    (every,), (inside,) = labels(Capitalisation(), corpus), labels(Capitalisation(sentence_starts=False), corpus)
    example = Capitalisation().samples(corpus, 0).of_pass(0)[0]
    tokens = tokenizer.tokens(example["ids"].tolist())
    gone = [
        (place, token)
        for place, (token, one, other) in enumerate(zip(tokens, every, inside, strict=True))
        if one != other
    ]
    assert [token for _, token in gone] == ["the", "in", "he", "the"]
    assert all(inside[place] == UNLABELLED for place, _ in gone)


def test_segments_without_a_word_are_left_out(tokenizer):
    corpus = corpus_of(tokenizer, ["19. 19. The film.", "19. 中."], ["19."], ["was 中."])
    samples = Capitalisation(max_length=7).samples(corpus, 0)
    assert len(samples) == 2
    assert samples.lengths.tolist() == [len(each["ids"]) for each in samples.of_pass(0)]


def test_a_part_of_a_cut_sentence_has_no_first_word(tokenizer):
    corpus = corpus_of(tokenizer, ["The film was good in Paris"])
    _, second = labels(Capitalisation(max_length=5, sentence_starts=False), corpus)
    assert second == [UNLABELLED, 0, 0, 1, UNLABELLED]


def test_the_batch_has_the_labels(tokenizer):
    batch = collate(list(Capitalisation(max_length=16).samples(corpus_of(tokenizer, DOCUMENT), 0).of_pass(0)))
    flat = [label for row in labels(Capitalisation(max_length=16), corpus_of(tokenizer, DOCUMENT)) for label in row]
    assert batch["labels"].tolist() == [label for label in flat if label != UNLABELLED]


def test_examples_are_the_same_in_every_pass(tokenizer):
    samples = Capitalisation().samples(corpus_of(tokenizer, DOCUMENT, DOCUMENT), 0)
    assert all(same(one, other) for one, other in zip(samples.of_pass(0), samples.of_pass(1), strict=True))


def test_a_cased_vocabulary_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "The", "the", "film", "."]) + "\n")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    corpus = corpus_of(Tokenizer.from_pretrained(tmp_path), ["The film."])
    with pytest.raises(DataError, match="the ids give the answer away; build the corpus with an uncased tokenizer"):
        Capitalisation().samples(corpus, 0)


@pytest.mark.parametrize("text", ["中中。", "the film was good", "19 . 19"])
def test_a_corpus_without_capitals_is_refused(tokenizer, text):
    with pytest.raises(DataError, match="capitalisation: none of the words of the corpus is known to begin with"):
        Capitalisation().samples(corpus_of(tokenizer, [text]), 0)


def test_a_network_learns_capitals_that_hang_on_the_word_before(tokenizer):
    # "film" is a capital behind "the" only, "mary" behind "mr" only: the word alone does not tell.
    generator = np.random.default_rng(0)

    def document():
        pairs = [("the", "Film"), ("a", "film"), ("mr", "Mary"), ("saw", "mary")]
        return [" ".join(" ".join(pairs[generator.integers(4)]) for _ in range(8)) + "."]

    task = Capitalisation(max_length=32)
    train, held_out = (
        examples_of(task, corpus_of(tokenizer, *(document() for _ in range(count))), 1) for count in (400, 60)
    )
    baseline = task.baseline(train, held_out)
    assert set(baseline) == {"accuracy.commonest", "accuracy.word"}
    assert max(baseline.values()) < 0.85
    assert learnt(task, train, held_out, passes=8) > 0.95
