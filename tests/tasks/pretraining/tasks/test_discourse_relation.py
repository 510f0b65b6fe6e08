"""Discourse relations: the markers of a hand-written document, which are gone from the examples."""

import attrs
import numpy as np
import pytest

from onion.errors import DataError
from onion.tasks.pretraining.corpus.flags import IN_WORD
from onion.tasks.pretraining.sampling.discourse_markers import CHINESE, ENGLISH
from onion.tasks.pretraining.tasks.discourse_relation import DiscourseRelation
from tests.tasks.pretraining.texts import corpus_of, drawn, examples_of, learnt, said, same, tokenizer_of

WORDS = "it rained when stopped we left ##ever stay however go for example good bad . ,"
MARKERS = ("However", "When", "For example", "For")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tokenizer_of(tmp_path_factory.mktemp("vocabulary"), [*WORDS.split(), *"甲乙丙丁戊但是此外，。"])


def test_a_hand_written_document_has_these_pairs_and_no_others(tokenizer):
    document = [
        "However it rained. When it stopped, we left. Whenever we go it rained.",
        "However, we stay. For example, we go. For it stopped. When. When we left however it rained",
    ]
    corpus = corpus_of(tokenizer, document, ["When it rained. We left when it stopped."])
    assert drawn(DiscourseRelation(markers=MARKERS), corpus, 1, " ") == {
        ("however it rained . / it stopped , we left . /", "When"),
        ("when ##ever we go it rained . / we stay . /", "However"),
        ("however , we stay . / we go . /", "For example"),
        ("for example , we go . / it stopped . /", "For"),
        ("for it stopped . / . /", "When"),
        ("when . / we left however it rained /", "When"),
    }


def test_chinese_markers_end_where_words_end(tokenizer):
    corpus = corpus_of(tokenizer, ["甲乙。但丙。但是丁。但是，戊。此外，甲。"])
    (shard,) = corpus.shards
    wanted = {
        ("甲乙。/丙。/", "但"),
        ("但丙。/丁。/", "但是"),
        ("但是丁。/戊。/", "但是"),
        ("但是，戊。/甲。/", "此外"),
    }
    assert drawn(DiscourseRelation(), corpus, 1) == wanted
    assert drawn(DiscourseRelation(markers=["但", "此外"]), corpus, 1) >= {("但丙。/是丁。/", "但")}
    words = shard.flags.copy()
    words[np.flatnonzero(shard.tokens == tokenizer(["是"])[0].ids[1])] |= IN_WORD
    cut = attrs.evolve(corpus, shards=[attrs.evolve(shard, flags=words)])
    assert drawn(DiscourseRelation(markers=["但", "此外"]), cut, 1) == {
        ("甲乙。/丙。/", "但"),
        ("但是，戊。/甲。/", "此外"),
    }


def test_of_long_sentences_the_parts_beside_the_marker_stand(tokenizer):
    corpus = corpus_of(tokenizer, ["甲乙丙丁戊。但是甲乙丙丁戊。"])
    assert drawn(DiscourseRelation(max_length=11), corpus, 1) == {("戊。/甲乙/", "但是")}


def test_the_lists_are_ours():
    assert (len(set(CHINESE)), len(set(ENGLISH))) == (37, 29)
    assert DiscourseRelation().classes == CHINESE
    assert DiscourseRelation(language="en").classes == ENGLISH
    assert DiscourseRelation(markers="When, For example").classes == ("When", "For example")


def test_every_pass_has_the_same_examples(tokenizer):
    corpus = corpus_of(tokenizer, ["甲乙。但丙。但是丁。"])
    first, second = (DiscourseRelation().samples(corpus, seed) for seed in (0, 0))
    assert first.fingerprint == second.fingerprint
    assert first.fingerprint != DiscourseRelation(markers=["但", "此外"]).samples(corpus, 0).fingerprint
    assert all(same(one, other) for one, other in zip(first.of_pass(0), second.of_pass(1), strict=True))


def test_a_corpus_without_markers_is_refused(tokenizer):
    corpus = corpus_of(tokenizer, ["However it rained. It stopped."])
    with pytest.raises(
        DataError, match="discourse-relation: no sentence of the corpus that follows another one begins"
    ):
        DiscourseRelation(language="en").samples(corpus, 0)
    with pytest.raises(DataError, match="markers must be two or more markers, each once"):
        DiscourseRelation(markers=["When", "When"])
    with pytest.raises(DataError, match="language must be one of zh, en, got 'fr'"):
        DiscourseRelation(language="fr")


def test_a_network_learns_what_a_marker_means(tokenizer):
    # "However" joins good and bad, "When" like and like.
    generator = np.random.default_rng(0)

    def pair():
        one, other = generator.choice(["good", "bad"], 2)
        rest = " ".join(generator.choice(["we", "it", "go", "stay"], generator.integers(1, 4)))
        return f"We {rest} {one}. {'When' if one == other else 'However'} {rest} {other}."

    task = DiscourseRelation(markers=["When", "However"])
    train, held_out = (
        examples_of(task, corpus_of(tokenizer, *([pair()] for _ in range(count))), 1) for count in (400, 100)
    )
    baseline = task.baseline(train, held_out)
    assert baseline["accuracy.commonest"] == pytest.approx(0.5, abs=0.1)
    assert learnt(task, train, held_out, passes=12) > baseline["accuracy.commonest"] + 0.2
    assert not any("when" in said(tokenizer, each) for each in train)
