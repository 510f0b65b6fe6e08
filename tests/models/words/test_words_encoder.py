"""The encoders of words against plain numpy; padding, pairs and texts without words; saving and loading."""

import json

import numpy as np
import paddle
import pytest

from onion.errors import DataError, WeightsError
from onion.models.auto import load_encoder, new_encoder
from onion.models.words.config import WordsConfig
from onion.models.words.names import KINDS

SIZES = {"vocab_size": 12, "embedding_size": 6, "hidden_size": 5, "initializer_range": 0.5}
PAD, SEP, UNK = 0, 2, 4
ROWS = [([5, 6, 7, SEP], [0, 0, 0, 0]), ([SEP], [0]), ([UNK, 8, SEP], [0, 0, 0])]
PAIRS = [([5, 6, SEP, 7, SEP], [0, 0, 0, 1, 1]), ([8, SEP, SEP], [0, 0, 1]), ([SEP, SEP], [0, 1])]


def encoder_of(kind, pairs=False):
    paddle.seed(3)
    encoder = new_encoder(WordsConfig(model_type=kind, pairs=pairs, **SIZES))
    encoder.eval()
    return encoder


def vectors(encoder, rows):
    length = max(len(ids) for ids, _ in rows)
    ids, types = (np.array([[*row[part], *[PAD] * (length - len(row[0]))] for row in rows]) for part in (0, 1))
    mask = np.arange(length) < np.array([len(row[0]) for row in rows])[:, None]
    return encoder(ids, types, attention_mask=mask, cls_only=True).pooled_output.numpy()


def weights_of(encoder):
    return {name: value.numpy().astype(np.float64) for name, value in encoder.named_parameters()}


def softsign(x):
    return x / (1 + np.abs(x))


def bag(weights, words):
    return softsign(weights["embeddings.weight"][words].sum(axis=0))


def convolution(weights, words):
    if not words:
        return np.zeros(SIZES["hidden_size"])
    wide = np.pad(weights["embeddings.weight"][words], ((1, 1), (0, 0)))  # [words + 2, embedding]
    kernel = weights["convolution.weight"]  # [filters, embedding, 3]
    each = [np.einsum("we,few->f", wide[at : at + 3], kernel) for at in range(len(words))]
    return softsign(np.maximum(0, np.array(each) + weights["convolution.bias"]).max(axis=0))


def lstm(weights, words):
    return np.concatenate([run(weights, words or [PAD], "l0"), run(weights, (words or [PAD])[::-1], "l0_reverse")])


def run(weights, words, end):
    size = SIZES["hidden_size"]
    hidden = cell = np.zeros(size)
    for word in words:
        gates = weights["embeddings.weight"][word] @ weights[f"lstm.weight_ih_{end}"].T + weights[f"lstm.bias_ih_{end}"]
        gates = gates + hidden @ weights[f"lstm.weight_hh_{end}"].T + weights[f"lstm.bias_hh_{end}"]
        enter, forget, candidate, leave = np.split(gates, 4)
        cell = cell / (1 + np.exp(-forget)) + np.tanh(candidate) / (1 + np.exp(-enter))
        hidden = np.tanh(cell) / (1 + np.exp(-leave))
    return hidden


PLAIN = {"bow": bag, "cnn": convolution, "lstm": lstm}


def dense(weights, x):
    return np.tanh(x @ weights["dense.weight"] + weights["dense.bias"]) if "dense.weight" in weights else x


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_becomes_what_numpy_makes_of_its_words(kind):
    encoder = encoder_of(kind)
    weights = weights_of(encoder)
    wanted = [dense(weights, PLAIN[kind](weights, [word for word in ids if word >= UNK])) for ids, _ in ROWS]
    np.testing.assert_allclose(vectors(encoder, ROWS), wanted, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pair_becomes_a_comparison_of_its_sides(kind):
    encoder = encoder_of(kind, pairs=True)
    weights = weights_of(encoder)
    wanted = []
    for ids, types in PAIRS:
        sides = [
            PLAIN[kind](weights, [word for word, at in zip(ids, types, strict=True) if word >= UNK and at == side])
            for side in (0, 1)
        ]
        u, v = sides
        wanted.append(dense(weights, np.concatenate([u, v, np.abs(u - v), u * v])))
    np.testing.assert_allclose(vectors(encoder, PAIRS), wanted, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pairs", [False, True])
def test_the_shapes_of_the_config_and_a_folder_that_is_read_back(kind, pairs, tmp_path):
    encoder = encoder_of(kind, pairs)
    shapes = {name: tuple(value.shape) for name, value in encoder.named_parameters()}
    assert encoder.config.shapes() == shapes
    encoder.save_pretrained(tmp_path)
    again = load_encoder(tmp_path)
    again.eval()
    rows = PAIRS if pairs else ROWS
    assert (type(again), again.config) == (type(encoder), encoder.config)
    assert np.array_equal(vectors(again, rows), vectors(encoder, rows))


@pytest.mark.parametrize("kind", KINDS)
def test_padding_learns_nothing(kind):
    encoder = encoder_of(kind)
    encoder.train()
    ids = np.array([[5, 6, SEP, PAD], [7, SEP, PAD, PAD]])
    encoder(ids, attention_mask=ids != PAD, cls_only=True).pooled_output.square().sum().backward()
    gradient = encoder.embeddings.weight.grad.numpy()
    assert set(np.flatnonzero(np.abs(gradient).sum(axis=1))) == {5, 6, 7}


def test_vectors_of_tokens_are_refused():
    ids = np.array([[5, SEP]])
    with pytest.raises(DataError, match="bow makes one vector of a text and none of its tokens"):
        encoder_of("bow")(ids)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model_type": "gru"}, "model_type must be one of"),
        ({"pad_token_id": 12}, "pad_token_id 12 is outside the vocabulary of 12"),
        ({"hidden_size": 0}, "hidden_size must be a whole number of 1 or more"),
        ({"pairs": 1}, "pairs must be true or false"),
    ],
)
def test_a_config_that_is_wrong(changes, told, tmp_path):
    values = {"model_type": "bow", **SIZES, **changes}
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(WeightsError, match=told):
        load_encoder(tmp_path)
