import attrs
import numpy as np
import paddle
import pytest

from onion.errors import DataError, WeightsError
from onion.models.encoder import Encoder
from onion.models.pretraining_heads import EncoderForPretraining
from tests.models.helpers import SMALL, VARIANTS, arrays_of, assert_equal_bits, small_encoder, write_folder

IDS = np.array([[5, 6, 7, 0], [0, 8, 9, 10], [11, 0, 0, 0]])


def network(config=SMALL, **settings):
    paddle.seed(3)
    built = EncoderForPretraining(small_encoder(config=config), **settings)
    for name, parameter in built.cls.named_parameters():
        middle = 1.0 if "norm.weight" in name else 0.0
        parameter.set_value(paddle.normal(middle, 0.2, parameter.shape))
    built.eval()
    return built


def stored(built):
    return {name.removeprefix("bert."): array for name, array in arrays_of(built).items()}


@pytest.mark.parametrize("kind", [np.asarray, paddle.to_tensor])
def test_only_the_masked_words_are_computed_in_the_order_given(kind):
    built = network()
    everything = built.encoder(IDS).packing.unpack(built(IDS).words).reshape([12, -1]).numpy()
    places = np.array([7, 0, 2, 8, 7])
    seen = []
    built.cls.predictions.register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0].shape))
    words = built(IDS, masked_positions=kind(places)).words.numpy()
    assert seen == [[5, SMALL.hidden_size]]
    np.testing.assert_allclose(words, everything[places], atol=1e-5)


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ([0, 3], r"position 3 of the flattened batch \[3 rows \* 4 columns\] is not a token"),
        ([4], "position 4 of .* is not a token"),
        ([12], "position 12 of .* is not a token"),
        ([-1], "position -1 of .* is not a token"),
        ([], r"masked_positions must have the shape \[masked words\], at least one, got \[0\]"),
        ([[0]], r"masked_positions must have the shape \[masked words\], at least one, got \[1, 1\]"),
    ],
)
def test_places_without_a_token_are_refused(places, message):
    with pytest.raises(DataError, match=message):
        network()(IDS, masked_positions=np.array(places, np.int64))


@pytest.mark.parametrize("variant", ["bert", "ernie 3.0"])
def test_the_decoder_is_tied(variant):
    built = network(VARIANTS[variant])
    assert not any("decoder_weight" in name for name in built.state_dict())
    built.train()
    built(np.array([[5, 6]]), masked_positions=np.array([1])).words[0, 30].backward()
    table = built.encoder.embeddings.word_embeddings.weight
    assert abs(table.grad[30].numpy()).max() > 0  # word 30 is in no text: this came through the decoder


def test_without_next_sentence():
    built = network(VARIANTS["roberta"], next_sentence=False)
    assert not any("seq_relationship" in name for name in built.state_dict())
    scores = built(np.array([[5, 6, 1]]))
    assert scores.next_sentence is None
    assert scores.words.shape == [2, SMALL.vocab_size]


def test_arguments_reach_the_encoder():
    built = network(attrs.evolve(VARIANTS["ernie 3.0"]))
    mask = np.array([[1, 1, 0, 1]])
    ids, types, positions = np.array([[5, 6, 7, 8]]), np.array([[0, 3, 0, 1]]), np.array([[4, 3, 2, 1]])
    arguments = (ids, types, positions, mask, 2)
    assert (built(*arguments).encoded.packed.numpy() == built.encoder(*arguments).packed.numpy()).all()


LAYOUTS = ["onion", "huggingface", "paddlenlp"]


def assert_same(first, second):
    assert_equal_bits(arrays_of(first), arrays_of(second))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("variant", ["bert", "ernie 1.0", "ernie 3.0", "roberta"])
def test_a_whole_checkpoint_round_trips(tmp_path, variant, layout, caplog):
    built = network(VARIANTS[variant], next_sentence=variant != "roberta")
    built.save_pretrained(tmp_path / "folder", layout)
    loaded = EncoderForPretraining.from_pretrained(tmp_path / "folder")
    assert loaded.encoder.config == built.encoder.config
    assert_same(loaded, built)
    assert not caplog.records
    assert_same(Encoder.from_pretrained(tmp_path / "folder"), built.encoder)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_bare_encoder_round_trips_and_gets_new_heads(tmp_path, variant, layout, caplog):
    encoder = small_encoder(config=VARIANTS[variant])
    encoder.save_pretrained(tmp_path, layout)
    assert_same(Encoder.from_pretrained(tmp_path), encoder)
    assert not caplog.records
    loaded = EncoderForPretraining.from_pretrained(tmp_path, hidden_dropout_prob=0.3)
    assert_same(loaded.encoder, encoder)
    assert loaded.cls.seq_relationship is None
    assert loaded.encoder.config.hidden_dropout_prob == 0.3
    assert "lacks cls.predictions.decoder_bias, cls.predictions.transform.weight" in caplog.text


def test_a_decoder_of_its_own_is_refused(tmp_path):
    built = network()
    arrays = stored(built)
    table = arrays["embeddings.word_embeddings.weight"]
    write_folder(tmp_path, arrays | {"cls.predictions.decoder_weight": table})
    assert_same(EncoderForPretraining.from_pretrained(tmp_path), built)
    write_folder(tmp_path, arrays | {"cls.predictions.decoder_weight": table + 1})
    with pytest.raises(WeightsError, match=r"model\.safetensors: the masked LM decoder has its own weights"):
        EncoderForPretraining.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "lost", ["cls.predictions.decoder_bias", "cls.predictions.transform.weight", "cls.seq_relationship.bias"]
)
def test_half_a_head_is_damage(tmp_path, lost):
    write_folder(tmp_path, {name: array for name, array in stored(network()).items() if name != lost})
    with pytest.raises(WeightsError, match=rf"the weights do not fit the config: missing: {lost}$"):
        EncoderForPretraining.from_pretrained(tmp_path)


def test_heads_that_nobody_knows_are_named(tmp_path, caplog):
    arrays = arrays_of(network())
    odd = {"cls.sentence_order.weight": np.ones((24, 2), np.float32), "lm_head.x": np.ones(2, np.float32)}
    write_folder(tmp_path, arrays | odd | {"classifier.bias": np.ones(2, np.float32)})
    EncoderForPretraining.from_pretrained(tmp_path)
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'model.safetensors'}: unknown heads, ignored: cls.sentence_order.weight, lm_head.x"
    ]


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ([0], "masked_positions must be a tensor or a numpy array, got list"),
        (np.array([0.5]), "masked_positions must hold integers, got float64"),
    ],
)
def test_places_that_are_no_integers_are_refused(places, message):
    with pytest.raises(DataError, match=message):
        network()(IDS, masked_positions=places)


def test_heads_that_do_not_fit_are_refused(tmp_path):
    arrays = stored(network())
    arrays["cls.predictions.decoder_bias"] = np.zeros(41, np.float32)
    write_folder(tmp_path, arrays)
    with pytest.raises(WeightsError, match=r"cls\.predictions\.decoder_bias is \[41\], not \[40\]"):
        EncoderForPretraining.from_pretrained(tmp_path)
    with pytest.raises(WeightsError, match="cannot write the layout 'torch'"):
        network().save_pretrained(tmp_path, "torch")
