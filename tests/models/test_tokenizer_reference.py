"""Ids against reference tokenizers: a plain one in Python on odd inputs, digests of real texts on real vocabularies."""

import json
import shutil
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.models.tokenizer import Tokenizer
from scripts.make_golden import tokenizers as reference
from tests.models.tokenization.folders import SPECIAL, ids_of, vocab_folder
from tests.paths import ROOT
from tests.patience import PATIENCE

GOLDEN = json.loads((Path(__file__).parent / "golden" / "tokenizers.json").read_text())
DATA = ROOT.parent / "shared" / "data"

VOCAB = [*SPECIAL, "a", "##a", "b", "##b", "ab", "A", "é", "e", "##e", "##é", "#", *"中.，。σςοａ!👍i\u1100"]
VOCAB += ["##中", "##σ", "##ς", "##ο", "##👍", "##\u1161"]
IDS = {token: index for index, token in enumerate(VOCAB)}
# Letters, accents and marks, Greek with its sigma, full-width forms, emoji with joiners, controls, kinds of space,
# punctuation and ideographs that the library's tables do not know, unassigned and private characters, half a pair.
ODD = "abA éÉe\u0301\u0328中国가，。！ａ.#$`ΑΟΣσςİıßﬁ👍🏽\u200d\ufe0f\u1e00\u2260\u0000\u0001"
ODD += "\t\n\r\x1c\x85\u00a0\u2028\u3000\ufeff\ufffd\ue000\u0378\ufada\u061d\u2e52\u166d\u1734\u07fd\u08ca\ufa0e\ud800"
ODD += "\U0002b820\U0002cea1\U00011938\U0002f800"


def made(folder, lower, kind):
    return Tokenizer.from_pretrained(vocab_folder(folder, VOCAB, do_lower_case=lower, tokenizer_class=kind))


@pytest.fixture(scope="module", params=[True, False], ids=["lower", "cased"])
def lower(request):
    return request.param


@pytest.fixture(scope="module")
def tokenizer(lower, tmp_path_factory):
    return made(tmp_path_factory.mktemp("vocab"), lower, "BertTokenizer")


@pytest.fixture(scope="module")
def of_ernie(lower, tmp_path_factory):
    """PaddleNLP's for ERNIE, in which symbols stand alone."""
    return made(tmp_path_factory.mktemp("vocab"), lower, "ErnieTokenizer")


def ids(tokenizer, texts):
    return ids_of(tokenizer(texts, max_length=10**7))


@given(text=st.text(st.sampled_from(ODD + "[]MASK"), max_size=30) | st.text(max_size=30))
def test_odd_texts(tokenizer, lower, text):
    text = text.replace("[ASK", "[MASK]")
    assert ids(tokenizer, [text]) == [reference.plain_ids(text, IDS, lower)]


@given(text=st.text(st.sampled_from(ODD + "[]MASK°×€→²ºØŊŋ〇µ"), max_size=30) | st.text(max_size=30))
def test_odd_texts_where_symbols_stand_alone(of_ernie, lower, text):
    text = text.replace("[ASK", "[MASK]")
    assert ids(of_ernie, [text]) == [reference.plain_ids(text, IDS, lower, symbols=True)]


def as_pieces(part, lower):
    """What pieces are made of: lowered, without accents and whatever is dropped, every sigma alike."""
    if lower:
        part = "".join(c for c in unicodedata.normalize("NFD", part.lower()) if unicodedata.category(c) != "Mn")
    return "".join(c for c in part if unicodedata.category(c)[0] != "C" and c != "\ufffd").replace("ς", "σ")


@given(text=st.text(st.sampled_from(ODD), max_size=30))
def test_offsets_cut_out_what_the_token_came_from(tokenizer, lower, text):
    (found,) = tokenizer([text], offsets=True)
    places = found.offsets[1:-1].tolist()
    assert places == sorted(places)
    for token, (begin, end) in zip(found.ids[1:-1], places, strict=True):
        assert 0 <= begin < end <= len(text)
        piece, part = VOCAB[token].removeprefix("##").replace("ς", "σ"), as_pieces(text[begin:end], lower)
        if end - begin == 1:  # tokens may share a character: a Korean syllable is taken apart into its letters
            assert piece in part or piece == "[UNK]"
        else:
            assert piece in (part, "[UNK]")
    known = [i for i in range(len(places)) if i and found.words[i + 1] != found.words[i]]
    assert all(places[i - 1][1] <= places[i][0] for i in known)  # words do not overlap


