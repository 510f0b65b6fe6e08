import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError, WeightsError
from onion.models.tokenizer import Tokenizer
from scripts.make_golden import tokenizers as reference
from tests.models.tokenization.folders import BPE, BPE_IDS, MERGES, bpe_folder, ids_of
from tests.patience import PATIENCE


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return Tokenizer.from_pretrained(bpe_folder(tmp_path_factory.mktemp("bpe")))


def tokens(found):
    return [BPE[i] for i in found.ids]


def test_a_text_and_a_pair(tokenizer):
    (one,) = tokenizer(["hello world"])
    assert tokens(one) == ["<s>", "hello", "Ġwo", "rl", "d", "</s>"]
    (two,) = tokenizer(["hello"], ["中"])
    assert tokens(two) == ["<s>", "hello", "</s>", "</s>", "ä¸Ń", "</s>"]
    assert two.types.tolist() == [0] * 6
    special = (tokenizer.cls_id, tokenizer.pad_id, tokenizer.sep_id, tokenizer.unk_id, tokenizer.mask_id)
    assert special == (0, 1, 2, 3, len(BPE) - 1)
    assert tokenizer.vocab_size == len(BPE)


def plain(texts):
    return list(reference.byte_ids(texts, BPE_IDS, MERGES))


# Letters, digits and signs with marks, joiners and contractions; every kind of space and of control character;
# characters that are unassigned, private, or younger than the library's tables.
ODD = "hello wrldaé中👍ß'stremvd 0²Ⅷ٣_#.,<>|½\u0301\u200d\ufe0f\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u00a0"
ODD += "\u1680\u180e\u2003\u2028\u3000\u200b\ufeff\ufffd\0\x01\x7f\xad\ue000\u0378\u08ca\U00011938\U0001fae8\U0010ffff"


@given(text=st.text(st.sampled_from(ODD), max_size=40) | st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_odd_texts_as_the_plain_reference(tokenizer, text):
    text = text.replace("<", "")  # no special tokens
    assert ids_of(tokenizer([text], max_length=10**7)) == plain([text])


def test_every_character_by_itself_and_in_a_word(tokenizer):
    points = [*range(0xD800), *range(0xE000, 0x12000), *range(0x1D100, 0x1FC00, 5), 0xE0001, 0x10FFFF]
    texts = [f"hello{chr(point)}{chr(point)}hello {chr(point)} w" for point in points]
    found = ids_of(tokenizer(texts))
    assert [hex(p) for p, one, two in zip(points, found, plain(texts), strict=True) if one != two] == []


@pytest.mark.parametrize("unit", ["a", "hello ", "hello", "中", "é", " ", "'s", "1a", "\n "])
def test_a_text_of_a_million_characters(tokenizer, unit):
    text = (unit * 10**6)[: 10**6]
    start = time.perf_counter()
    found = ids_of(tokenizer([text], max_length=10**7))
    assert time.perf_counter() - start < PATIENCE  # seconds; hours if it were quadratic
    assert found == plain([text])


def test_offsets_leave_out_the_space(tokenizer):
    text = "hello world 中👍"
    (found,) = tokenizer([text], offsets=True)
    assert [text[begin:end] for begin, end in found.offsets] == [
        "",
        "hello",
        "wo",
        "rl",
        "d",
        "",
        "中",
        *["👍"] * 4,
        "",
    ]  # four tokens, a byte each


def test_a_pair_is_cut_with_four_special_tokens(tokenizer):
    (found,) = tokenizer(["a d a d a"], ["d"], max_length=8)
    assert len(found) == 8
    assert found.truncated
    assert tokens(found)[-3:] == ["</s>", "d", "</s>"]


def test_the_mask_takes_the_space_before_it(tokenizer):
    assert tokens(tokenizer(["hello <mask> hello"])[0]) == ["<s>", "hello", "<mask>", "Ġhello", "</s>"]


def test_a_lone_surrogate_is_refused(tokenizer):
    with pytest.raises(DataError, match="text or pair 1 contains a lone surrogate"):
        tokenizer(["a", "a \ud800"])


def test_saved_is_loaded_the_same(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    texts = ["hello wörld <mask>\0", ""]
    assert ids_of(Tokenizer.from_pretrained(tmp_path)(texts, texts)) == ids_of(tokenizer(texts, texts))


def test_a_space_in_front_as_the_settings_say(tmp_path):
    (bpe_folder(tmp_path) / "tokenizer_config.json").write_text('{"add_prefix_space": true}')
    assert tokens(Tokenizer.from_pretrained(tmp_path)(["hello"])[0]) == ["<s>", "Ġhello", "</s>"]


def test_what_is_missing_or_damaged_is_named(tmp_path):
    bpe_folder(tmp_path)
    (tmp_path / "merges.txt").rename(tmp_path / "other")
    with pytest.raises(WeightsError, match=r"merges\.txt is missing"):
        Tokenizer.from_pretrained(tmp_path)
    bpe_folder(tmp_path, merges=["h e", "q qq"])
    with pytest.raises(WeightsError, match="damaged or do not match"):
        Tokenizer.from_pretrained(tmp_path)
    bpe_folder(tmp_path, vocab={token: i for token, i in BPE_IDS.items() if token != "<pad>"})
    with pytest.raises(WeightsError, match=r"vocab\.json: special tokens are missing .*: <pad>"):
        Tokenizer.from_pretrained(tmp_path)
