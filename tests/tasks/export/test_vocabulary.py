"""Exports that keep the tokens of some texts: the same answers to these, spelling for the rest; what is refused."""

import json

import numpy as np
import pytest

from onion.cli import main
from onion.errors import DataError
from onion.models.families import read_config
from onion.models.tokenizer import Tokenizer
from onion.tasks.export.comparison import compare
from onion.tasks.export.export import export
from onion.tasks.export.vocabulary import texts_in, tokens_of, with_vocabulary_of
from onion.tasks.finetune.predictor import Predictor
from tests.tasks.export.conftest import KINDS

pytest.importorskip("onnxruntime")

TEXTS = "a lovely film\nthe plot was awful .\n"
CUT = [kind for kind in KINDS if kind != "masked-lm"]


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text(TEXTS)
    return path


def rows(task):
    """Lines of the words of the texts, as the task reads them."""
    lines = [{"text_a": "a lovely plot", "text_b": "the film was awful ."}, {"text_a": "awful", "text_b": "a film"}]
    if task.name == "question-answering":
        return [json.dumps({"question": each["text_a"], "context": each["text_b"]}) for each in lines]
    keys = ("text_a", "text_b") if getattr(task, "pairs", False) else ("text_a",)
    return [json.dumps({name: each[name] for name in keys}) for each in lines]


@pytest.mark.parametrize("kind", CUT)
def test_to_texts_of_its_tokens_a_smaller_model_answers_the_same(kind, run_of, texts, tmp_path):
    manifest = export(run_of(kind), tmp_path / "model", vocab=texts)
    assert manifest["compared"]["largest_difference"] <= 1e-5
    run, exported = Predictor.load(run_of(kind)), Predictor.load(tmp_path / "model")
    assert exported.tokenizer.vocab_size < run.tokenizer.vocab_size
    assert read_config(tmp_path / "model" / "config.json").vocab_size == exported.tokenizer.vocab_size
    assert compare(run, exported, rows(run.task)).largest_difference <= 1e-5


def test_it_is_smaller_also_as_a_program_and_with_8_bits(run_of, texts, tmp_path):
    sizes = {}
    for name, more in {"onnx": {}, "paddle": {"format": "paddle"}, "int8": {"int8": "dynamic"}}.items():
        for vocab in (None, texts):
            manifest = export(run_of("classification"), tmp_path / f"{name}{vocab is None}", vocab=vocab, **more)
            sizes[name, vocab is None] = sum(each["size"] for each in manifest["files"].values())
    assert all(sizes[name, False] < sizes[name, True] for name in ("onnx", "paddle", "int8"))


@pytest.fixture
def tokenizer(encoder_folder):
    return Tokenizer.from_pretrained(encoder_folder)


def test_the_tokens_of_the_texts_are_tokenized_as_before(tokenizer, texts):
    smaller, kept = tokenizer.cut(tokens_of(tokenizer, texts))
    for text, pair in (("a lovely film", None), ("the plot", "was awful .")):
        (before,), (now,) = (each([text], None if pair is None else [pair]) for each in (tokenizer, smaller))
        np.testing.assert_array_equal(np.array(kept)[now.ids], before.ids)
        np.testing.assert_array_equal(now.types, before.types)
    specials = ("pad_id", "unk_id", "cls_id", "sep_id", "mask_id")
    assert [kept[getattr(smaller, name)] for name in specials] == [getattr(tokenizer, name) for name in specials]


def test_a_cut_tokenizer_is_saved_and_loaded(tokenizer, texts, tmp_path):
    smaller, _ = tokenizer.cut(tokens_of(tokenizer, texts))
    smaller.save_pretrained(tmp_path / "saved")
    again = Tokenizer.from_pretrained(tmp_path / "saved")
    assert again.files() == smaller.files()
    assert again.vocab_size == smaller.vocab_size


