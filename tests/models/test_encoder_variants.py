"""What the families do differently: tasks, segments, positions, activations; and that padding costs none of them."""

import attrs
import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.errors import DataError
from onion.models.encoder import Encoder
from tests.models.helpers import SMALL, VARIANTS, close, random_batch, small_encoder

ROBERTAS = [name for name in VARIANTS if "roberta" in name]


@given(
    variant=st.sampled_from(sorted(VARIANTS)),
    seed=st.integers(0, 10**6),
    batch=st.integers(1, 5),
    length=st.integers(1, 9),
    share=st.floats(0.1, 1),
)
@settings(max_examples=60)
def test_padding_does_not_matter(variant, seed, batch, length, share):
    """Each row is as without padding, and without the others; test_encoder_golden.py shows that it is right."""
    generator = np.random.default_rng(seed)
    mask = generator.random((batch, length)) < share
    mask[np.arange(batch), generator.integers(0, length, batch)] = True
    encoder = small_encoder(config=VARIANTS[variant])
    ids, types, tasks, positions = random_batch(encoder.config, mask, seed)
    whole = encoder(ids, types, attention_mask=mask, task_type_ids=tasks)
    rows = [
        encoder(*(each[row, kept][None] for each in (ids, types, positions)), None, tasks[row, kept][None])
        for row, kept in enumerate(mask)
    ]
    close(whole.packed.numpy(), np.concatenate([row.packed.numpy() for row in rows]))
    close(whole.pooled_output.numpy(), np.concatenate([row.pooled_output.numpy() for row in rows]))


def test_without_types_is_as_with_types_of_zero():
    plain = small_encoder(config=VARIANTS["roberta without types"])
    typed = small_encoder(config=attrs.evolve(plain.config, type_vocab_size=1))
    weights = dict(plain.named_parameters())
    for name, parameter in typed.named_parameters():
        parameter.set_value(weights[name] if name in weights else paddle.zeros(parameter.shape))
    ids = np.array([[5, 6, 7], [8, 9, 1]])
    close(plain(ids).packed.numpy(), typed(ids).packed.numpy())


@pytest.mark.parametrize(
    ("variant", "tables"),
    [
        ("bert", {"word": 40, "position": 16, "token_type": 2}),
        ("ernie 2.0, tasks off", {"word": 40, "position": 16, "token_type": 4}),
        ("ernie 3.0", {"word": 40, "position": 16, "token_type": 4, "task_type": 3}),
        ("roberta without types", {"word": 40, "position": 16}),
    ],
)
def test_there_are_no_tables_that_are_not_used(variant, tables):
    shapes = {name: p.shape for name, p in Encoder(VARIANTS[variant]).named_parameters() if "_embeddings." in name}
    width = SMALL.hidden_size
    assert shapes == {f"embeddings.{name}_embeddings.weight": [size, width] for name, size in tables.items()}


def test_the_task_is_the_configs_unless_the_call_names_one():
    encoder = small_encoder(config=VARIANTS["ernie 3.0"])
    ids = np.array([[5, 6, 0], [7, 8, 9]])
    plain, one, two = (encoder(ids, task_type_ids=task).packed.numpy() for task in (None, 1, 2))
    assert (plain == one).all()
    assert abs(plain - two).max() > 1e-3
    assert (encoder(ids, task_type_ids=np.full(ids.shape, 2)).packed.numpy() == two).all()
    assert (encoder(ids, task_type_ids=paddle.full(ids.shape, 2, "int32")).packed.numpy() == two).all()


@pytest.mark.parametrize("variant", ["bert", "ernie 2.0, tasks off"])
def test_without_task_embeddings_only_task_0_is_admitted(variant):
    encoder = small_encoder(config=VARIANTS[variant])
    ids = np.array([[5, 6]])
    assert (encoder(ids, task_type_ids=0).packed.numpy() == encoder(ids).packed.numpy()).all()
    with pytest.raises(DataError, match="task_type_ids contains 3; the encoder has no such embeddings"):
        encoder(ids, task_type_ids=3)


@pytest.mark.parametrize("variant", ROBERTAS)
def test_robertas_texts_may_come_with_zeros_for_types(variant):
    encoder = small_encoder(config=VARIANTS[variant])
    ids = np.array([[5, 6]])
    assert (encoder(ids, np.zeros_like(ids)).packed.numpy() == encoder(ids).packed.numpy()).all()
    with pytest.raises(DataError, match="token_type_ids contains 1; the encoder has"):
        encoder(ids, np.ones_like(ids))


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (3, "task_type_ids contains 3; the encoder has embeddings for 0 to 2"),
        (-1, "task_type_ids contains -1"),
        (np.array([1]), r"task_type_ids has the shape \[1\], input_ids \[1, 2\]"),
    ],
)
def test_bad_tasks_are_refused(tasks, message):
    with pytest.raises(DataError, match=message):
        small_encoder(config=VARIANTS["ernie 3.0"])(np.array([[5, 6]]), task_type_ids=tasks)


@pytest.mark.parametrize("variant", ROBERTAS)
def test_robertas_positions_are_given_to_tokens_wherever_they_stand(variant):
    encoder = small_encoder(config=VARIANTS[variant])
    right = encoder(np.array([[5, 6, 7, 1, 1]])).packed.numpy()
    left = encoder(np.array([[1, 5, 1, 6, 7]])).packed.numpy()
    given = encoder(np.array([[5, 6, 7]]), position_ids=np.array([[2, 3, 4]])).packed.numpy()
    close(left, right)
    close(given, right)


def test_robertas_limit_is_that_of_the_tokens_less_the_offset():
    encoder = small_encoder(config=VARIANTS["roberta"])
    assert encoder.config.max_length == 14
    assert encoder(np.full((1, 14), 5)).packed.shape == [14, SMALL.hidden_size]
    wide = np.ones((1, 20), np.int64)
    wide[0, 6:] = 5
    assert encoder(wide).packed.shape == [14, SMALL.hidden_size]
    with pytest.raises(DataError, match=r"length 15 .* max_position_embeddings 16, of which 2 are not for texts"):
        encoder(np.full((1, 15), 5))


def test_what_follows_the_pooler():
    ids = np.array([[5, 6, 7]])
    linear = small_encoder(config=attrs.evolve(SMALL, pool_act="linear"))(ids).pooled_output
    tanh = small_encoder()(ids).pooled_output
    np.testing.assert_allclose(tanh.numpy(), np.tanh(linear.numpy()), atol=1e-6)
    assert abs(linear.numpy()).max() > 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_saved_has_the_config(tmp_path, variant):
    encoder = Encoder(VARIANTS[variant])
    encoder.save_pretrained(tmp_path)
    assert Encoder.from_pretrained(tmp_path).config == encoder.config
