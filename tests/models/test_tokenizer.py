import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError, WeightsError
from onion.models.tokenization.basic_tokenizer import Characters
from onion.models.tokenization.windows import kept_lengths
from onion.models.tokenizer import Tokenizer
from tests.models.tokenization.folders import SPECIAL, ids_of, vocab_folder

VOCAB = [*SPECIAL, "a", "b", "film", "##s", "uber", "中", ".", "2", "▁film", "s", "▁中", "filma", "▁a", "[", "]", "A"]
VOCAB += ["über"]
IDS = {token: index for index, token in enumerate(VOCAB)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return vocab_folder(tmp_path_factory.mktemp("vocab"), VOCAB)


@pytest.fixture(scope="module")
def tokenizer(folder):
    return Tokenizer.from_pretrained(folder)


def tokens(found):
    return [VOCAB[i] for i in found.ids]


def framed(*words):
    return ["[CLS]", *words, "[SEP]"]


def test_one_text(tokenizer):
    (found,) = tokenizer(["A films 中a ?"])
    assert tokens(found) == framed("a", "film", "##s", "中", "a", "[UNK]")
    assert found.types.tolist() == [0] * 8
    assert found.ids.dtype == found.types.dtype == np.int64
    assert not found.truncated
    assert len(found) == 8


def test_a_pair(tokenizer):
    (found,) = tokenizer(["a b"], ["2"])
    assert tokens(found) == ["[CLS]", "a", "b", "[SEP]", "2", "[SEP]"]
    assert found.types.tolist() == [0, 0, 0, 0, 1, 1]


def test_special_ids_and_size(tokenizer):
    special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
    assert special == (0, 1, 2, 3, 4)
    assert tokenizer.vocab_size == len(VOCAB)
    assert tokenizer.tokens(np.array([2, 8, 10, 4])) == ["[CLS]", "##s", "中", "[MASK]"]
    assert tokenizer.tokens([len(VOCAB), -1, 2**70]) == [None] * 3


def test_special_tokens_in_a_text_are_special(tokenizer):
    """As in the references: the text says where it ends."""
    assert tokens(tokenizer(["a [SEP] [MASK]b"])[0]) == framed("a", "[SEP]", "[MASK]", "b")
    assert tokens(tokenizer([["a", "[SEP]"]], pre_split=True)[0]) == framed("a", "[SEP]")


def test_nothing_and_empty_texts(tokenizer):
    assert tokenizer([]) == []
    assert [tokens(found) for found in tokenizer(["", " "])] == [framed()] * 2
    (found,) = tokenizer([""], offsets=True)
    assert found.offsets.tolist() == [[0, 0], [0, 0]]
    assert found.words.tolist() == [-1, -1]


def test_lower_casing_follows_the_config(tmp_path, tokenizer):
    cased = Tokenizer.from_pretrained(vocab_folder(tmp_path, VOCAB, do_lower_case=False))
    assert tokens(tokenizer(["A Über"])[0]) == framed("a", "uber")
    assert tokens(cased(["A über"])[0]) == framed("A", "über")


# -- files -------------------------------------------------------------------------------------------------------------


def test_special_tokens_may_have_other_names(tmp_path):
    vocab = ["<pad>" if token == "[PAD]" else token for token in VOCAB]
    folder = vocab_folder(tmp_path, vocab[::-1], pad_token={"content": "<pad>"})
    assert Tokenizer.from_pretrained(folder).pad_id == len(VOCAB) - 1


def test_saved_is_loaded_the_same_from_tokenizer_json(tmp_path, tokenizer):
    texts = ["A films 中a ?", "a [MASK] b"]
    before = tokenizer(texts, max_length=6)
    tokenizer.save_pretrained(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["tokenizer.json", "tokenizer_config.json"]
    assert ids_of(Tokenizer.from_pretrained(tmp_path)(texts, max_length=6)) == ids_of(before)
    assert tokens(tokenizer(texts, max_length=6)[1]) == tokens(before[1]) == framed("a", "[MASK]", "b")


def test_stored_truncation_and_padding_are_disabled(tmp_path, folder):
    backend = Tokenizer.from_pretrained(folder)._backend
    backend.enable_truncation(4)
    backend.enable_padding(length=64)
    (tmp_path / "tokenizer.json").write_text(backend.to_str())
    assert len(Tokenizer.from_pretrained(tmp_path)(["a b 2 a"])[0]) == 6


def test_missing_and_damaged_files_are_named(tmp_path):
    def refused(message):
        with pytest.raises(WeightsError, match=message):
            Tokenizer.from_pretrained(tmp_path)

    with pytest.raises(WeightsError, match="neither a folder nor a known model"):
        Tokenizer.from_pretrained(tmp_path / "nowhere")
    refused(r"contains neither tokenizer\.json nor vocab\.txt")
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"')
    refused(r"tokenizer\.json: damaged")
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe\x00")
    refused(r"vocab\.txt: cannot read")
    for content in ("{", "[" * 100_000):
        (tmp_path / "tokenizer_config.json").write_text(content)
        refused(r"tokenizer_config\.json: not a JSON file")
    (tmp_path / "tokenizer_config.json").write_text("[1]")
    refused(r"tokenizer_config\.json: contains a JSON list, not an object")


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        ((["a"], ["b", "c"]), {}, "1 texts and 2 pairs do not match"),
        (("a",), {}, "give a list of texts, not one text"),
        ((b"a",), {}, "give a list of texts, not one text"),
        ((None,), {}, "give a list of texts, not NoneType None"),
        ((5,), {}, "give a list of texts, not int 5"),
        ((["a"], 5), {}, "give a list of texts, not int 5"),
        ((["a", None],), {}, "text 1 is a NoneType, not a string"),
        ((["a"], [3]), {}, "pair 0 is a int, not a string"),
        ((["a"], None, 2), {}, "max_length 2 leaves no room for text beside 2 special tokens"),
        ((["a"], ["b"], 3), {}, "max_length 3 leaves no room for text beside 3 special tokens"),
        (
            (["a"], ["b"], 9, "longest"),
            {},
            "unknown truncation 'longest'; known are longest_first, only_first, only_second",
        ),
        ((["a"], None, 9, "only_second"), {}, "truncation 'only_second' needs pairs"),
        (
            (["a", "a"], ["b", "b b b b b"], 6, "only_first"),
            {},
            "pair 1 alone is too long for max_length 6, and 'only_first' does not truncate it",
        ),
        ((["a", "a a a a a"], ["b", "b"], 6, "only_second"), {}, "text 1 alone is too long for max_length 6"),
        ((["a"],), {"pre_split": True}, "text 0 is a str, not a list of words"),
        (([["a"], ["a", 1]],), {"pre_split": True}, "text 1 contains a int, not only words"),
        (([["a"]],), {}, "text 0 is a list, not a string"),
    ],
)
def test_bad_calls_are_refused(tokenizer, arguments, more, message):
    with pytest.raises(DataError, match=f"^{message}"):
        tokenizer(*arguments, **more)
    assert tokens(tokenizer(["a"])[0]) == framed("a")


