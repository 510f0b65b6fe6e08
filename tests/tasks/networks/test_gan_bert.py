"""GAN-BERT's two networks and their losses, held against numpy."""

import numpy as np
import paddle
import pytest
from scipy.special import log_softmax

from onion import Observer, Runner
from onion.models.encoder import Encoder
from onion.tasks.batches import batch_of
from onion.tasks.networks.gan_bert import Discriminator, FakeGenerator, Generator, log_fake, log_real
from onion.testing import Batches
from tests.tasks.helpers import HIDDEN

LABELS = [2, 0, 1]


@pytest.fixture
def encoder(encoder_folder):
    return Encoder.from_pretrained(encoder_folder)


@pytest.fixture
def network(encoder):
    paddle.seed(0)
    made = Discriminator(encoder, 3)
    made.eval()
    return made


def batch(labels=LABELS, **more):
    texts = [{"ids": np.array(ids), "types": np.zeros(len(ids), int)} for ids in ([2, 5, 3], [2, 11, 6, 3], [2, 3])]
    return {**batch_of(texts), "labels": paddle.to_tensor(labels), **more}


def surprise(logits, fake):
    chances = np.exp(log_softmax(logits.numpy().astype(np.float64), axis=-1))
    return -np.log(chances[:, -1] if fake else chances[:, :-1].sum(axis=1)).mean()


def vectors(count, seed):
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=(count, HIDDEN)).astype("float32"))


def test_the_generator_makes_a_new_vector_for_every_text():
    paddle.seed(3)
    generator = Generator(HIDDEN, noise=7)
    generator.eval()  # no dropout: it is the noise that differs
    first, second = generator(batch()), generator(batch())
    assert list(first.shape) == [3, HIDDEN]
    assert len(np.unique(np.concatenate([first.numpy(), second.numpy()]).round(4), axis=0)) == 6
    assert list(generator.layers[0].weight.shape) == [7, HIDDEN]


def test_the_discriminator_judges_the_pooled_output(network, encoder):
    features, logits = network(batch())
    assert [list(features.shape), list(logits.shape)] == [[3, HIDDEN], [3, 4]]
    pooled = encoder(paddle.to_tensor(batch()["input_ids"])).pooled_output
    np.testing.assert_allclose(logits.numpy(), network.judge(pooled)[1].numpy(), atol=1e-6)
    np.testing.assert_allclose(logits.numpy(), network.classifier(features).numpy(), atol=1e-6)


def test_labels_cost_their_cross_entropy_with_fake_left_aside(network):
    outputs = network(batch())
    scores = log_softmax(outputs[1].numpy()[:, :3], axis=-1)
    wanted = -scores[range(3), LABELS].mean()
    assert float(network.loss(outputs, batch())) == pytest.approx(wanted, rel=1e-5)
    network.loss(outputs, batch()).backward()
    assert np.all(network.classifier.weight.grad.numpy()[:, -1] == 0)


def test_fakes_cost_what_taking_one_for_the_other_costs(network):
    fakes = vectors(5, seed=1)
    outputs = network(batch())
    wanted = surprise(outputs[1], False) + surprise(network.judge(fakes)[1], True)
    labelled = float(network.loss(outputs, batch()))
    assert float(network.loss(outputs, batch(fakes=fakes))) == pytest.approx(labelled + wanted, rel=1e-5)


@pytest.mark.parametrize("count", [1, 2])
def test_texts_beyond_the_labels_count_as_real_and_for_nothing_else(network, count):
    outputs, fakes = network(batch()), vectors(5, seed=1)
    first = -log_softmax(outputs[1].numpy()[:, :3], axis=-1)[range(count), LABELS[:count]].mean()
    assert float(network.loss(outputs, batch(LABELS[:count]))) == pytest.approx(first, rel=1e-5)
    added = surprise(outputs[1], False) + surprise(network.judge(fakes)[1], True)
    with_fakes = float(network.loss(outputs, batch(LABELS[:count], fakes=fakes)))
    assert with_fakes == pytest.approx(first + added, rel=1e-5)


def test_the_generator_pays_for_being_told_apart_and_for_other_features(network):
    fakes, judged = vectors(4, seed=1), network(batch())
    features, logits = network.judge(fakes)
    apart = (features.numpy().mean(axis=0) - judged[0].numpy().mean(axis=0)) ** 2
    wanted = surprise(logits, False) + apart.mean()
    assert float(network.generator_loss(fakes, batch(judged=judged))) == pytest.approx(wanted, rel=1e-5)


def test_the_generator_s_loss_moves_the_fakes_and_not_what_was_judged(network):
    fakes, judged = vectors(4, seed=1), network(batch())
    fakes.stop_gradient = False
    network.generator_loss(fakes, batch(judged=judged)).backward()
    assert np.abs(fakes.grad.numpy()).max() > 0
    assert all(parameter.grad is None for parameter in network.encoder.parameters())


def test_logits_that_are_sure_of_themselves_cost_no_infinity():
    logits = paddle.to_tensor([[200.0, 0.0, -200.0], [-200.0, -300.0, 200.0]])
    np.testing.assert_allclose(log_fake(logits).numpy(), [-400, 0])
    np.testing.assert_allclose(log_real(logits).numpy(), [0, -400])


def test_it_predicts_the_labels_alone(network):
    outputs = network(batch())
    decoded = np.stack(network.decode(outputs, batch()))
    np.testing.assert_allclose(decoded, np.exp(log_softmax(outputs[1].numpy()[:, :3], axis=-1)), rtol=1e-5)


def test_forged_vectors_are_there_for_what_stands_further_in_and_move_no_generator():
    generator, given, seen = Generator(HIDDEN), batch(), []
    Runner(
        Batches([given]), FakeGenerator(generator), Observer(on_batch_begin=lambda state: seen.append(state.batch))
    ).run(passes=1)
    assert list(seen[0]["fakes"].shape) == [3, HIDDEN]
    assert seen[0]["fakes"].stop_gradient
    assert "fakes" not in given
    assert seen[0]["labels"] is given["labels"]
