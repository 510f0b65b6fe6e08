import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from onion.errors import DataError
from onion.models.packing import Packing

masks = arrays.arrays(bool, st.tuples(st.integers(1, 5), st.integers(1, 7))).filter(lambda mask: mask.any(1).all())
HOLES = np.array([[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]], bool)


def numbered(tokens, width):
    return paddle.arange(1, tokens * width + 1, dtype="float32").reshape([tokens, width])


@given(masks)
@settings(max_examples=60)
def test_unpacking_puts_each_token_back_and_zeros_elsewhere(mask):
    packing = Packing.of(mask, heads=2)
    packed = numbered(packing.tokens, 4)
    padded = packing.unpack(packed).numpy()
    assert padded.shape == (*mask.shape, 4)
    assert (padded[mask] == packed.numpy()).all()
    assert (padded[~mask] == 0).all()


@given(masks)
@settings(max_examples=60)
def test_heads_are_the_padded_transpose_and_merge_back(mask):
    packing = Packing.of(mask, heads=2)
    packed = numbered(packing.tokens, 6)
    heads = packing.split_heads(packed).numpy()
    expected = packing.unpack(packed).numpy().reshape(*mask.shape, 2, 3).transpose(0, 2, 1, 3)
    there = np.broadcast_to(mask[:, None, :, None], expected.shape)
    assert (heads[there] == expected[there]).all()
    assert (packing.merge_heads(paddle.to_tensor(heads)).numpy() == packed.numpy()).all()


@given(masks)
@settings(max_examples=60)
def test_pack_and_first_tokens(mask):
    packing = Packing.of(mask, heads=1)
    values = np.arange(mask.size).reshape(mask.shape)
    assert (packing.pack(values) == values[mask]).all()
    assert (packing.pack(paddle.to_tensor(values)).numpy() == values[mask]).all()
    assert (packing.columns == np.nonzero(mask)[1]).all()
    firsts = packing.pack(values)[packing.firsts.numpy()]
    assert (firsts == values[np.arange(len(mask)), mask.argmax(1)]).all()
    assert packing.starts.numpy().tolist() == [*packing.firsts.numpy(), packing.tokens]
    assert packing.longest == mask.sum(1).max()


def test_the_bias_hides_padding_only():
    bias = Packing.of(HOLES, heads=2).bias.numpy()
    assert ((bias == 0) == HOLES[:, None, None, :]).all()
    assert (np.exp(bias[bias != 0]) == 0).all()


def test_without_padding_there_is_no_bias_and_no_copy():
    packing = Packing.of(np.ones((2, 3)), heads=1)
    packed = numbered(6, 2)
    assert packing.is_full
    assert packing.bias is None
    assert packing.unpack(packed).shape == [2, 3, 2]


def test_a_row_without_tokens_is_named():
    with pytest.raises(DataError, match="row 1 of the batch has no token"):
        Packing.of(np.array([[1, 0], [0, 0], [0, 0]]), heads=1)


@pytest.mark.parametrize("shape", [(0, 4), (3,), (2, 2, 2)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(DataError, match=r"no rows|shape"):
        Packing.of(np.ones(shape), heads=1)


def test_rows_between_others_have_no_column_that_is_empty_in_all_of_them():
    packing = Packing.of(np.array([[1, 1, 1, 1], [0, 1, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0]]), heads=2)
    cut = packing.between(1, 3)
    np.testing.assert_array_equal(cut.mask, [[True, True], [True, False]])
    assert cut.heads == 2