@pytest.mark.parametrize(
    "some",
    [lambda *texts: (text for text in texts), lambda *texts: map(str, texts), lambda *texts: np.array(texts)],
    ids=["generator", "map", "array"],
)
def test_texts_may_be_any_iterable(tokenizer, some):
    a, b = IDS["a"], IDS["b"]
    assert ids_of(tokenizer(some("a", "b"))) == [[2, a, 3], [2, b, 3]]
    assert ids_of(tokenizer(some("a", "b"), some("b", "b"))) == [[2, a, 3, b, 3], [2, b, 3, b, 3]]
    assert [ids_of(windows) for windows in tokenizer.windows(some("a", "b"))] == [[[2, a, 3]], [[2, b, 3]]]
    assert ids_of(tokenizer((["a", "b"] for _ in "x"), pre_split=True)) == [[2, a, b, 3]]


@pytest.mark.parametrize("value", [5, np.int64(5), np.uint8(5)])
def test_whole_numbers(tokenizer, value):
    assert len(tokenizer(["a b a b"], max_length=value)[0]) == 5


@pytest.mark.parametrize("value", ["5", None, 3.5, 5.0, True, [5]])
def test_other_values_than_whole_numbers_are_named(tokenizer, value):
    for call in (tokenizer, tokenizer.windows):
        with pytest.raises(DataError, match=r"^max_length .* is not a whole number"):
            call(["a"], max_length=value)
    with pytest.raises(DataError, match=r"^stride .* is not a whole number"):
        tokenizer.windows(["a"], stride=value)
    if value is not None:
        with pytest.raises(DataError, match=r"^max_first .* is not a whole number"):
            tokenizer.windows(["a"], ["b"], max_first=value)


