"""Masked words: where a training begins, what it comes to, and what is predicted."""

import numpy as np
import paddle
import pytest

from onion.errors import WeightsError
from onion.models.encoder import Encoder
from onion.models.pretraining_heads import EncoderForPretraining
from onion.tasks.finetune.fine_tune import fine_tune, train
from onion.tasks.finetune.inference import evaluate, predict, predict_lines, predict_texts
from onion.tasks.finetune.initialization import Initialization
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.finetune.settings import Settings
from onion.tasks.masked_lm.task import MaskedLM
from tests.tasks.helpers import BAD, GOOD, HIDDEN, IDS, PLAIN, POSITIONS, log_rows, tiny_encoder, write_tsv

# -- where it begins ---------------------------------------------------------------------------------------------------


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


# -- from the text to the guesses --------------------------------------------------------------------------------------

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
        usual = {
            "task": "masked-lm",
            "train": str(texts / "train.txt"),
            "dev": str(texts / "dev.txt"),
            "encoder": str(calm),
        }
        usual |= {"passes": 8, "batch_size": 16, "learning_rate": 1e-2, "options": {"max_length": 16, "guesses": 4}}
        return Settings(**(usual | changes))

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


def test_evaluation_gives_what_training_reported(trained, texts):
    out, result = trained
    wanted = {name: result.report[f"dev.{name}"] for name in ("accuracy", "perplexity")}
    assert evaluate(out, str(texts / "dev.txt")) == {**wanted, "rows": 90}


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


def test_a_training_that_was_cut_in_mid_pass_comes_to_the_same_bits(make, tmp_path):
    usual = make(passes=1, test_every=100)
    names = ("task", "train", "dev")
    given_settings = {
        name: getattr(usual, name) for name in ("encoder", "passes", "batch_size", "learning_rate", "options")
    }

    def onion(folder):
        files = [getattr(usual, name) for name in names]
        return fine_tune(*files, tmp_path / folder, **given_settings, test_every=100)

    whole = onion("whole").run(passes=1)
    assert onion("cut").run(steps=7).step == 7
    assert onion("cut").run(passes=1).step == whole.step == 19
    network = "step-00000019/gradient_machine.safetensors"
    assert (tmp_path / "cut" / network).read_bytes() == (tmp_path / "whole" / network).read_bytes()


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
