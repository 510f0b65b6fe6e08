"""The fused layers against the plain ones, whose gradients are autograd's."""

import attrs
import numpy as np
import pytest

from onion import device
from onion.engine.backward import many, once
from onion.models import ops
from onion.models.encoder import Encoder
from onion.models.fused.training import stack
from onion.models.hidden_states import record_hidden_states
from tests.abilities import needs_layers_by_hand
from tests.models.helpers import SMALL

# isort: split
import paddle
from paddle import nn

CONFIG = attrs.evolve(SMALL, vocab_size=50, num_hidden_layers=3, intermediate_size=40, max_position_embeddings=32)


@pytest.fixture
def threads():
    """Set the number of threads, until the test is over."""
    before = device.threads()
    yield device.use_threads
    device.use_threads(before)


@pytest.fixture(autouse=True)
def one_way_back():
    """What a GradientMachine says."""
    with once:
        yield


@pytest.fixture
def applied(monkeypatch):
    """How often layers were applied by hand."""
    calls, run = [], stack.run
    monkeypatch.setattr(stack, "run", lambda *given: calls.append(given) or run(*given))
    return calls


def encoder_of(**settings):
    """An encoder in training, with weights that are far from those it begins with."""
    paddle.seed(3)
    encoder = Encoder(attrs.evolve(CONFIG, **settings))
    for parameter in encoder.parameters():
        parameter.set_value(parameter + paddle.normal(0, 0.3, parameter.shape))
    encoder.train()
    return encoder


def batch(rows=12, length=20, holes=False):
    random = np.random.default_rng(rows)
    ids = random.integers(1, 50, (rows, length))
    mask = np.arange(length) < random.integers(1, length + 1, (rows, 1))
    mask[0] = True
    if holes:
        mask = random.integers(0, 2, (rows, length))
        mask[:, 3] = 1
    return ids, mask.astype(np.int64)


def learned(encoder, given, seed=7):
    """What comes out for a batch, and the gradients of a loss that looks at all of it."""
    paddle.seed(seed)
    ids, mask = given
    packed = encoder(ids, attention_mask=mask).packed
    weights = paddle.to_tensor(np.random.default_rng(1).normal(size=packed.shape).astype(np.float32))
    (packed * weights).sum().backward()
    gradients = {name: each.grad.numpy() for name, each in encoder.named_parameters() if each.grad is not None}
    for each in encoder.parameters():
        each.clear_gradient(False)
    return packed.numpy(), gradients


def both(compute):
    """By the fused layers, and by the plain ones."""
    fused = compute()
    with many:
        return fused, compute()


def assert_same(encoder, given, least=0.0):
    (out, gradients), (plain_out, plain_gradients) = both(lambda: learned(encoder, given))
    np.testing.assert_allclose(out, plain_out, rtol=0, atol=2e-5)
    assert gradients.keys() == plain_gradients.keys()
    for name, gradient in gradients.items():
        # A key's bias moves all scores of a query alike, so its gradient is 0 but for rounding.
        scale = max(least, abs(plain_gradients[name]).max()) if not name.endswith("k_proj.bias") else 1
        np.testing.assert_allclose(gradient, plain_gradients[name], rtol=0, atol=3e-5 * scale, err_msg=name)


@needs_layers_by_hand
@pytest.mark.parametrize("settings", [{}, {"hidden_act": "relu"}, {"layer_norm_eps": 1e-5}, {"num_hidden_layers": 1}])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_outputs_and_gradients_are_those_of_the_plain_layers(settings, count, threads, applied, monkeypatch):
    threads(2)
    monkeypatch.setattr(stack, "PARTS", count)
    assert_same(encoder_of(**settings), batch())
    assert len(applied) == 1


@pytest.mark.parametrize(
    "given", [batch(1, 1), batch(1, 20), batch(40, 3), batch(9, 20, holes=True), (np.ones((8, 20), np.int64),) * 2]
)
def test_batches_of_any_form(given, threads):
    threads(2)
    assert_same(encoder_of(), given)


@needs_layers_by_hand
def test_with_dropout_too(threads, monkeypatch, applied):
    """Both sides are given the same masks, in the order in which they ask for them."""
    threads(1)
    encoder = encoder_of(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3)
    draw, random = ops.mask, {}
    monkeypatch.setattr(paddle, "seed", lambda _: random.update(of_this_pass=np.random.default_rng(5)))
    monkeypatch.setattr(ops, "mask", lambda _, *asked: draw(random["of_this_pass"], *asked))
    assert_same(encoder, batch(), least=1)
    assert len(applied) == 1


