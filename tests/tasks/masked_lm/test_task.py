from collections import Counter

import numpy as np
import paddle
import pytest

from onion.errors import DataError, WeightsError
from onion.models.encoder import Encoder
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.cache import cached_features
from onion.tasks.finetune.fine_tune import seed_everything, train
from onion.tasks.finetune.inference import evaluate, predict, predict_lines, predict_texts
from onion.tasks.finetune.initialization import Initialization
from onion.tasks.finetune.settings import Settings
from onion.tasks.masked_lm.masking import Masker
from onion.tasks.masked_lm.task import MaskedLM
from onion.tasks.registry import get_task
from tests.tasks.helpers import (
    BAD,
    DATA,
    GOOD,
    HIDDEN,
    IDS,
    PLAIN,
    POSITIONS,
    VOCAB,
    log_rows,
    needs_data,
    tiny_encoder,
    write_tsv,
)

PAD, UNK, CLS, SEP, MASK = range(5)


def text_file(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_plain_text_is_a_row_a_paragraph(tmp_path):
    path = text_file(tmp_path / "a.TXT", "\ufeffA title\r\nIts text,\twith a tab.\n\n \t\nNext\u2028one")
    rows = list(MaskedLM().rows(path, labelled=True))
    assert [(row.path, row.line, dict(row.cells)) for row in rows] == [
        (path, 1, {"text_a": "A title"}),
        (path, 2, {"text_a": "Its text,\twith a tab."}),
        (path, 5, {"text_a": "Next\u2028one"}),
    ]
    assert MaskedLM().fitted(path).pairs is False


def test_tables_need_no_labels_and_may_have_them(tmp_path):
    plain = write_tsv(tmp_path / "plain.tsv", [("a film",), ("a plot",)], ("text_a",))
    labelled = write_tsv(tmp_path / "labelled.tsv", [("good", "a film"), ("bad", "a plot")], ("label", "text_a"))
    pairs = write_tsv(tmp_path / "pairs.tsv", [("a film", "a plot")], ("text_a", "text_b"))
    task = MaskedLM()
    for needed in (True, False):
        texts = [[row.cells for row in task.rows(path, needed)] for path in (plain, labelled)]
        assert texts == [[{"text_a": "a film"}, {"text_a": "a plot"}]] * 2
    assert (task.fitted(labelled).pairs, task.fitted(pairs).pairs) == (False, True)


def test_plain_text_where_pairs_were_trained(tmp_path):
    with pytest.raises(DataError, match=r"a\.txt:2: there is no column 'text_b'; the training file has"):
        list(MaskedLM(pairs=True).rows(text_file(tmp_path / "a.txt", "\na"), labelled=False))
    with pytest.raises(
        DataError, match=r"a\.json: cannot tell .*; use plain text \.txt, or a table \.tsv, \.csv, \.jsonl"
    ):
        MaskedLM().rows("a.json", labelled=True)
    with pytest.raises(DataError, match=r"none\.txt: there is no such file"):
        list(MaskedLM().rows(tmp_path / "none.txt", labelled=False))


def features(tokenizer, path, labelled=True, **changes):
    task, notes = MaskedLM(**changes).fitted(path), Counter()
    return task.features(list(task.rows(path, labelled)), tokenizer, labelled, notes), notes


def numbers(examples, name):
    return [each[name].tolist() for each in examples]


def test_words_by_hand(tmp_path, tokenizer):
    path = text_file(tmp_path / "a.txt", "A film. Zzz\n中文 [MASK] [SEP] a")
    examples, notes = features(tokenizer, path, max_length=16)
    assert numbers(examples, "ids") == [
        [CLS, IDS["a"], IDS["film"], IDS["."], UNK, SEP],
        [CLS, IDS["中"], IDS["文"], MASK, SEP, IDS["a"], SEP],
    ]
    assert numbers(examples, "words") == [[-1, 0, 1, 2, -1, -1], [-1, 0, 1, -1, -1, 4, -1]]
    assert [each["row"] for each in examples] == [0, 1]
    assert not notes


def test_the_tokens_of_a_word_have_one_number(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*VOCAB, "##s", "##ic"]), encoding="utf-8")
    pieces = Tokenizer.from_pretrained(tmp_path)
    examples, _ = features(pieces, text_file(tmp_path / "a.txt", "a films filmics plot"))
    assert numbers(examples, "words") == [[-1, 0, 1, 1, 2, 2, 2, 3, -1]]


def test_a_long_text_is_several_examples_and_nothing_is_lost(tmp_path, tokenizer):
    words = [PLAIN[number % len(PLAIN)] for number in range(11)]
    path = text_file(tmp_path / "a.txt", f"a\n{' '.join(words)}\nfilm\n")
    examples, notes = features(tokenizer, path, max_length=6)
    assert [each["row"] for each in examples] == [0, 1, 1, 1, 2]
    assert [len(each["ids"]) for each in examples] == [3, 6, 6, 5, 3]
    inside = [VOCAB[one] for each in examples[1:4] for one in each["ids"][1:-1]]
    assert inside == words
    assert not notes


