"""Token-document relation: labels by hand, and by brute force on documents drawn at random."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.pretraining.corpus.corpus import MemoryCorpus
from onion.tasks.pretraining.corpus.flags import IN_SENTENCE, IN_WORD
from onion.tasks.pretraining.examples import UNLABELLED
from onion.tasks.pretraining.sampling import repeated_words
from onion.tasks.pretraining.tasks.token_document import TokenDocument
from tests.tasks.pretraining.texts import check, corpus_of, examples_of, learnt, same, tokenizer_of

WORDS = ("the", "film", "paris", "in", "was", "good", "##s", "covid", "##19", "##good", "19", ".", *"abcdefgh")
DOCUMENT = ["The film was good. In Paris. Films 19. Good the xyz. Covid19 19. Films, was."]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tokenizer_of(tmp_path_factory.mktemp("vocabulary"), WORDS)


def written(tokenizer, example):
    """The tokens of an example, with + behind those that occur elsewhere, - behind those that do not."""
    tokens, marks = tokenizer.tokens(example["ids"].tolist()), {1: "+", 0: "-", UNLABELLED: ""}
    return " ".join(token + marks[label] for token, label in zip(tokens, example["token_labels"].tolist(), strict=True))


def test_labels_of_a_hand_written_document(tokenizer):
    # "film" is not the word "films"; what is in another document, or no word of letters, does not count;
    # a segment without words of letters is no example.
    corpus = corpus_of(tokenizer, DOCUMENT, ["Paris in paris. In paris 19."])
    task = TokenDocument(max_length=8)
    samples = task.samples(corpus, 0)
    found = list(samples.of_pass(0))
    for example, most in zip(found, samples.lengths, strict=True):
        check(task, tokenizer, example, most)
    assert [written(tokenizer, example) for example in found] == [
        "[CLS] the+ film- was+ good+ . [SEP]",
        "[CLS] in- paris- . [SEP]",
        "[CLS] film+ ##s 19 . [SEP]",
        "[CLS] good+ the+ [UNK] . [SEP]",
        "[CLS] film+ ##s [UNK] was+ . [SEP]",
        "[CLS] paris+ in+ paris+ . [SEP]",
        "[CLS] in+ paris+ 19 . [SEP]",
    ]


_documents = st.lists(
    st.lists(st.lists(st.lists(st.integers(13, 19), min_size=1, max_size=3), min_size=1, max_size=5), max_size=6),
    min_size=1,
    max_size=4,
)
"""Documents of sentences of words of ids: of ##19, ##good, 19, the full stop, a, b and c."""


def corpus_drawn(tokenizer, documents):
    """A corpus of ids, each word of one or more."""
    pairs = []
    for document in documents:
        ids, flags = [], []
        for sentence in document:
            for place, word in enumerate(sentence):
                ids += word
                flags += [IN_WORD * (token > 0) | IN_SENTENCE * (place + token > 0) for token in range(len(word))]
        pairs.append((np.array(ids, np.uint16), np.array(flags, np.uint8)))
    return MemoryCorpus.of(pairs, tokenizer, "drawn")


def segments_by_hand(document, room):
    """Sentences of a document put together while they fit; a long one is cut between words: lists of words."""
    found = []
    for sentence in document:
        sizes = [sum(map(len, part)) for part in found]
        if found and sizes[-1] + sum(map(len, sentence)) <= room:
            found[-1] = found[-1] + sentence
        else:
            found.append(sentence)
    return found


@given(_documents)
def test_labels_by_brute_force(tokenizer, documents):
    task, letters = TokenDocument(max_length=17), {*WORDS} - {"19", ".", "##19"}
    wanted = []
    for document in documents:
        segments = segments_by_hand(document, room=15)
        for segment in segments:
            others = [word for other in segments if other is not segment for word in other]
            row = [UNLABELLED]
            for word in segment:
                labelled = {*tokenizer.tokens(word)} <= letters
                row += [int(word in others) if labelled else UNLABELLED, *[UNLABELLED] * (len(word) - 1)]
            if len(segments) > 1 and {*row} != {UNLABELLED}:
                wanted.append([*row, UNLABELLED])
    try:
        found = list(task.samples(corpus_drawn(tokenizer, documents), 0).of_pass(0))
    except DataError:
        found = []
    assert [example["token_labels"].tolist() for example in found] == wanted


def test_documents_of_one_segment_are_left_out(tokenizer):
    corpus = corpus_of(tokenizer, ["The film."], ["the film was good. The film."], ["Paris."], ["19 19 19 19 19. 19."])
    samples = TokenDocument(max_length=8).samples(corpus, 0)
    assert [written(tokenizer, example) for example in samples.of_pass(0)] == [
        "[CLS] the+ film+ was- good- . [SEP]",
        "[CLS] the+ film+ . [SEP]",
    ]


@pytest.mark.parametrize("texts", [["The film."], ["19 19 19 19 19. 19."], [""]])
def test_a_corpus_of_short_documents_is_refused(tokenizer, texts):
    with pytest.raises(DataError, match="no document of the corpus has words of letters and more than 6"):
        TokenDocument(max_length=8).samples(corpus_of(tokenizer, texts, texts), 0)


@pytest.mark.parametrize("block", [1, 30, 60])
def test_documents_are_looked_through_in_blocks(tokenizer, monkeypatch, block):
    corpus = corpus_of(tokenizer, *[DOCUMENT, ["Paris."]] * 3)
    whole = list(TokenDocument(max_length=8).samples(corpus, 0).of_pass(0))
    monkeypatch.setattr(repeated_words, "BLOCK", block)
    in_blocks = list(TokenDocument(max_length=8).samples(corpus, 0).of_pass(0))
    assert all(same(one, other) for one, other in zip(whole, in_blocks, strict=True))


def test_a_worker_makes_the_same_examples(tokenizer):
    samples = TokenDocument(max_length=8).samples(corpus_of(tokenizer, DOCUMENT), 0).of_pass(0)
    again = pickle.loads(pickle.dumps(samples))
    assert all(same(one, other) for one, other in zip(samples, again, strict=True))


def test_a_network_learns_what_occurs_elsewhere(tokenizer):
    # A document repeats its letters after "the", and no others; letters are as frequent after "a".
    generator = np.random.default_rng(0)

    def document():
        repeated, *single = generator.permutation([*"bcdefgh"]).tolist()
        sentences = [f"the {repeated} was a {single[number]} film." for number in range(4)]
        return [" ".join(each.capitalize() for each in sentences)]

    task = TokenDocument(max_length=9)
    train, held_out = (
        examples_of(task, corpus_of(tokenizer, *(document() for _ in range(count))), 1) for count in (150, 40)
    )
    baseline = task.baseline(train, held_out)
    assert set(baseline) == {"accuracy.commonest", "accuracy.frequency"}
    assert max(baseline.values()) < 0.9
    assert learnt(task, train, held_out, passes=6) > 0.95