def test_huge_lengths_truncate_nothing(tokenizer):
    assert len(tokenizer(["a " * 1000], max_length=2**70)[0]) == 1002
    assert len(tokenizer.windows(["a " * 1000], max_length=2**70, stride=2**70)[0]) == 1


# -- truncation --------------------------------------------------------------------------------------------------------


def test_truncation_of_texts_is_reported(tokenizer):
    exact, longer = tokenizer(["a b 2", "a b 2 a"], max_length=5)
    assert tokens(exact) == tokens(longer) == framed("a", "b", "2")
    assert (exact.truncated, longer.truncated) == (False, True)
    assert len(tokenizer(["a b 2 a"])[0]) == 6  # max_length belongs to the call


def test_truncation_of_pairs(tokenizer):
    counts = {}
    for truncation in ("only_first", "only_second", "longest_first"):
        (found,) = tokenizer(["a a a a"], ["b b b b"], 9, truncation)
        assert found.truncated
        counts[truncation] = (tokens(found).count("a"), tokens(found).count("b"))
    assert counts == {"only_first": (2, 4), "only_second": (4, 2), "longest_first": (3, 3)}
    assert len(tokenizer(["a a a a"], max_length=5, truncation="only_first")[0]) == 5


@given(first=st.integers(0, 12), second=st.integers(0, 12), max_length=st.integers(4, 20))
def test_longest_first_drops_one_token_of_the_longer_text_at_a_time(tokenizer, first, second, max_length):
    a, b = first, second
    while a + b > max_length - 3:
        a, b = (a - 1, b) if a > b else (a, b - 1)
    if first + second > max_length - 3:
        assert kept_lengths(first, second, max_length - 3) == (a, b)
    for split in (False, True):
        texts = [["a"] * first], [["b"] * second]
        texts = texts if split else tuple([" ".join(one[0])] for one in texts)
        (found,) = tokenizer(*texts, max_length, pre_split=split, offsets=True)
        assert tokens(found) == ["[CLS]", *["a"] * a, "[SEP]", *["b"] * b, "[SEP]"]
        assert found.types.tolist() == [0] * (a + 2) + [1] * (b + 1)
        assert found.truncated == (first + second > a + b)
        assert len(found.offsets) == len(found.words) == len(found)


# -- offsets -----------------------------------------------------------------------------------------------------------


def test_offsets_and_words_only_when_requested(tokenizer):
    (plain,) = tokenizer(["a films"])
    assert plain.offsets is None
    assert plain.words is None
    with pytest.raises(ValueError, match="tokenize with offsets=True"):
        plain.alignment  # noqa: B018
    (found,) = tokenizer(["a films"], offsets=True)
    assert found.alignment == (found.offsets, found.words)
    assert found.ids.tolist() == plain.ids.tolist()
    assert found.offsets.dtype == found.words.dtype == np.int64
    assert found.mask.tolist() == [1] * 5


def test_offsets_count_code_points_of_each_text(tokenizer):
    text, pair = "\u0000👍 Films中 [MASK]", "Über u\u0308ber."
    (found,) = tokenizer([text], [pair], offsets=True)
    assert tokens(found) == ["[CLS]", "[UNK]", "film", "##s", "中", "[MASK]", "[SEP]", "uber", "uber", ".", "[SEP]"]
    slices = [(text, pair)[kind][begin:end] for kind, (begin, end) in zip(found.types, found.offsets, strict=True)]
    assert slices == ["", "👍", "Film", "s", "中", "[MASK]", "", "Über", "u\u0308ber", ".", ""]
    assert found.words.tolist() == [-1, 0, 1, 1, 2, 3, -1, 0, 1, 2, -1]
    assert found.offsets[[0, 6, 10]].tolist() == [[0, 0]] * 3