def test_pairs_are_cut_and_it_is_told(tmp_path, tokenizer):
    rows = [("a film", "the plot was it"), ("a", "a")]
    path = write_tsv(tmp_path / "a.tsv", rows, ("text_a", "text_b"))
    examples, notes = features(tokenizer, path, max_length=7)
    assert numbers(examples, "ids")[0] == [CLS, IDS["a"], IDS["film"], SEP, IDS["the"], IDS["plot"], SEP]
    assert numbers(examples, "types")[0] == [0, 0, 0, 0, 1, 1, 1]
    assert numbers(examples, "words")[0] == [-1, 0, 1, -1, 0, 1, -1]
    assert notes == {"texts longer than 7 tokens, cut": 1}


def test_where_nothing_can_be_masked_nothing_can_be_learned(tmp_path, tokenizer):
    path = text_file(tmp_path / "a.txt", "zzz\na film\n[MASK]\n\u200b\n")
    learned, notes = features(tokenizer, path)
    assert [each["row"] for each in learned] == [1]
    assert notes == {"texts without a word to mask, left out": 3}
    read, notes = features(tokenizer, path, labelled=False)
    assert [each["row"] for each in read] == [0, 1, 2, 3]
    assert not notes
    with pytest.raises(DataError, match="holds no example to learn from"):
        cached_features(MaskedLM(), text_file(tmp_path / "b.txt", "zzz"), tokenizer)


@pytest.mark.parametrize(
    "setting", [{"masked_share": 0}, {"masked_share": 1.5}, {"guesses": 0}, {"guesses": 1.5}, {"whole_words": "yes"}]
)
def test_settings_that_do_not_do(setting):
    with pytest.raises(DataError, match=next(iter(setting))):
        get_task("masked-lm", setting)


def test_a_baseline(tmp_path, tokenizer):
    examples, _ = features(tokenizer, text_file(tmp_path / "a.txt", "a film zzz zzz zzz\na plot . a"))
    assert MaskedLM().baseline(examples) == {"commonest_word_accuracy": 3 / 6}


@needs_data
@pytest.mark.parametrize(
    ("text", "vocabulary", "characters"),
    [("text_en/wiki_en", "bert-base-uncased", 450_000), ("text_zh/wiki_zh", "ernie-1.0-zh", 160_000)],
)
def test_real_texts(tmp_path, text, vocabulary, characters):
    (tmp_path / "vocab.txt").write_bytes((DATA / "vocab" / vocabulary / "vocab.txt").read_bytes())
    reader = Tokenizer.from_pretrained(tmp_path)
    path = DATA / f"{text}.valid.txt"
    examples = cached_features(MaskedLM(), path, reader)
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert sum(map(len, lines)) > characters
    assert examples[-1]["row"] == len(lines) - 1
    assert examples.lengths.max() == 128
    known = sum(int((each["words"] >= 0).sum()) for each in examples)
    assert known > 0.97 * (examples.lengths - 2).sum()  # the others are unknown words
    batch = MaskedLM().collate(examples[:200], reader.pad_id)
    share = len(Masker(reader, 1).masked(batch)["labels"]) / (batch["words"] >= 0).sum()
    assert share == pytest.approx(0.15, abs=0.02)


# -- training and prediction -------------------------------------------------------------------------------------------


def begun(folder):
    seed_everything(5)
    return Initialization(folder).network(MaskedLM())


def test_a_pretrained_head_is_taken_over(tmp_path, encoder_folder, caplog):
    paddle.seed(4)
    pretrained = EncoderForPretraining(Encoder.from_pretrained(encoder_folder))
    pretrained.save_pretrained(tmp_path)
    network = begun(tmp_path)
    found = network.cls.state_dict()
    assert len(found) == 5
    for name, array in found.items():
        assert np.array_equal(array.numpy(), pretrained.cls.state_dict()[name].numpy()), name
    assert not caplog.messages
    assert np.array_equal(network.encoder.pooler.dense.weight, pretrained.encoder.pooler.dense.weight)


def test_without_one_it_begins_anew_and_that_is_told(encoder_folder, caplog):
    network = begun(encoder_folder)
    assert "lacks cls.predictions.decoder_bias, cls.predictions.transform.weight" in caplog.text
    assert network.cls.predictions.transform.weight.shape == [HIDDEN, HIDDEN]
    same = Encoder.from_pretrained(encoder_folder).state_dict()
    assert all(np.array_equal(array, same[name]) for name, array in network.encoder.state_dict().items())


def test_a_pretrained_head_that_does_not_fit(tmp_path, encoder_folder):
    pretrained = EncoderForPretraining(Encoder.from_pretrained(encoder_folder))
    pretrained.cls.predictions.decoder_bias = paddle.create_parameter([3], "float32")
    pretrained.save_pretrained(tmp_path)
    with pytest.raises(WeightsError, match=r"cls\.predictions\.decoder_bias is \[3\], not"):
        begun(tmp_path)


