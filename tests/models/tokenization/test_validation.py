import numpy as np
import pytest

from onion.errors import DataError
from onion.models.tokenization.validation import checked, listed, whole
from onion.models.tokenizer import Tokenizer

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocab")
    (folder / "vocab.txt").write_text("\n".join(VOCAB))
    return Tokenizer.from_pretrained(folder)


def found(encodings):
    return [one.ids.tolist() for one in encodings]


@pytest.mark.parametrize("some", [lambda *texts: (text for text in texts), lambda *texts: map(str, texts), np.array])
def test_texts_may_come_one_by_one(tokenizer, some):
    some = (lambda *texts: np.array(texts)) if some is np.array else some
    assert found(tokenizer(some("a", "b"))) == [[2, 5, 3], [2, 6, 3]]
    assert found(tokenizer(some("a", "b"), some("b", "b"))) == [[2, 5, 3, 6, 3], [2, 6, 3, 6, 3]]
    assert [found(windows) for windows in tokenizer.windows(some("a", "b"))] == [[[2, 5, 3]], [[2, 6, 3]]]
    assert found(tokenizer((["a", "b"] for _ in "x"), pre_split=True)) == [[2, 5, 6, 3]]


@pytest.mark.parametrize("texts", ["a", b"a", None, 5])
def test_what_is_no_list_of_texts_is_refused(tokenizer, texts):
    with pytest.raises(DataError, match="give a list of texts, not"):
        listed(texts)
    with pytest.raises(DataError, match="give a list of texts, not"):
        checked(["a"], 5 if texts is None else texts, False)
    with pytest.raises(DataError, match="give a list of texts, not"):
        tokenizer(texts)


@pytest.mark.parametrize("value", [5, np.int64(5), np.uint8(5)])
def test_whole_numbers(tokenizer, value):
    assert whole("max_length", value) == 5
    assert len(tokenizer(["a b a b"], max_length=value)[0]) == 5


@pytest.mark.parametrize("value", ["5", None, 3.5, 5.0, True, [5]])
def test_what_is_no_whole_number_is_named(tokenizer, value):
    for call in (tokenizer, tokenizer.windows):
        with pytest.raises(DataError, match=r"max_length .* is not a whole number"):
            call(["a"], max_length=value)
    with pytest.raises(DataError, match=r"stride .* is not a whole number"):
        tokenizer.windows(["a"], stride=value)
    if value is not None:
        with pytest.raises(DataError, match=r"max_first .* is not a whole number"):
            tokenizer.windows(["a"], ["b"], max_first=value)


def test_a_number_of_any_size_cuts_nothing(tokenizer):
    assert len(tokenizer(["a " * 1000], max_length=2**70)[0]) == 1002
    assert len(tokenizer.windows(["a " * 1000], max_length=2**70, stride=2**70)[0]) == 1
