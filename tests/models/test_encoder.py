from pathlib import Path

import attrs
import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.errors import DataError, WeightsError
from onion.models import hub
from onion.models.encoder import Encoder
from onion.models.formats.name_mapping import from_hugging_face
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.tokenizer import Tokenizer
from tests.models.helpers import MASKS, SMALL, VARIANTS, close, random_batch, small_encoder

GOLDEN = Path(__file__).parent / "golden" / "minilm.npz"


def test_what_stands_on_padding_does_not_matter():
    encoder = small_encoder()
    mask = np.array(MASKS["holes"])
    ids, types, *_ = random_batch(SMALL, mask)
    garbage = np.where(mask, ids, 10**9)
    first, second = (encoder(values, types, attention_mask=mask).sequence_output.numpy() for values in (ids, garbage))
    assert (first == second).all()


def test_tensors_and_arrays_of_any_integer_type_give_the_same():
    encoder = small_encoder()
    mask = np.array(MASKS["right"])
    ids, types, _, positions = random_batch(SMALL, mask)
    arrays = encoder(ids, types, positions, mask)
    tensors = encoder(
        *(paddle.to_tensor(a.astype(np.int32)) for a in (ids, types, positions)), paddle.to_tensor(mask > 0)
    )
    assert (arrays.packed.numpy() == tensors.packed.numpy()).all()


def test_the_default_mask_is_where_no_padding_id_stands():
    encoder = small_encoder()
    ids = np.array([[5, 6, 0], [7, 0, 0]])
    assert encoder(ids).packed.shape == [3, SMALL.hidden_size]
    assert (encoder(ids).packed.numpy() == encoder(ids, attention_mask=ids > 0).packed.numpy()).all()


def test_position_ids_are_heeded():
    encoder = small_encoder()
    ids = np.array([[5, 6, 7]])
    shifted = encoder(ids, position_ids=np.array([[2, 3, 4]])).packed.numpy()
    assert abs(shifted - encoder(ids).packed.numpy()).max() > 1e-3


def test_outputs_are_made_once():
    encoded = small_encoder()(np.array([[5, 6, 0]]))
    assert encoded.pooled_output is encoded.pooled_output
    assert encoded.sequence_output is next(iter(encoded))


def test_dropout_acts_in_training_only_and_follows_the_seed():
    encoder = small_encoder(config=attrs.evolve(SMALL, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2))
    ids = np.array([[5, 6, 7, 0], [8, 9, 0, 0]])
    plain = encoder(ids).packed.numpy()
    encoder.train()
    runs = []
    for seed in (1, 1, 2):
        paddle.seed(seed)
        runs.append(encoder(ids).packed.numpy())
    assert (runs[0] == runs[1]).all()
    assert abs(runs[0] - runs[2]).max() > 1e-3
    assert abs(runs[0] - plain).max() > 1e-3


def test_gradients_of_some_parameters_only():
    """Frozen parameters and paddle.grad with a few inputs (adversarial training) both work."""
    encoder = small_encoder()
    encoder.embeddings.word_embeddings.weight.stop_gradient = True
    loss = encoder(np.array([[5, 6, 0]])).pooled_output.sum()
    (found,) = paddle.grad(loss, [encoder.embeddings.position_embeddings.weight])
    assert abs(found.numpy()).max() > 0


def test_a_batch_beyond_the_positions_is_refused_with_both_numbers():
    with pytest.raises(DataError, match=r"length 17 .* max_position_embeddings 16"):
        small_encoder()(np.ones((1, 17), np.int64))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_ids": np.array([[40]])}, "input_ids contains 40; .* 0 to 39"),
        ({"input_ids": np.array([[-1]])}, "input_ids contains -1"),
        ({"token_type_ids": np.array([[2]])}, "token_type_ids contains 2"),
        ({"position_ids": np.array([[16]])}, "position_ids contains 16"),
        ({"attention_mask": np.array([[1, 1]])}, r"attention_mask has the shape \[1, 2\], input_ids \[1, 1\]"),
        ({"token_type_ids": np.array([1])}, "token_type_ids has the shape"),
        ({"attention_mask": np.array([[0]])}, "row 0 of the batch has no token"),
    ],
)
def test_bad_batches_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        small_encoder()(**{"input_ids": np.array([[5]]), **arguments})


NAMES = ("input_ids", "token_type_ids", "position_ids", "attention_mask", "task_type_ids")


