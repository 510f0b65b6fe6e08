import itertools
import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.tasks.metrics.squad import alike
from tests.paths import ROOT

DATA = ROOT.parent / "shared" / "data"


@pytest.mark.parametrize(
    ("answer", "truth", "same", "f1"),
    [
        ("The Broncos", "broncos", 1, 1),
        ("Denver Broncos", "the Denver  Broncos!", 1, 1),
        ("Denver", "Denver Broncos", 0, 2 / 3),  # precision 1, recall 1/2
        ("x b c x b", "b b d", 0, 2 * (2 / 5) * (2 / 3) / (2 / 5 + 2 / 3)),  # b twice in both
        ("Denver", "Carolina", 0, 0),
        ("theatre", "atre", 0, 0),  # an article is a word
        ("U.S.", "US", 1, 1),
        ("", "", 1, 1),
        ("", "x", 0, 0),
        ("the", "", 1, 1),
    ],
)
def test_by_hand(answer, truth, same, f1):
    assert alike(answer, truth) == (same, pytest.approx(f1))


def letters_only(text):
    """SQuAD's normalisation word by word, without patterns."""
    kept = "".join(each for each in text.lower() if each not in set(string.punctuation))
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def overlap(answer, truth):
    """Precision, recall and F1 as the SQuAD paper describes them (section 6.1)."""
    said, true = letters_only(answer), letters_only(truth)
    if not said or not true:
        return float(said == true)
    left, shared = list(true), 0
    for word in said:
        if word in left:
            left.remove(word)
            shared += 1
    if not shared:
        return 0.0
    precision, recall = shared / len(said), shared / len(true)
    return 2 * precision * recall / (precision + recall)


WORDS = st.lists(st.sampled_from(["a", "the", "The", "cat", "cat.", "dog", "DOG", ",", "fish-bone"]), max_size=6)


@settings(max_examples=300)
@given(WORDS, WORDS)
def test_against_the_definition(said, true):
    answer, truth = " ".join(said), " ".join(true)
    assert alike(answer, truth) == (letters_only(answer) == letters_only(truth), pytest.approx(overlap(answer, truth)))


@pytest.mark.skipif(not DATA.is_dir(), reason="the data sets are not here")
def test_against_the_definition_on_real_answers():
    """Each annotator's answer against the next one's."""
    (article, *_) = json.loads((DATA / "squad" / "dev_sample.json").read_text(encoding="utf-8"))["data"]
    compared = 0
    for paragraph in article["paragraphs"]:
        for question in paragraph["qas"]:
            texts = [answer["text"] for answer in question["answers"]]
            for one, other in itertools.pairwise(texts):
                same = letters_only(one) == letters_only(other)
                assert alike(one, other) == (same, pytest.approx(overlap(one, other)))
                compared += 1
    assert compared > 1000
