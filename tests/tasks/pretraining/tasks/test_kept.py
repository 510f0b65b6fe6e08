"""What a task finds in a large corpus is kept, so that the next run does not look through it again."""

import pytest

from onion.tasks.data.features.cache import stored
from onion.tasks.pretraining.corpus.opening import open_corpus
from onion.tasks.pretraining.registry import get_pretraining_task
from tests.tasks.pretraining.texts import same

LOOK = ("sampling.halves.unit_places", "tasks.sentence_reordering.unit_places", "tasks.sentence_distance.unit_places")
LOOK += ("tasks.capitalisation.holding", "tasks.token_document.holding", "tasks.token_document.repeated_words")
LOOK += ("tasks.discourse_relation.MarkedSentences",)
"""What looks through a corpus."""

TASKS = {
    "next-sentence": {},
    "sentence-order": {},
    "sentence-reordering": {},
    "sentence-distance": {},
    "discourse-relation": {"markers": "the cat,the dog"},
    "capitalisation": {},
    "token-document": {"max_length": 16},
}


@pytest.mark.parametrize("name", TASKS)
def test_examples_of_a_corpus_that_is_looked_through_once(name, corpora, monkeypatch, tmp_path):
    corpus, task = open_corpus(corpora / "train"), get_pretraining_task(name, TASKS[name])
    wanted = task.samples(corpus, 1)
    monkeypatch.setenv("ONION_HOME", str(tmp_path))
    monkeypatch.setattr("onion.tasks.pretraining.corpus.derived.KEPT_FROM", 1)
    made = task.samples(corpus, 1)
    for each in LOOK:
        monkeypatch.setattr(f"onion.tasks.pretraining.{each}", None)
    for found in (made, task.samples(corpus, 1)):
        assert (len(found), found.fingerprint) == (len(wanted), wanted.fingerprint)
        assert found.lengths.tolist() == wanted.lengths.tolist()
        assert all(map(same, found.of_pass(2), wanted.of_pass(2)))
    assert len(stored()) == 2  # the segments, and what was found in them


def test_other_settings_find_something_else(corpora, monkeypatch, tmp_path):
    monkeypatch.setenv("ONION_HOME", str(tmp_path))
    monkeypatch.setattr("onion.tasks.pretraining.corpus.derived.KEPT_FROM", 1)
    corpus = open_corpus(corpora / "train")
    counts = [
        len(get_pretraining_task("discourse-relation", {"markers": each}).samples(corpus, 1))
        for each in ("the cat,the dog", "the cat,the dog,the bird")
    ]
    for each in (True, False):
        get_pretraining_task("capitalisation", {"sentence_starts": each}).samples(corpus, 1)
    assert 0 < counts[0] < counts[1]
    assert len(stored()) == 6