def differing(tokenizer, points, **settings):
    """The characters that the reference treats differently, in a word and by themselves."""
    texts = [f"a{chr(p)}b {chr(p)}" for p in points]
    found = zip(points, ids(tokenizer, texts), texts, strict=True)
    return [f"{p:04x}" for p, one, text in found if one != reference.plain_ids(text, IDS, **settings)]


def test_every_character_by_itself_and_in_a_word(tokenizer, lower):
    """All of the first plane that is not one of the large even blocks, and samples of the other planes."""
    even = (range(0x3500, 0x4D00), range(0x4F00, 0x9F00), range(0xAD00, 0xD700), range(0xD900, 0xF800))
    points = [p for p in range(0x10000) if not any(p in block for block in even)]
    points += [*range(0x10000, 0x12000, 3), *range(0x1D100, 0x1FC00, 5), *range(0x2A6D0, 0x30000, 31)]
    assert differing(tokenizer, [*points, 0xE0001, 0x10FFFF], lower=lower) == []


def test_every_character_where_symbols_stand_alone(of_ernie, lower):
    points = [*range(0x3400), *range(0xA000, 0xAC00), *range(0xD800, 0xE100), *range(0xF900, 0x12000)]
    assert differing(of_ernie, [*points, *range(0x1D100, 0x1FC00, 5)], lower=lower, symbols=True) == []


@pytest.mark.parametrize(
    "text", ["ΟΣ", "ΣΟ", "Σ", "Ο\x00Σ", "ΟΣ\x00Ο", "İΟΣ.", "ΟΣ\u0301Ο", "Ο[MASK]Σ", "ΟΣ中", "ΟΣ ΟΣΟ"]
)
def test_a_sigma_at_the_end_of_a_word(tokenizer, lower, text):
    assert ids(tokenizer, [text]) == [reference.plain_ids(text, IDS, lower)]


def test_a_character_that_needs_care_changes_no_neighbour(tokenizer):
    alone = ids(tokenizer, ["a b", "ab 中"])
    assert ids(tokenizer, ["a b", "\u061d\u0378", "ab 中"])[::2] == alone


@pytest.mark.parametrize("unit", ["a", "a ", "中", "é", "ΟΣ ", "👍", "e\u0301", "\u061d", "\0", " "])
def test_a_text_of_a_million_characters(tokenizer, unit):
    start = time.perf_counter()
    (found,) = tokenizer([(unit * 10**6)[: 10**6]], max_length=512)
    assert len(found) <= 512
    assert time.perf_counter() - start < PATIENCE  # seconds; hours if it were quadratic


def test_the_plain_reference_knows_the_steps_of_bert():
    found = [VOCAB[i] for i in reference.plain_ids("Éab [MASK]中a.", IDS)]
    assert found == ["[CLS]", "e", "##a", "##b", "[MASK]", "中", "a", ".", "[SEP]"]


def test_every_case_has_its_digest():
    assert list(GOLDEN) == list(reference.CASES)


def of_case(folder, case):
    """The tokenizer that a case is about."""
    if case.style == "bytes":
        tokens = {token: index for index, token in enumerate(reference.read_tokens(DATA, case.vocabulary))}
        (folder / "vocab.json").write_text(json.dumps(tokens))
        shutil.copy(reference.MERGES, folder)
        return Tokenizer.from_pretrained(folder)
    shutil.copy(DATA / "vocab" / case.vocabulary / "vocab.txt", folder)
    kind = "ErnieTokenizer" if case.style == "symbols" else "BertTokenizer"
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": case.lower, "tokenizer_class": kind}))
    return Tokenizer.from_pretrained(folder, style=case.style if case.style in ("spaces", "characters") else None)


@pytest.mark.data
@pytest.mark.parametrize("name", GOLDEN)
def test_real_texts_on_real_vocabularies(tmp_path, name):
    case = reference.CASES[name]
    vocabulary = DATA / "vocab" / case.vocabulary / "vocab.txt"
    if not (vocabulary.is_file() or case.style == "bytes") or not (DATA / f"text_{case.language}").is_dir():
        pytest.skip(f"no data folder with vocab/{case.vocabulary} and text_{case.language} is beside the repository")
    if unicodedata.unidata_version < "14":
        pytest.skip("the digests were made with the characters of Unicode 14")
    tokenizer = of_case(tmp_path, case)
    lines = reference.read_lines(DATA, case.language)
    found = ids(tokenizer, lines)
    assert {"lines": len(lines), "ids": sum(map(len, found)), "sha256": reference.digest(found)} == GOLDEN[name]