SENTENCES = [" ".join(words) for words in zip(GOOD, PLAIN, BAD, PLAIN[6:], strict=False)]
"""Six sentences of four words, no word in two of them; so any word tells the others."""


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder, chance = tmp_path_factory.mktemp("texts"), np.random.default_rng(1)
    for name, count in (("train", 300), ("dev", 90)):
        lines = [" ".join(chance.choice(SENTENCES, 1).repeat(2)) for _ in range(count)]
        (folder / f"{name}.txt").write_text("\n\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """An encoder without dropout."""
    folder = tmp_path_factory.mktemp("calm")
    return tiny_encoder(folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


@pytest.fixture(scope="module")
def make(texts, calm):
    def make(**changes):
        files = {name: str(texts / f"{name}.txt") for name in ("train", "dev")}
        usual = {"task": "masked-lm", "encoder": str(calm), "passes": 8, "batch_size": 16, "learning_rate": 1e-2}
        return Settings(**(usual | files | {"options": {"max_length": 16, "guesses": 4}} | changes))

    return make


@pytest.fixture(scope="module")
def trained(make, tmp_path_factory):
    out = tmp_path_factory.mktemp("masked") / "out"
    return out, train(make(), out)


def test_accuracy_rises_far_above_the_commonest_word(trained):
    out, result = trained
    assert result.report["commonest_word_accuracy"] < 0.1
    assert result.report["dev.accuracy"] > 0.8
    assert result.report["dev.perplexity"] < 3
    first = next(row for row in log_rows(out) if "dev.perplexity" in row)
    assert first["dev.perplexity"] > 8


def test_evaluation_gives_what_training_reported(trained, texts, tmp_path):
    out, result = trained
    wanted = {name: result.report[f"dev.{name}"] for name in ("accuracy", "perplexity")}
    assert evaluate(out, str(texts / "dev.txt"), report=tmp_path / "report") == {**wanted, "rows": 90}
    assert [path.name for path in (tmp_path / "report").iterdir()] == ["report.json"]


def test_the_masks_of_a_text_are_filled(trained, tmp_path, caplog):
    out, _ = trained
    words = SENTENCES[2].split()
    asked = " ".join([words[0], "[MASK]", *words[2:], *words])
    twice = " ".join(["[MASK]", *words[1:], *words[:3], "[MASK]"])
    rows = [asked, "a film", "", twice]
    found = list(predict_texts(out, rows))
    assert [len(each["masks"]) for each in found] == [1, 0, 0, 2]
    assert [each["words"][0] for row in found for each in row["masks"]] == [words[1], words[0], words[3]]
    for each in (mask for row in found for mask in row["masks"]):
        assert each["word_ids"] == [IDS[word] for word in each["words"]]
        assert len(each["probabilities"]) == 4
        assert sorted(each["probabilities"], reverse=True) == each["probabilities"]
    path = tmp_path / "a.txt"
    path.write_text(f"{asked}\n\na film\n{twice}\n")
    lines = list(predict(out, str(path)))
    assert [line["index"] for line in lines] == [0, 1, 2]
    for line, row in zip(lines, [found[0], found[1], found[3]], strict=True):
        assert [mask["words"] for mask in line["masks"]] == [mask["words"] for mask in row["masks"]]
    (line,) = predict_lines(out, [f"{asked}\n".encode()])
    assert line["masks"][0]["words"] == found[0]["masks"][0]["words"]
    assert not caplog.messages


def test_masks_of_a_text_that_is_too_long_are_filled_in_their_order(trained):
    out, _ = trained
    one, two = SENTENCES[0].split(), SENTENCES[5].split()
    first, second = [*one[:3], "[MASK]", *one * 2, *one[:2]], ["[MASK]", *two[1:], *two]
    assert len(first) == 14  # of 16 tokens
    (row,) = predict_texts(out, [" ".join(first + second)])
    assert [mask["words"][0] for mask in row["masks"]] == [one[3], two[0]]


def test_whole_words_pairs_and_streams(make, tmp_path, calm):
    rows = [(SENTENCES[number % 6], SENTENCES[number % 5]) for number in range(40)]
    data = str(write_tsv(tmp_path / "pairs.tsv", rows, ("text_a", "text_b")))
    options = {"max_length": POSITIONS, "whole_words": True}
    settings_of_pairs = make(train=data, dev=data, passes=1, options=options, stream=True)
    report = train(settings_of_pairs, tmp_path / "out").report
    assert report["step"] == 3
    assert next(predict(tmp_path / "out", data)) == {"index": 0, "masks": []}
    figures = evaluate(tmp_path / "out", data)
    assert (figures["accuracy"], figures["rows"]) == (report["dev.accuracy"], 40)
