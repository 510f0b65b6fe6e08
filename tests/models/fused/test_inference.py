"""What an encoder computes where nothing is learned is what its layers give; and where it may not, they are called."""

import threading

import numpy as np
import paddle
import pytest

from onion.models.encoder import Encoder
from onion.models.fused import inference
from onion.models.hidden_states import record_hidden_states
from onion.models.packing import Packing
from tests.models.helpers import MASKS, RAGGED, VARIANTS, close, encoded, small_encoder


@pytest.fixture
def counted(monkeypatch):
    """Every call of the lean computation is noted, with its tokens."""
    calls = []

    def noting(weights, embedded, packing, firsts_only):
        calls.append(packing.tokens)
        return inference.transform(weights, embedded, packing, firsts_only)

    monkeypatch.setattr("onion.models.fused.dispatch.transform", noting)
    return calls


def both(encoder, mask, seed=0):
    """The packed vectors by the layers, and by the lean computation."""
    by_layers = encoded(encoder, mask, seed).packed.detach().numpy()
    with paddle.no_grad():
        return by_layers, encoded(encoder, mask, seed).packed.numpy()


@pytest.mark.parametrize("padding", MASKS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_layers(variant, padding, counted):
    close(*both(small_encoder(config=VARIANTS[variant]), np.array(MASKS[padding])))
    assert len(counted) == 1


@pytest.mark.parametrize("most", [1, 4, 9, 12, 23])
def test_pieces_do_not_matter(most, monkeypatch):
    monkeypatch.setattr(inference, "PIECE", most)
    close(*both(small_encoder(), RAGGED))


def test_pieces_hold_whole_rows_and_no_empty_columns():
    mask = np.array([[0, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 0], [0, 0, 1, 0]], bool)
    cut = list(inference.pieces(Packing.of(mask, heads=2), most=3))
    assert [piece.mask.tolist() for piece in cut] == [
        [[True, True], [False, True]],  # two tokens and one; what stands in no row is left out
        [[True, True, True]],
        [[True]],
    ]
    assert [piece.heads for piece in cut] == [2, 2, 2]


def test_weights_that_change_are_seen_at_once(counted):
    encoder = small_encoder()
    with paddle.no_grad():
        before = encoder(np.array([[5, 6, 7]])).packed.numpy()
    optimizer = paddle.optimizer.SGD(0.1, parameters=encoder.parameters())
    encoder(np.array([[5, 6, 7]])).packed.square().sum().backward()
    optimizer.step()  # in place
    close(*both(encoder, np.array([[1, 1, 1]])))
    layer = encoder.encoder.layers[1]
    layer.linear1.weight = paddle.create_parameter(layer.linear1.weight.shape, "float32")  # another object
    stepped, replaced = both(encoder, np.array([[1, 1, 1]]))
    close(stepped, replaced)
    assert abs(replaced - before).max() > 1e-3
    assert counted == [3, 3, 3]


def test_the_layers_are_called_for_gradients_dropout_and_other_precisions(counted):
    encoder = small_encoder()
    encoder(np.array([[5, 6]])).packed.sum().backward()
    assert encoder.embeddings.word_embeddings.weight.grad is not None
    with paddle.no_grad():
        encoder.encoder.layers[0].self_attn.train()
        encoder(np.array([[5, 6]]))
        encoder.eval()
        encoder.to(dtype="float64")(np.array([[5, 6]]))
    assert counted == []


def test_who_looks_into_a_layer_sees_it_called(counted):
    encoder = small_encoder()
    with paddle.no_grad():
        with record_hidden_states(encoder) as inside:
            encoder(np.array([[5, 6, 7]]))
        assert sorted(inside.hidden) == [0, 1, 2]
        assert counted == []
        encoder(np.array([[5, 6, 7]]))
    assert counted == [3]


def test_a_layer_of_ones_own_is_called(counted):
    class Doubled(type(small_encoder().encoder.layers[0].linear2)):
        def forward(self, x):
            return 2 * super().forward(x)

    encoder = small_encoder()
    own = Doubled(48, 24, encoder.config)
    own.set_state_dict(encoder.encoder.layers[1].linear2.state_dict())
    own.eval()
    close(*both(encoder, RAGGED))
    plain = both(encoder, RAGGED)[1]
    encoder.encoder.layers[1].linear2 = own
    called, found = both(encoder, RAGGED)
    assert (called == found).all()
    assert abs(found - plain).max() > 1e-3
    assert len(counted) == 2  # before it was put there


def test_what_is_in_the_way_is_told_once_a_reason(caplog):
    encoder, ids = small_encoder(), np.array([[5, 6]])
    inference._tell.cache_clear()
    with caplog.at_level("DEBUG", logger="onion.models.fused.inference"):
        encoder(ids)
        for _ in range(2):
            with paddle.no_grad():
                encoder(ids)
        with paddle.no_grad(), record_hidden_states(encoder):
            encoder(ids)
    assert [record.getMessage() for record in caplog.records] == [
        "the encoder's layers are called one by one, because gradients are enabled",
        "prediction uses the fused layers",
        "the encoder's layers are called one by one, because a layer is in training mode, has a hook or was replaced",
    ]


def test_threads_may_share_an_encoder():
    encoder = small_encoder()
    masks = [np.ones((rows, 5), bool) for rows in (1, 2, 3, 4)]
    expected = [both(encoder, mask, seed)[1] for seed, mask in enumerate(masks)]
    found = [None] * len(masks)

    def work(place):
        for _ in range(20):
            found[place] = both(encoder, masks[place], place)[1]

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(masks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(expected, found, strict=True):
        close(one, other)


def test_nothing_is_kept():
    encoder = Encoder(VARIANTS["bert"])
    encoder.eval()
    before = set(vars(encoder.encoder)), {name: id(each) for name, each in encoder.named_parameters()}
    with paddle.no_grad():
        encoder(np.array([[5, 6]]))
    assert (set(vars(encoder.encoder)), {name: id(each) for name, each in encoder.named_parameters()}) == before
