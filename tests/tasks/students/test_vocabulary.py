"""Words by frequency."""

import pytest

from onion.errors import DataError
from onion.tasks.students.vocabulary import frequent_words


def test_the_most_frequent_come_first_and_equal_ones_in_order():
    texts = ["b a a", "c b a", "d [UNK] D"]
    assert frequent_words(texts, "english") == ["a", "b", "d", "c"]
    assert frequent_words(texts, "english", most=2) == ["a", "b"]
    assert frequent_words(["a [SEP] D"], "spaces") == ["D", "a"]


@pytest.mark.parametrize("texts", [[], ["", " "], ["[UNK]"]])
def test_no_word_at_all(texts):
    with pytest.raises(DataError, match="the vocabulary is empty"):
        frequent_words(texts, "english")