def test_words_of_known_characters_are_spelled_and_others_unknown(tmp_path):
    names = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "star",
        "rats",
        "dog",
        *"astrdog",
        *(f"##{c}" for c in "astrdog"),
    ]
    (tmp_path / "vocab.txt").write_text("\n".join(names) + "\n")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    whole = Tokenizer.from_pretrained(tmp_path)
    smaller, _ = whole.cut({names.index("star")})
    (encoded,) = smaller(["star rats dog"])
    assert smaller.tokens(encoded.ids[1:-1]) == ["star", "r", "##a", "##t", "##s", "[UNK]"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a film\t1", ["a film\t1"]),
        ('{"text": "a film", "label": 1, "more": ["b", {"c": "d"}]}', ["a film", "b", "d"]),
        ('["a", "b"]', ["a", "b"]),
        ("[CLS] not JSON", ["[CLS] not JSON"]),
        ("{broken", ["{broken"]),
        ("a\x02lovely\x02film\tO\x02O\x02O", ["a lovely film\tO O O"]),
        ('{"text_a": "a\\u0002film"}', ["a film"]),
        ("", [""]),
    ],
)
def test_the_texts_of_a_line(line, found):
    assert list(texts_in(line)) == found


def test_joined_words_of_a_table_are_kept(run_of, tmp_path):
    (tmp_path / "train.tsv").write_text("text_a\tlabel\na\x02lovely\x02film\tO\x02O\x02O\n")
    export(run_of("token-classification"), tmp_path / "model", vocab=tmp_path / "train.tsv")
    run, exported = Predictor.load(run_of("token-classification")), Predictor.load(tmp_path / "model")
    row = json.dumps({"text_a": ["a", "lovely", "film"]})
    assert compare(run, exported, [row]).largest_difference <= 1e-5


def test_the_command_takes_a_table(run_of, tmp_path, capsys):
    (tmp_path / "train.tsv").write_text("text_a\tlabel\na lovely film\tgood\n")
    command = ["export", "--run", str(run_of("classification")), "--output", str(tmp_path / "model")]
    assert main([*command, "--vocab", str(tmp_path / "train.tsv")]) == 0
    assert json.loads(capsys.readouterr().out)["compared"]["changed"] == 0


@pytest.mark.parametrize("text", ["", "12 34\n", "[CLS]\n"])
def test_a_file_without_words_is_refused(text, run_of, tmp_path):
    (tmp_path / "texts.txt").write_text(text)
    with pytest.raises(DataError, match="has no word that the tokenizer knows"):
        export(run_of("classification"), tmp_path / "model", vocab=tmp_path / "texts.txt")


@pytest.mark.parametrize(
    ("kind", "more", "told"),
    [
        ("masked-lm", {}, "its tokens are what the task predicts"),
        ("classification", {"format": "huggingface"}, "not for huggingface"),
        ("classification", {"texts": "texts.txt"}, "leave out texts"),
        ("classification", {"vocab": "nothing.txt"}, "nothing.txt"),
    ],
)
def test_what_cannot_be_cut(kind, more, told, run_of, texts, tmp_path):
    with pytest.raises(DataError, match=told):
        export(run_of(kind), tmp_path / "model", **{"vocab": texts, **more})
    assert not (tmp_path / "model").exists()


def test_other_tokenizers_are_refused(run_of, texts, byte_bpe):
    with pytest.raises(DataError, match="cannot be cut"):
        byte_bpe.cut({1})
    predictor = Predictor.load(run_of("classification"))
    object.__setattr__(predictor, "tokenizer", byte_bpe)
    with pytest.raises(DataError, match="cannot be cut"):
        with_vocabulary_of(predictor, texts)


@pytest.fixture
def byte_bpe():
    import tokenizers
    from tokenizers import models

    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a"]
    return Tokenizer(tokenizers.Tokenizer(models.BPE({name: number for number, name in enumerate(names)}, [])))
