"""Segments hold every token once, in order, whole sentences as long as they fit, and leave no document."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.data.features.cache import stored
from onion.tasks.pretraining.corpus.flags import IN_PARAGRAPH, IN_SENTENCE, IN_WORD
from onion.tasks.pretraining.corpus.places import unit_places
from onion.tasks.pretraining.corpus.segments import Segments
from tests.tasks.pretraining.corpus.corpora import corpus, some_documents

SETTINGS = {
    "max_tokens": st.integers(1, 30),
    "within": st.sampled_from(["document", "paragraph"]),
    "one_by_one": st.booleans(),
}


def by_hand(document, max_tokens, within, one_by_one):
    """The lengths of the segments of a document, one token at a time."""
    units, wall = [], []
    for number, paragraph in enumerate(document):
        for sentence in paragraph:
            for length in cut(sentence, max_tokens):
                units.append(length)
                wall.append(number if within == "paragraph" else 0)
    found, last = [], None
    for length, group in zip(units, wall, strict=True):
        if not one_by_one and found and group == last and found[-1] + length <= max_tokens:
            found[-1] += length
        else:
            found.append(length)
        last = group
    return found


def cut(words, most):
    """The lengths of the pieces of a sentence, each as long as it may be, and each in whole words if it can be."""
    if sum(words) <= most:
        return [sum(words)]
    fitting = 0
    while sum(words[: fitting + 1]) <= most:
        fitting += 1
    if fitting:
        return [sum(words[:fitting]), *cut(words[fitting:], most)]
    return [most, *cut([words[0] - most, *words[1:]], most)]


@given(st.lists(some_documents, min_size=1, max_size=3), st.fixed_dictionaries(SETTINGS))
def test_segments_are_those_found_by_hand(shards, settings):
    segments = Segments.of(corpus(shards), **settings)
    documents = [each for documents in shards for each in documents]
    wanted = [(length, number) for number, each in enumerate(documents) for length in by_hand(each, **settings)]
    assert list(zip(segments.lengths.tolist(), segments.documents.tolist(), strict=True)) == wanted
    assert segments.lengths.dtype == np.int32
    assert segments.documents.dtype == np.int64


@given(st.lists(some_documents, min_size=1, max_size=3), st.fixed_dictionaries(SETTINGS))
def test_every_token_is_in_one_segment(shards, settings):
    given = corpus(shards)
    segments = Segments.of(given, **settings)
    ids = [token for segment in segments for token in segment.ids.tolist()]
    assert ids == list(range(sum(len(shard.tokens) for shard in given.shards)))
    flags = [bits for segment in segments for bits in segment.flags.tolist()]
    assert flags == [bits for shard in given.shards for bits in shard.flags.tolist()]
    whole = segments.whole(unit_places(given, IN_SENTENCE))
    for number, segment in enumerate(segments):
        ends = number + 1 == len(segments) or segments[number + 1].document != segment.document
        next_flags = 0 if ends else segments[number + 1].flags[0]
        assert whole[number] == (not (segment.flags[0] | next_flags) & IN_SENTENCE)
        assert (segment.number, segment.document) == (number, segments.documents[number])
        assert len(segment.ids) == segments.lengths[number] <= settings["max_tokens"]
        assert segment.ids.dtype == np.int64
        beside = segments.beside(number)
        assert number in beside
        assert {int(segments.documents[each]) for each in beside} == {segment.document}
        assert len(beside) == (segments.documents == segment.document).sum()


def test_one_sentence_that_is_too_long_is_cut_between_words():
    segments = Segments.of(corpus([[[[[2, 2, 3], [1]]]]]), max_tokens=5)
    assert [each.ids.tolist() for each in segments] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [each.flags[0] & IN_WORD for each in segments] == [0, 0]
    assert segments[1].flags[0] & IN_SENTENCE


def test_paragraphs_can_be_the_units():
    given = corpus([[[[[1], [2]], [[3]], [[1, 1]]]]])
    assert Segments.of(given, 6, inside=IN_PARAGRAPH).lengths.tolist() == [6, 2]
    assert Segments.of(given, 6, inside=IN_PARAGRAPH, one_by_one=True).lengths.tolist() == [3, 3, 2]


def test_an_empty_document_has_no_segment():
    segments = Segments.of(corpus([[[], [[[2]]], []], [[]]]), 5)
    assert segments.documents.tolist() == [1]
    assert [len(segments.of_document(each)) for each in range(4)] == [0, 1, 0, 0]
    assert segments[-1].ids.tolist() == [0, 1]
    with pytest.raises(IndexError):
        segments[1]


def test_the_fingerprint_tells_corpora_and_settings_apart():
    one, two = corpus([[[[[1]]]]]), corpus([[[[[2]]]]])
    found = [
        Segments.of(one, 5),
        Segments.of(two, 5),
        Segments.of(one, 6),
        Segments.of(one, 5, within="paragraph"),
        Segments.of(one, 5, one_by_one=True),
        Segments.of(one, 5, inside=IN_PARAGRAPH),
    ]
    assert len({each.fingerprint for each in found}) == len(found)
    assert Segments.of(one, 5).fingerprint == found[0].fingerprint


def test_segments_of_a_large_corpus_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("ONION_HOME", str(tmp_path))
    given = corpus([[[[[1, 2], [3]]], []], [[[[2]]]]])
    wanted = Segments.of(given, 4)
    assert not (tmp_path / "features").exists()
    monkeypatch.setattr("onion.tasks.pretraining.corpus.derived.KEPT_FROM", 1)
    made = Segments.of(given, 4)
    monkeypatch.setattr("onion.tasks.pretraining.corpus.segments.cuts", None)  # they are not found again
    for found in (made, Segments.of(given, 4)):
        for name in ("lengths", "documents", "begins"):
            assert np.array_equal(getattr(found, name), getattr(wanted, name))
            assert getattr(found, name).dtype == getattr(wanted, name).dtype
        assert not found.lengths.flags.writeable
        assert found[1].ids.tolist() == wanted[1].ids.tolist()
    (entry,) = stored()
    assert entry.about == {"task": "segments", "file": f"corpus {given.fingerprint[:16]}, 4 tokens"}


def test_segments_that_are_damaged_in_the_cache_are_found_again(monkeypatch, tmp_path):
    monkeypatch.setenv("ONION_HOME", str(tmp_path))
    monkeypatch.setattr("onion.tasks.pretraining.corpus.derived.KEPT_FROM", 1)
    given = corpus([[[[[1, 2], [3]]]]])
    lengths = Segments.of(given, 4).lengths.tolist()
    (entry,) = stored()
    (entry.path / "lengths.npy").write_bytes(b"")
    assert Segments.of(given, 4).lengths.tolist() == lengths


def test_wrong_settings_are_refused():
    with pytest.raises(DataError, match="max_tokens must be an integer >= 1, got 0"):
        Segments.of(corpus([[[[[1]]]]]), 0)
    with pytest.raises(DataError, match="within must be one of 'document', 'paragraph', got 'line'"):
        Segments.of(corpus([[[[[1]]]]]), 5, within="line")