@pytest.mark.parametrize("name", NAMES)
def test_lists_are_refused_by_name(name):
    with pytest.raises(DataError, match=f"{name} must be a tensor or a numpy array, got list"):
        small_encoder()(**{"input_ids": np.array([[5]]), name: [[1]]})
    if name == "input_ids":
        with pytest.raises(DataError, match="input_ids must be a tensor or a numpy array, got list"):
            small_encoder()([[5]], attention_mask=np.array([[1]]))


@pytest.mark.parametrize("kind", [np.asarray, paddle.to_tensor], ids=["array", "tensor"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "attention_mask"])
def test_ids_with_a_fraction_are_refused(name, kind):
    given = {"input_ids": kind(np.array([[5]])), name: kind(np.array([[0.7]], np.float32))}
    with pytest.raises(DataError, match=f"{name} must hold integers, got float32"):
        small_encoder()(**given)


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16", "int64", "bool"])
def test_a_mask_may_be_of_any_numbers(kind):
    encoder, ids = small_encoder(), np.array([[5, 6, 7]])
    mask = paddle.to_tensor([[1, 0, 1]]).astype(kind)
    expected = encoder(ids, attention_mask=np.array([[1, 0, 1]])).packed.numpy()
    assert (encoder(ids, attention_mask=mask).packed.numpy() == expected).all()
    with pytest.raises(DataError, match="row 0 of the batch has no token"):
        encoder(ids, attention_mask=mask.astype("float32") * 0)


@pytest.mark.parametrize("kind", [np.asarray, paddle.to_tensor, lambda a: paddle.to_tensor(a).astype("bfloat16")])
@pytest.mark.parametrize("mask", [[[0.0, -1e4]], [[0, -10000]], [[0.0, -np.inf]], [[1.0, np.nan]]])
def test_masks_that_are_none_are_refused(mask, kind):
    with pytest.raises(DataError, match="attention_mask must hold numbers >= 0: 1 for tokens, 0 for padding"):
        small_encoder()(np.array([[5, 6]]), attention_mask=kind(np.array(mask)))


def test_named_models_are_found_like_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("ONION_HOME", str(tmp_path))
    small_encoder().save_pretrained(tmp_path / "minilm")
    for load in (Encoder.from_pretrained, EncoderForPretraining.from_pretrained):
        assert load("MiniLM").state_dict()
        with pytest.raises(WeightsError, match="minilmm: neither a folder nor a known model"):
            load("minilmm")
    (tmp_path / "minilm" / "vocab.txt").write_text("[PAD] [UNK] [CLS] [SEP] [MASK] a".replace(" ", "\n"))
    assert Tokenizer.from_pretrained("MiniLM").vocab_size == 6
    with pytest.raises(WeightsError, match="minilmm: neither a folder nor a known model"):
        Tokenizer.from_pretrained("minilmm")


# -- what the families do differently ----------------------------------------------------------------------------------

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


# -- the published weights ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm():
    try:
        return hub.fetch("minilm")
    except WeightsError as error:
        pytest.skip(f"minilm cannot be fetched: {error}")


def test_minilm_agrees_with_hugging_face(minilm):
    golden = np.load(GOLDEN)
    encoder = Encoder.from_pretrained(minilm)
    encoder.eval()
    sequence, pooled = encoder(
        *(golden[n] for n in ("input_ids", "token_type_ids")), attention_mask=golden["attention_mask"]
    )
    expected = golden["sequence_output"]
    np.testing.assert_allclose(sequence.numpy()[:, :, : expected.shape[2]], expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(pooled.numpy(), golden["pooled_output"], rtol=0, atol=1e-5)

    loss = pooled.square().sum() + sequence.square().mean()
    np.testing.assert_allclose(float(loss), golden["loss"], rtol=1e-5)
    loss.backward()
    parameters = dict(encoder.named_parameters())
    for key in golden.files:
        if key.startswith("gradient:"):
            name, _ = from_hugging_face(key.removeprefix("gradient:"))
            scale = abs(golden[key]).max()
            np.testing.assert_allclose(
                parameters[name].grad.numpy(), golden[key], rtol=0, atol=1e-5 * max(scale, 1), err_msg=name
            )


def test_minilms_tokenizer_agrees_with_hugging_face(minilm):
    golden = np.load(GOLDEN)
    tokenizer = Tokenizer.from_pretrained(minilm)
    for index, (text, pair) in enumerate(zip(golden["texts"], golden["pairs"], strict=True)):
        (found,) = tokenizer([str(text)], [str(pair)] if pair else None)
        count = golden["attention_mask"][index].sum()
        assert (found.ids == golden["input_ids"][index, :count]).all()
        assert (found.types == golden["token_type_ids"][index, :count]).all()