@pytest.mark.parametrize("count", [1, 2])
def test_dropout_follows_paddles_generator(count, threads):
    threads(count)
    encoder = encoder_of(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    first, again, other = (learned(encoder, batch(), seed) for seed in (7, 7, 8))
    assert first[0].tobytes() == again[0].tobytes()
    assert all(first[1][name].tobytes() == again[1][name].tobytes() for name in first[1])
    assert abs(first[0] - other[0]).max() > 0.1


def test_parts_drop_different_elements(threads):
    """Two halves of a batch with the same texts would come out the same, if their masks were."""
    threads(2)
    encoder = encoder_of(hidden_dropout_prob=0.5)
    ids, mask = (np.concatenate([each] * 2) for each in batch(8, 20))
    out = learned(encoder, (ids, mask))[0]
    half = len(out) // 2
    assert abs(out[:half] - out[half:]).max() > 0.1


def learned_on(counts, threads):
    """What is learned with each of these numbers of threads: the outputs, and all gradients."""
    encoder = encoder_of(hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    for count in counts:
        threads(count)
        yield learned(encoder, batch(20))


@pytest.mark.parametrize("count", [2, 3])
def test_where_products_have_one_thread_each_their_number_changes_no_bit(count, threads):
    """Masks and the order of sums belong to the parts, which are as many on every machine."""
    (out, gradients), (again, others) = learned_on([1, count], threads)
    assert out.tobytes() == again.tobytes()
    assert [name for name in gradients if gradients[name].tobytes() != others[name].tobytes()] == []


@pytest.mark.parametrize("count", [4, 8])
def test_where_they_have_more_the_dropout_is_the_same(count, threads):
    """Other masks would change outputs by more than 0.1; MKL's kernels for AVX2 round otherwise on two threads."""
    (out, gradients), (again, others) = learned_on([1, count], threads)
    np.testing.assert_allclose(again, out, atol=1e-5, rtol=1e-5)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(others[name], gradient, atol=1e-4, rtol=1e-4, err_msg=name)


def test_without_dropout_nothing_is_drawn():
    encoder, given = encoder_of(), batch()
    learned(encoder, given, seed=7)
    state = paddle.randint(0, 2**31 - 1, [1]).item()
    paddle.seed(7)
    assert paddle.randint(0, 2**31 - 1, [1]).item() == state


def freeze(layer):
    for parameter in layer.parameters():
        parameter.stop_gradient = True


@pytest.mark.parametrize("frozen", ["embeddings", "below", "one weight", "a layer between", "all layers"])
def test_frozen_parameters_get_none_and_others_the_same(frozen, threads):
    threads(2)
    encoder = encoder_of()
    layers = encoder.encoder.layers
    parts = {
        "embeddings": [encoder.embeddings],
        "below": [encoder.embeddings, layers[0], layers[1]],
        "a layer between": [layers[1]],
        "all layers": [encoder.encoder],
    }
    for part in parts.get(frozen, ()):
        freeze(part)
    if frozen == "one weight":
        layers[1].linear1.weight.stop_gradient = layers[2].norm1.bias.stop_gradient = True
    assert_same(encoder, batch())


@needs_layers_by_hand
def test_the_way_back_ends_above_what_is_frozen(monkeypatch):
    encoder = encoder_of()
    freeze(encoder.embeddings)
    freeze(encoder.encoder.layers[0])
    went, backward = [], stack.one.backward
    monkeypatch.setattr(stack.one, "backward", lambda layer, *rest: went.append(layer) or backward(layer, *rest))
    learned(encoder, batch())
    assert went == [encoder.encoder.layers[2], encoder.encoder.layers[1]]


def test_nothing_learns_nothing_is_kept():
    encoder = encoder_of()
    freeze(encoder)
    assert encoder(*batch()[:1]).packed.stop_gradient


@pytest.mark.parametrize("which", ["encoder.layers.1.linear2.weight", "embeddings.word_embeddings.weight"])
def test_paddle_grad_of_a_single_input(which):
    encoder, (ids, mask) = encoder_of(), batch()
    parameter = dict(encoder.named_parameters())[which]

    def gradient():
        return paddle.grad(encoder(ids, attention_mask=mask).packed.square().sum(), [parameter])[0].numpy()

    np.testing.assert_allclose(*both(gradient), rtol=1e-3, atol=1e-3)
    assert all(each.grad is None for each in encoder.parameters())


def test_paddle_grad_and_then_the_way_back_of_another_graph():
    """As adversarial training does it."""
    encoder, (ids, mask) = encoder_of(), batch()
    table = encoder.embeddings.word_embeddings.weight
    with many:
        paddle.grad(encoder(ids, attention_mask=mask).packed.sum(), [table])
    assert_same(encoder, (ids, mask))


def test_layers_that_are_shared_add_up():
    """Two batches before one way back, as siamese towers have them."""
    encoder = encoder_of()
    given = [batch(6), batch(5)]

    def gradients():
        losses = [encoder(ids, attention_mask=mask).packed.square().sum() for ids, mask in given]
        (losses[0] + losses[1]).backward()
        found = encoder.encoder.layers[1].linear2.weight.grad.numpy()
        for each in encoder.parameters():
            each.clear_gradient(False)
        return found

    np.testing.assert_allclose(*both(gradients), rtol=1e-3, atol=1e-3)


@needs_layers_by_hand
@pytest.mark.parametrize(
    "go_back",
    [
        lambda loss, weight: paddle.grad(loss, [weight], retain_graph=True),
        lambda loss, weight: paddle.grad(loss, [weight], create_graph=True),
        lambda loss, weight: loss.backward(retain_graph=True),
    ],
    ids=["paddle.grad, retain_graph", "paddle.grad, create_graph", "backward, retain_graph"],
)
def test_more_ways_back_are_refused_with_the_remedy(go_back):
    encoder, (ids, mask) = encoder_of(num_hidden_layers=1), batch()
    loss = encoder(ids, attention_mask=mask).packed.square().sum()
    with pytest.raises(Exception, match=r"_graph=True is not supported by .*onion\.engine\.backward\.many"):
        go_back(loss, encoder.embeddings.word_embeddings.weight)


def test_plain_layers_may_be_gone_back_through_twice(applied):
    encoder, (ids, mask) = encoder_of(), batch()
    with many:
        loss = encoder(ids, attention_mask=mask).packed.square().sum()
    loss.backward(retain_graph=True)
    weight = encoder.encoder.layers[0].linear1.weight
    once_back = weight.grad.numpy()
    loss.backward()
    np.testing.assert_allclose(weight.grad.numpy(), 2 * once_back, rtol=1e-5)
    assert applied == []


def test_layers_that_are_one_and_the_same():
    """As ALBERT has them."""
    encoder = encoder_of()
    encoder.encoder.layers[2] = encoder.encoder.layers[0]
    assert_same(encoder, batch())


def test_a_paddle_without_the_kernels_has_the_plain_layers(monkeypatch, applied):
    monkeypatch.setattr(stack.primitives, "HAS_KERNELS", False)
    assert_same(encoder_of(), batch())
    assert applied == []


class Other(nn.Linear):
    """A layer that somebody put in the place of ours."""


@pytest.mark.parametrize(
    "change",
    [
        lambda layers: setattr(layers[1], "linear1", Other(24, 40)),
        lambda layers: layers[2].norm1.register_forward_post_hook(lambda *given: None),
        lambda layers: layers[0].eval(),
        lambda layers: setattr(layers[0], "activation", paddle.tanh),
    ],
    ids=["replaced", "hooked", "partly in training", "other activation"],
)
def test_changed_layers_are_applied_as_they_are(change, applied):
    encoder = encoder_of()
    change(encoder.encoder.layers)
    assert_same(encoder, batch())
    assert applied == []


def test_others_than_training_in_float32_on_the_cpu_are_applied_plainly(applied):
    encoder, (ids, mask) = encoder_of(), batch()
    with paddle.no_grad():
        encoder(ids, attention_mask=mask)
    encoder.to(dtype="float64")
    encoder(ids, attention_mask=mask)
    assert applied == []


def test_who_looks_inside_sees_every_layer(applied):
    encoder, (ids, mask) = encoder_of(), batch()
    with record_hidden_states(encoder) as inside:
        out = encoder(ids, attention_mask=mask)
    assert applied == []
    np.testing.assert_array_equal(inside.hidden[3].numpy(), out.packed.numpy())


@needs_layers_by_hand
def test_a_network_in_evaluation_has_gradients_too(applied):
    encoder = encoder_of(hidden_dropout_prob=0.5)
    encoder.eval()
    assert_same(encoder, batch())
    assert len(applied) == 1
