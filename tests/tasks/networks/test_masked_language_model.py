import numpy as np
import paddle
import pytest
from scipy.special import log_softmax

from onion.models.encoder import Encoder
from onion.models.pretraining_heads import EncoderForPretraining
from onion.tasks.data.features.examples import Examples
from onion.tasks.finetune.optimization import is_decayed
from onion.tasks.masked_lm.task import MaskedLM
from tests.tasks.arrays import tensors
from tests.tasks.helpers import VOCAB


@pytest.fixture
def network(encoder_folder):
    paddle.seed(3)
    network = MaskedLM(guesses=3).network(Encoder.from_pretrained(encoder_folder))
    for name, parameter in network.cls.named_parameters():
        parameter.set_value(paddle.normal(1.0 if "norm.weight" in name else 0.0, 0.3, parameter.shape))
    network.eval()
    return network


@pytest.fixture
def masked(tokenizer):
    """A batch of three examples, of which the second has no mask."""
    chance = np.random.default_rng(1)
    texts = [chance.integers(5, len(VOCAB), length) for length in (4, 9, 6)]
    made = [{"row": 0, "ids": ids, "types": ids * 0, "words": np.arange(len(ids))} for ids in texts]
    batch = MaskedLM().collate(Examples.of(made)[:], tokenizer.pad_id)
    assert batch["words"].tolist()[0] == [0, 1, 2, 3, -1, -1, -1, -1, -1]
    return {**batch, "masked_positions": [1, 2, 18], "labels": np.array([7, 9, 11])}


def test_scores_stand_at_the_masked_places_and_are_those_of_pretraining(network, masked, encoder_folder):
    scores = network(tensors(masked))
    assert (scores.shape, scores.dtype) == ([3, len(VOCAB)], paddle.float32)
    reference = EncoderForPretraining(Encoder.from_pretrained(encoder_folder), next_sentence=False)
    reference.cls.set_state_dict(network.cls.state_dict())
    reference.eval()
    mask = np.arange(9) < np.array(masked["lengths"])[:, None]
    everything = np.zeros((27, len(VOCAB)), np.float32)
    ids, types = masked["input_ids"], masked["token_type_ids"]
    everything[mask.reshape(-1)] = reference(ids, types, attention_mask=mask).words.numpy()
    np.testing.assert_allclose(scores.numpy(), everything[[1, 2, 18]], atol=1e-5)


def test_cost_and_what_is_decoded_by_their_definitions(network, masked):
    scores = network(tensors(masked))
    logs = log_softmax(scores.numpy().astype(np.float64), axis=1)
    losses = -logs[np.arange(3), masked["labels"]]
    assert float(network.loss(scores, tensors(masked))) == pytest.approx(losses.mean(), rel=1e-5)
    first, second, third = network.decode(scores, masked)
    assert (first.ids.shape, second.ids.shape, third.probabilities.shape) == ((2, 3), (0, 3), (1, 3))
    best = np.argsort(-logs, axis=1)[:, :3]
    assert np.concatenate([first.ids, third.ids]).tolist() == best.tolist()
    np.testing.assert_allclose(first.probabilities, np.exp(logs[:2])[[[0], [1]], best[:2]], rtol=1e-4)
    assert [*first.losses, *second.losses, *third.losses] == pytest.approx(losses.tolist(), rel=1e-5)
    del masked["labels"]
    assert network.decode(scores, masked)[2].losses is None


def test_a_batch_without_masks(network, masked):
    masked["masked_positions"] = []
    del masked["labels"]
    decoded = network.decode(network(tensors(masked)), masked)
    assert [each.ids.shape for each in decoded] == [(0, 3)] * 3


def test_every_parameter_but_the_pooler_learns(network, masked):
    network.loss(network(tensors(masked)), tensors(masked)).backward()
    still = {name for name, parameter in network.named_parameters() if parameter.grad is None}
    assert still == {"encoder.pooler.dense.weight", "encoder.pooler.dense.bias"}


def test_the_bias_of_the_decoder_is_not_decayed(network):
    heads = [name for name, _ in network.named_parameters() if name.startswith("cls.") and is_decayed(name)]
    assert heads == ["cls.predictions.transform.weight"]


def test_no_more_guesses_than_words(encoder_folder):
    network = MaskedLM(guesses=1000).network(Encoder.from_pretrained(encoder_folder))
    batch = {"masked_positions": [0], "lengths": [1], "input_ids": np.array([[5]])}
    (found,) = network.decode(paddle.zeros([1, len(VOCAB)]), batch)
    assert found.ids.shape == (1, len(VOCAB))
