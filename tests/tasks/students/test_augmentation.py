"""Altered copies: what each way does, how often, and that a copy depends on nothing but its numbers."""

from collections import Counter

import pytest

from onion.errors import DataError
from onion.tasks.students.augmentation import Augmentation, PartsOfSpeech

TEXT = "one two three four five six seven eight nine ten"


def only(way, splitting="english", texts=()):
    return Augmentation(texts, splitting, seed=1, weights={way: 1.0})


def test_a_copy_is_a_function_of_seed_example_and_copy():
    one, other = (Augmentation([TEXT], "english", seed=1) for _ in range(2))
    copies = [one([TEXT], example, copy) for example in range(20) for copy in range(3)]
    assert copies == [other([TEXT], example, copy) for example in range(20) for copy in range(3)]
    assert one([TEXT], 7, 2) == copies[7 * 3 + 2]  # whatever was made before
    assert copies != [Augmentation([TEXT], "english", seed=2)([TEXT], e, c) for e in range(20) for c in range(3)]
    assert len({tuple(copy) for copy in copies}) > 30


def test_words_become_unknown_one_in_ten():
    made = [only("unknown")([TEXT], example, 0)[0].split() for example in range(500)]
    unknown = sum(words.count("[UNK]") for words in made) / 5000
    assert 0.085 < unknown < 0.115
    assert all(word in ("[UNK]", own) for words in made for word, own in zip(words, TEXT.split(), strict=True))


def test_spans_are_of_every_length_and_of_the_text():
    made = [only("span")([TEXT], example, 0)[0] for example in range(1000)]
    assert all(span and span in TEXT for span in made)
    lengths = Counter(len(span.split()) for span in made)
    assert set(lengths) == set(range(1, 11))
    assert max(lengths.values()) < 2 * min(lengths.values())
    assert only("span")([""], 0, 0) == [""]


def test_words_are_replaced_by_others_of_their_part_of_speech():
    pytest.importorskip("rjieba")
    texts = ["酒店很好", "早餐很贵", "房间很差"]
    parts = PartsOfSpeech.of(texts)
    augment = only("same_part", "chinese", texts)
    changed = 0
    for example in range(400):
        text = texts[example % 3]
        (copy,) = augment([text], example, 0)
        assert len(copy) == len(text)
        changed += copy != text
        for word, own in ((copy[:2], text[:2]), (copy[3:], text[3:])):
            assert parts.tags[word] == parts.tags[own]
    assert changed > 20


def test_both_texts_of_a_pair_are_altered_in_the_same_way():
    augment = Augmentation([TEXT], "english", seed=3)
    for example in range(50):
        copies = augment([TEXT, TEXT.upper()], example, 0)
        cut = [len(copy.split()) < 10 for copy in copies]
        unknown = ["[UNK]" in copy for copy in copies]
        assert not (any(cut) and any(unknown))


@pytest.mark.parametrize(
    ("weights", "told"),
    [({"same_part": 1.0}, "unknown way 'same_part'; with 'english' words the ways are unknown, span"),
     ({"span": 0.0}, "every weight is 0")],
)  # fmt: skip
def test_ways_that_do_not_exist(weights, told):
    with pytest.raises(DataError, match=told):
        Augmentation([TEXT], "english", seed=1, weights=weights)