def test_pre_split_texts(tokenizer):
    words = ["Films.", "\u0000", "中a"]
    (found,) = tokenizer([words], [("b",)], offsets=True, pre_split=True)
    assert tokens(found) == ["[CLS]", "film", "##s", ".", "中", "a", "[SEP]", "b", "[SEP]"]
    assert found.words.tolist() == [-1, 0, 0, 0, 2, 2, -1, 0, -1]
    of_first = [i for i in range(len(found)) if found.types[i] == 0 and found.words[i] >= 0]
    assert [words[found.words[i]][slice(*found.offsets[i])] for i in of_first] == ["Film", "s", ".", "中", "a"]
    assert tokens(tokenizer([[]], pre_split=True)[0]) == framed()


# -- styles ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("style", "text", "expected"),
    [
        ("wordpiece", "Filmsfilm 2a中.", ["[UNK]", "[UNK]", "中", "."]),
        ("symbols", "Film°s 2a×中.€", ["film", "[UNK]", "s", "[UNK]", "[UNK]", "中", ".", "[UNK]"]),
        ("words", "Film  films 中.a\x1cfilm\u3000filma", ["film", "[UNK]", "[UNK]", "film", "filma"]),
        ("words", "2[MASK]a ##s Uber", ["2", "[MASK]", "a", "##s", "uber"]),
        ("spaces", "FILMS 中 中a .\x1ca\u3000é", ["film", "##s", "中", "[UNK]", ".", "a", "[UNK]"]),
        ("spaces", "中.a", ["[UNK]"]),  # no spaces, one word (ERNIE issue 437)
        ("characters", "Films中.a-\x1cé", ["film", "##s", "中", ".", "a", "[UNK]", "[UNK]"]),
        ("sentencepiece-characters", "Films中.Filmss a", ["▁film", "s", "▁中", "[UNK]", "▁film", "s", "s", "▁a"]),
    ],
)
def test_styles_of_splitting(folder, tmp_path, style, text, expected):
    tokenizer = Tokenizer.from_pretrained(folder, style=style)
    assert tokens(tokenizer([text])[0]) == framed(*expected)
    tokenizer.save_pretrained(tmp_path)
    assert tokens(Tokenizer.from_pretrained(tmp_path)([text])[0]) == framed(*expected)


@pytest.mark.parametrize(
    ("style", "expected"), [("wordpiece", "a b"), ("spaces", "a [UNK] b"), ("words", "a [UNK] b")], ids=str
)
def test_a_lone_surrogate_is_dropped_or_unknown(folder, style, expected):
    """Python's strings may contain one (``json.loads`` makes them), the library's may not."""
    tokenizer = Tokenizer.from_pretrained(folder, style=style)
    assert tokens(tokenizer(["a \ud800 b"])[0]) == framed(*expected.split())
    assert tokens(tokenizer([["a", "\ud800", "b"]], pre_split=True)[0]) == framed(*expected.split())


def test_whole_words_keep_their_capitals_and_have_any_length(tmp_path):
    vocab_folder(tmp_path, [*VOCAB, "x" * 200, "ΟΣ"], do_lower_case=False)
    (found,) = Tokenizer.from_pretrained(tmp_path, style="words")([f"{'x' * 200} ΟΣ\x1cB a"], offsets=True)
    assert found.ids.tolist() == [2, len(VOCAB), len(VOCAB) + 1, 1, IDS["a"], 3]
    assert found.offsets[2:5].tolist() == [[201, 203], [204, 205], [206, 207]]


def test_a_chosen_style_is_kept(tmp_path):
    vocab_folder(tmp_path, VOCAB, tokenizer_class="ErnieTokenizer")
    assert tokens(Tokenizer.from_pretrained(tmp_path)(["a°b"])[0]) == framed("a", "[UNK]", "b")
    chosen = Tokenizer.from_pretrained(tmp_path, style="wordpiece")
    assert tokens(chosen(["a°b"])[0]) == framed("[UNK]")
    chosen.save_pretrained(tmp_path / "saved")
    assert tokens(Tokenizer.from_pretrained(tmp_path / "saved")(["a°b"])[0]) == framed("[UNK]")


