"""XLNet's tokenizer against transformers', whose ids scripts/make_golden wrote."""

import json
import shutil
from pathlib import Path

import pytest
import tokenizers

from onion.errors import WeightsError
from onion.models.tokenizer import Tokenizer
from tests.models.tokenization.folders import ids_of

GOLDEN = Path(__file__).parent.parent / "golden" / "xlnet_tokenizer"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))


def folder_of(folder, file="spiece.model", **settings):
    shutil.copy(GOLDEN / file, folder)
    (folder / "config.json").write_text('{"model_type": "xlnet"}')
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(params=["spiece.model", "tokenizer.json"])
def tokenizer(request, tmp_path):
    return Tokenizer.from_pretrained(folder_of(tmp_path, request.param))


def test_texts(tokenizer):
    texts, ids, types = zip(*EXPECTED["texts"], strict=True)
    found = tokenizer(texts)
    assert ids_of(found) == list(ids)
    assert [each.types.tolist() for each in found] == list(types)
    assert found[0].ids.tolist()[-2:] == [tokenizer.sep_id, tokenizer.cls_id]


def test_pairs(tokenizer):
    texts, pairs, ids, types = zip(*EXPECTED["pairs"], strict=True)
    found = tokenizer(texts, pairs)
    assert ids_of(found) == list(ids)
    assert [each.types.tolist() for each in found] == list(types)
    assert {0, 1, 2} == set(found[0].types.tolist())


def test_the_special_tokens_have_the_published_ids(tokenizer):
    parts = (tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id, tokenizer.mask_id)
    assert (*parts, tokenizer.vocab_size) == (0, 3, 4, 5, 6, 700)


def test_windows_end_in_sep_and_cls(tokenizer):
    question, context = "Who saw it?", "It was the man that saw the dog, and the dog saw it too."
    (windows,) = tokenizer.windows([question], [context], max_length=20, stride=4)
    assert len(windows) > 1
    for window in windows:
        assert window.ids[-2:].tolist() == [tokenizer.sep_id, tokenizer.cls_id]
        assert window.types[-1] == 2
        assert window.words[-2:].tolist() == [-1, -1]
    begin, end = windows[0].offsets[windows[0].types == 1][0]
    assert context[begin:end] == "It"


def test_it_is_saved_as_a_tokenizer_json_of_the_same_ids(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path / "saved")
    assert not (tmp_path / "saved" / "spiece.model").exists()
    again = Tokenizer.from_pretrained(tmp_path / "saved")
    texts = [text for text, _, _ in EXPECTED["texts"]]
    assert ids_of(again(texts)) == ids_of(tokenizer(texts))


def test_the_penalty_of_digits_with_a_comma_matters(tmp_path):
    """Otherwise the tests above would not show that it is there."""
    tokenizer = Tokenizer.from_pretrained(folder_of(tmp_path))
    stored = json.loads(tokenizer.files()["tokenizer.json"])
    penalised = [index for index, (_, score) in enumerate(stored["model"]["vocab"]) if score < -100]
    assert penalised
    text = " ".join(stored["model"]["vocab"][index][0].strip("\u2581") for index in penalised)
    for index in penalised:
        stored["model"]["vocab"][index][1] += 100
    without = tokenizers.Tokenizer.from_str(json.dumps(stored))
    assert without.encode(text).ids != tokenizer([text])[0].ids.tolist()


@pytest.mark.parametrize(
    ("settings", "one", "other", "same"),
    [
        ({"do_lower_case": True}, "The DOG", "the dog", True),
        ({"keep_accents": False}, "cafe", "café", True),
        ({"keep_accents": True}, "cafe", "café", False),
    ],
)
def test_settings(tmp_path, settings, one, other, same):
    tokenizer = Tokenizer.from_pretrained(folder_of(tmp_path, **settings))
    assert (ids_of(tokenizer([one])) == ids_of(tokenizer([other]))) is same


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"", "it has no unknown piece"),
        (lambda data: data[:1000], "damaged, or not a SentencePiece model"),
        (lambda data: b"<html>" + data, "damaged, or not a SentencePiece model"),
        (lambda data: b"\xff" * 100, "damaged, or not a SentencePiece model"),
        (lambda data: data + b"\x12\x02\x18\x02", "its model type is 2, and only unigram"),
    ],
)
def test_a_damaged_model_is_refused(tmp_path, change, message):
    path = folder_of(tmp_path) / "spiece.model"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(WeightsError, match=rf"spiece\.model: .*{message}"):
        Tokenizer.from_pretrained(tmp_path)


def test_a_special_token_that_is_not_in_the_model_is_named(tmp_path):
    with pytest.raises(WeightsError, match="missing in the vocabulary: <nowhere>"):
        Tokenizer.from_pretrained(folder_of(tmp_path, cls_token="<nowhere>"))


def test_in_a_folder_of_another_family_the_file_is_not_looked_at(tmp_path):
    folder_of(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(WeightsError, match=r"contains neither tokenizer\.json nor vocab\.txt"):
        Tokenizer.from_pretrained(tmp_path)
