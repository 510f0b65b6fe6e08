import json
import time
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError, WeightsError
from onion.models.tokenizer import Tokenizer
from tests.models.golden_script import references
from tests.patience import PATIENCE

MERGES = ["h e", "l l", "he ll", "hell o", "Ġ w", "Ġ hello", "ä ¸", "ä¸ Ń", "Ġw o", "r l", "a a", "Ã ©"]


@cache
def byte_letters():
    """The printable letter that stands for each byte (GPT-2): itself where it is one, else the next from U+0100 on."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in kept]
    return {byte: chr(byte) for byte in kept} | {byte: chr(256 + i) for i, byte in enumerate(others)}


SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
VOCAB = [*SPECIAL, *byte_letters().values(), *(merge.replace(" ", "") for merge in MERGES), "<mask>"]
IDS = {token: index for index, token in enumerate(VOCAB)}


def write(folder, merges=MERGES, vocab=IDS):
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return Tokenizer.from_pretrained(write(tmp_path_factory.mktemp("bpe")))


def tokens(found):
    return [VOCAB[i] for i in found.ids]


def merged(word):
    """The pieces of a word: the pair with the earliest merge is joined, again and again."""
    pieces = [byte_letters()[byte] for byte in word.encode()]
    while True:
        ranks = [MERGES.index(m) if (m := f"{a} {b}") in MERGES else len(MERGES) for a, b in pairwise(pieces)]
        if not ranks or min(ranks) == len(MERGES):
            return pieces
        at = ranks.index(min(ranks))
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]


def test_a_text_and_a_pair(tokenizer):
    (one,) = tokenizer(["hello world"])
    assert tokens(one) == ["<s>", "hello", "Ġwo", "rl", "d", "</s>"]
    (two,) = tokenizer(["hello"], ["中"])
    assert tokens(two) == ["<s>", "hello", "</s>", "</s>", "ä¸Ń", "</s>"]
    assert two.types.tolist() == [0] * 6
    special = (tokenizer.cls_id, tokenizer.pad_id, tokenizer.sep_id, tokenizer.unk_id, tokenizer.mask_id)
    assert special == (0, 1, 2, 3, len(VOCAB) - 1)
    assert tokenizer.vocab_size == len(VOCAB)


@given(
    words=st.lists(st.sampled_from(["hello", "wo", "rl", "é", "中", "aaa", "👍", "hell", "ß"]), min_size=1, max_size=6)
)
def test_pieces_are_those_of_the_merges_one_by_one(tokenizer, words):
    (found,) = tokenizer([" ".join(words)])
    parts = [words[0], *(" " + word for word in words[1:])]
    # The splitting expression of GPT-2 sets letters apart from other signs; each word here is all of one kind.
    assert tokens(found)[1:-1] == [piece for part in parts for piece in merged(part)]


def plain(texts):
    return list(references().byte_ids(texts, IDS, MERGES))


# Letters, digits and signs with marks, joiners and contractions; every kind of space and of control character;
# characters that are unassigned, private, or younger than the library's tables.
ODD = "hello wrldaé中👍ß'stremvd 0²Ⅷ٣_#.,<>|½\u0301\u200d\ufe0f\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u00a0"
ODD += "\u1680\u180e\u2003\u2028\u3000\u200b\ufeff\ufffd\0\x01\x7f\xad\ue000\u0378\u08ca\U00011938\U0001fae8\U0010ffff"


@given(text=st.text(st.sampled_from(ODD), max_size=40) | st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_odd_texts_as_the_plain_reference(tokenizer, text):
    text = text.replace("<", "")  # no special tokens
    assert [one.ids.tolist() for one in tokenizer([text], max_length=10**7)] == plain([text])


def test_every_character_by_itself_and_in_a_word(tokenizer):
    points = [*range(0xD800), *range(0xE000, 0x12000), *range(0x1D100, 0x1FC00, 5), 0xE0001, 0x10FFFF]
    texts = [f"hello{chr(point)}{chr(point)}hello {chr(point)} w" for point in points]
    found = [one.ids.tolist() for one in tokenizer(texts)]
    assert [hex(p) for p, one, two in zip(points, found, plain(texts), strict=True) if one != two] == []


@pytest.mark.parametrize("unit", ["a", "hello ", "hello", "中", "é", " ", "'s", "1a", "\n "])
def test_a_text_of_a_million_characters(tokenizer, unit):
    text = (unit * 10**6)[: 10**6]
    start = time.perf_counter()
    (found,) = tokenizer([text], max_length=10**7)
    assert time.perf_counter() - start < PATIENCE  # it takes seconds, and would take hours if it were quadratic
    assert [found.ids.tolist()] == plain([text])


def test_offsets_leave_out_the_space(tokenizer):
    text = "hello world 中👍"
    (found,) = tokenizer([text], offsets=True)
    slices = [text[begin:end] for begin, end in found.offsets]
    assert slices == ["", "hello", "wo", "rl", "d", "", "中", *["👍"] * 4, ""]  # four tokens, a byte each


def test_a_pair_is_cut_with_four_special_tokens(tokenizer):
    (found,) = tokenizer(["a d a d a"], ["d"], max_length=8)
    assert len(found) == 8
    assert found.truncated
    assert tokens(found)[-3:] == ["</s>", "d", "</s>"]


def test_the_mask_takes_the_space_before_it(tokenizer):
    assert tokens(tokenizer(["hello <mask> hello"])[0]) == ["<s>", "hello", "<mask>", "Ġhello", "</s>"]


def test_half_a_surrogate_pair_is_refused(tokenizer):
    with pytest.raises(DataError, match="text or pair 1 holds half a surrogate pair"):
        tokenizer(["a", "a \ud800"])


def test_saved_is_loaded_the_same(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    again = Tokenizer.from_pretrained(tmp_path)
    texts = ["hello wörld <mask>\0", ""]
    assert [one.ids.tolist() for one in again(texts, texts)] == [one.ids.tolist() for one in tokenizer(texts, texts)]


def test_a_space_in_front_as_the_settings_say(tmp_path):
    (write(tmp_path) / "tokenizer_config.json").write_text('{"add_prefix_space": true}')
    assert tokens(Tokenizer.from_pretrained(tmp_path)(["hello"])[0]) == ["<s>", "Ġhello", "</s>"]


def test_what_is_missing_or_damaged_is_named(tmp_path):
    write(tmp_path)
    (tmp_path / "merges.txt").rename(tmp_path / "other")
    with pytest.raises(WeightsError, match=r"merges\.txt is missing"):
        Tokenizer.from_pretrained(tmp_path)
    write(tmp_path, merges=["h e", "q qq"])
    with pytest.raises(WeightsError, match="damaged or do not fit"):
        Tokenizer.from_pretrained(tmp_path)
    write(tmp_path, vocab={token: i for token, i in IDS.items() if token != "<pad>"})
    with pytest.raises(WeightsError, match=r"vocab\.json: special tokens are missing .*: <pad>"):
        Tokenizer.from_pretrained(tmp_path)