@pytest.mark.parametrize("style", ["spaces", "characters"])
def test_cased_styles_keep_capitals_and_know_the_same_spaces(tmp_path, style):
    tokenizer = Tokenizer.from_pretrained(vocab_folder(tmp_path, VOCAB, do_lower_case=False), style=style)
    assert tokens(tokenizer(["films\x1cFilms\x1fa \ud800"])[0]) == framed("film", "##s", "[UNK]", "a", "[UNK]")


@pytest.mark.parametrize("style", ["spaces", "characters", "sentencepiece-characters"])
def test_every_style_gives_offsets(folder, style):
    text = "Films 中.Films\x1ca"
    (found,) = Tokenizer.from_pretrained(folder, style=style)([text], offsets=True)
    assert [text[slice(*found.offsets[i])] for i in (1, 2, -2)] == ["Film", "s", "a"]


@pytest.mark.parametrize("style", ["wordpiece", "spaces", "characters", "sentencepiece-characters"])
def test_words_of_more_than_100_characters_are_unknown(tmp_path, style):
    tokenizer = Tokenizer.from_pretrained(vocab_folder(tmp_path, [*VOCAB, "##a"]), style=style)
    assert len(tokenizer(["a" * 100])[0]) == 102
    assert tokenizer(["a" * 101])[0].ids.tolist() == [2, 1, 3]


def test_a_style_needs_vocab_txt(folder, tmp_path, tokenizer):
    with pytest.raises(WeightsError, match="unknown tokenizer style 'chars'; known are wordpiece, symbols, spaces"):
        Tokenizer.from_pretrained(folder, style="chars")
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(WeightsError, match=r"style 'spaces' needs vocab\.txt, which is missing"):
        Tokenizer.from_pretrained(tmp_path, style="spaces")


# -- threads and copies ------------------------------------------------------------------------------------------------

LONG = ["a b 2 " * 10, "2 " * 9] * 4


def plain(encodings):
    return [(one.ids.tolist(), one.truncated) for one in encodings]


def test_threads_do_not_get_each_others_lengths(tokenizer):
    """The prefetching of data and a tester may share a tokenizer."""
    jobs = {
        5: lambda: plain(tokenizer(LONG, max_length=5)),
        9: lambda: plain(tokenizer(LONG, LONG, max_length=9)),
        12: lambda: plain(tokenizer(LONG, max_length=12, offsets=True)),
        "windows": lambda: [plain(windows) for windows in tokenizer.windows(LONG, max_length=9, stride=3)],
        "files": tokenizer.files,
    }
    wanted = {name: job() for name, job in jobs.items()}
    with ThreadPoolExecutor(len(jobs)) as pool:
        found = pool.map(lambda name: [jobs[name]() for _ in range(100)], jobs)
        for name, results in zip(jobs, found, strict=True):
            assert all(one == wanted[name] for one in results), name


def test_a_character_is_replaced_even_while_another_thread_learns_of_it(folder, monkeypatch):
    text, reference, meanwhile = "a\u061db", Characters._reference, []
    wanted = plain(Tokenizer.from_pretrained(folder)([text]))
    fresh = Tokenizer.from_pretrained(folder)

    def learn(characters, character):
        if not meanwhile:
            meanwhile.append("begun")
            meanwhile.append(plain(fresh([text])))
        return reference(characters, character)

    monkeypatch.setattr(Characters, "_reference", learn)
    assert plain(fresh([text])) == wanted == [([2, IDS["a"], 1, IDS["b"], 3], False)]
    assert meanwhile == ["begun", wanted]


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda tokenizer: pickle.loads(pickle.dumps(tokenizer))], ids=["deepcopy", "pickle"]
)
def test_copies_are_independent(tokenizer, copied):
    wanted = plain(tokenizer(LONG, max_length=5))
    other = copied(tokenizer)
    assert plain(other(LONG, max_length=12)) != wanted
    assert plain(tokenizer(LONG, max_length=5)) == plain(other(LONG, max_length=5)) == wanted
