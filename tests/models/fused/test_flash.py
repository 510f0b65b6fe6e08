"""Attention by the kernel: when it is chosen, what it is told, and that it computes what the formula does."""

import inspect
from contextlib import contextmanager, nullcontext
from itertools import pairwise

import attrs
import numpy as np
import paddle
import pytest
from paddle.base import core, framework
from paddle.nn.functional import flash_attention

from onion.models import ops
from onion.models.fused import flash
from onion.models.hidden_states import record_hidden_states
from tests.abilities import needs_gpu
from tests.models.helpers import MASKS, RAGGED, SMALL, gradients, small_encoder

CONFIG = attrs.evolve(SMALL, hidden_size=32)  # heads of 8, the smallest that the kernel takes
SIGNATURE = inspect.signature(flash_attention.flash_attn_unpadded)


@contextmanager
def autocast(level, dtype):
    """What ``paddle.amp.auto_cast`` sets, which on the CPU does nothing."""
    tracer = framework._dygraph_tracer()
    before = tracer._amp_level, tracer._amp_dtype
    tracer._amp_level, tracer._amp_dtype = level, dtype
    yield
    tracer._amp_level, tracer._amp_dtype = before


@pytest.fixture
def able(monkeypatch):
    """Let the CPU seem a GPU that has the kernel."""
    monkeypatch.setattr(ops, "on_gpu", lambda x: True)
    monkeypatch.setattr(flash, "_is_able", lambda: True)
    monkeypatch.setattr(flash, "_is_registered", lambda dtype: True)


@pytest.fixture
def by_formula(able, monkeypatch):
    """A kernel for the CPU, in 32 bits: the formula row by row, from where the rows start. Gives what it was told."""
    calls = []

    def kernel(*given, **named):
        called = SIGNATURE.bind(*given, **named)
        called.apply_defaults()
        told = called.arguments
        calls.append(told)
        starts = told["cu_seqlens_q"].numpy()
        assert (starts == told["cu_seqlens_k"].numpy()).all()
        rows = []
        for first, end in pairwise(starts):
            query, key, value = (told[name][first:end].transpose([1, 0, 2]) for name in ("query", "key", "value"))
            probabilities = paddle.nn.functional.softmax(paddle.matmul(query, key, transpose_y=True) * told["scale"])
            rows.append(paddle.matmul(probabilities, value).transpose([1, 0, 2]))
        return paddle.concat(rows), None

    monkeypatch.setattr(flash_attention, "flash_attn_unpadded", kernel)
    monkeypatch.setattr(flash, "SIXTEEN_BITS", (paddle.float32,))
    return calls


def encoded(encoder, mask):
    ids = np.random.default_rng(0).integers(1, CONFIG.vocab_size, mask.shape)
    return encoder(ids, attention_mask=np.asarray(mask))


@pytest.mark.parametrize("mask", [*MASKS.values(), RAGGED.astype(int)], ids=[*MASKS, "ragged"])
def test_with_the_right_arguments_it_is_the_formula(mask, by_formula, monkeypatch):
    encoder, mask = small_encoder(config=CONFIG), np.array(mask)
    found = encoded(encoder, mask)
    slopes = gradients(encoder, *found)
    assert len(by_formula) == CONFIG.num_hidden_layers
    monkeypatch.setattr(ops, "on_gpu", lambda x: False)
    expected = encoded(encoder, mask)
    np.testing.assert_allclose(found.packed.numpy(), expected.packed.numpy(), atol=1e-5, rtol=0)
    for name, slope in gradients(encoder, *expected).items():
        np.testing.assert_allclose(slopes[name], slope, atol=1e-5 * max(1, abs(slope).max()), rtol=0, err_msg=name)
    assert len(by_formula) == CONFIG.num_hidden_layers


def test_what_the_kernel_is_told(by_formula):
    encoded(small_encoder(config=CONFIG), RAGGED)
    told = by_formula[0]
    assert [told[name].shape for name in ("query", "key", "value")] == [[23, 4, 8]] * 3
    assert told["cu_seqlens_q"].dtype == told["cu_seqlens_k"].dtype == paddle.int32
    assert told["cu_seqlens_q"].tolist() == told["cu_seqlens_k"].tolist() == [0, 9, 10, 14, 21, 23]
    assert (told["max_seqlen_q"], told["max_seqlen_k"]) == (9, 9)
    assert told["scale"] == pytest.approx(8**-0.5)
    assert (told["causal"], told["return_softmax"]) == (False, False)


@pytest.mark.parametrize(("probability", "training"), [(0.25, True), (0.25, False), (0.0, True)])
def test_the_kernel_drops_out_in_training_only(probability, training, by_formula):
    encoder = small_encoder(config=attrs.evolve(CONFIG, attention_probs_dropout_prob=probability))
    encoder.train() if training else encoder.eval()
    encoded(encoder, RAGGED)
    drops = training and probability > 0
    assert by_formula[0]["dropout"] == (probability if drops else 0.0)
    assert by_formula[0]["training"] == drops


def test_who_looks_inside_finds_the_same_scores(by_formula, monkeypatch):
    def scores():
        with record_hidden_states(encoder) as inside:
            encoded(encoder, RAGGED)
        return inside.scores(2).numpy()[np.broadcast_to(RAGGED[:, None, :, None], (5, 4, 9, 9))]

    encoder = small_encoder(config=CONFIG)
    found = scores()
    assert len(by_formula) == CONFIG.num_hidden_layers
    monkeypatch.setattr(ops, "on_gpu", lambda x: False)
    np.testing.assert_allclose(found, scores(), atol=1e-5, rtol=1e-5)


# -- when it is chosen -------------------------------------------------------------------------------------------------


def query(dtype="float16", size=8):
    return paddle.zeros([3, 4 * size]).astype(dtype)


SIXTEEN = ("float16", "bfloat16")
LEVELS = (core.AmpLevel.O1, core.AmpLevel.O2)


@pytest.mark.parametrize(
    ("dtype", "cast", "size", "expected"),
    [
        *((dtype, None, 8, dtype) for dtype in SIXTEEN),
        *(("float32", (level, dtype), 8, dtype) for level in LEVELS for dtype in SIXTEEN),  # of autocast
        *((dtype, None, 8, None) for dtype in ("float32", "float64")),
        *(("float16", None, size, "float16") for size in (64, 192)),
        *(("float16", None, size, None) for size in (200, 256, 12)),
    ],
    ids=str,
)
def test_type_and_size_of_a_head_decide(dtype, cast, size, expected, able):
    with autocast(*cast) if cast else nullcontext():
        assert flash.precision(query(dtype, size), 4) == (expected and getattr(paddle, expected))


@pytest.mark.parametrize("lacks", ["_is_able", "_is_registered"])
def test_without_a_kernel_for_the_gpu_the_formula_serves(lacks, able, monkeypatch):
    monkeypatch.setattr(flash, lacks, lambda *given: False)
    assert flash.precision(query(), 4) is None


def test_on_the_cpu_the_formula_serves():
    place = paddle.CPUPlace()
    assert flash.precision(paddle.to_tensor(np.zeros((3, 32), "float16"), place=place), 4) is None


@pytest.mark.parametrize(("capability", "able"), [((7, 5), False), ((8, 0), True), ((8, 9), True), ((12, 0), True)])
def test_the_gpu_has_to_be_one_that_the_kernel_was_written_for(capability, able, monkeypatch):
    monkeypatch.setattr(paddle.device.cuda, "get_device_capability", lambda: capability)
    assert flash._is_able.__wrapped__() == able


def test_the_registry_is_asked_for_each_type_on_a_gpu(monkeypatch):
    kernels = ["(GPU, Undefined(AnyLayout), float16)", "(CPU, Undefined(AnyLayout), bfloat16)"]
    monkeypatch.setattr(core, "_get_registered_phi_kernels", lambda kind: {flash.OPERATOR: kernels})
    registered = flash._is_registered.__wrapped__
    assert registered(paddle.float16)
    assert not registered(paddle.bfloat16)
    kernels.append("(GPU, Undefined(AnyLayout), bfloat16)")
    assert registered(paddle.bfloat16)
    monkeypatch.setattr(core, "_get_registered_phi_kernels", lambda kind: {})
    assert not registered(paddle.float16)


@pytest.mark.skipif(not paddle.is_compiled_with_cuda(), reason="needs a Paddle for GPUs, which need not be there")
@pytest.mark.parametrize("dtype", flash.SIXTEEN_BITS, ids=str)
def test_a_paddle_for_gpus_has_the_kernel(dtype):
    assert flash._is_registered(dtype)


# -- on a GPU ----------------------------------------------------------------------------------------------------------


@needs_gpu
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("mask", [*MASKS.values(), RAGGED.astype(int)], ids=[*MASKS, "ragged"])
def test_the_kernel_computes_the_formula(mask, dtype, monkeypatch):
    """Both in 16 bits, against the formula in 32: the kernel is as near to it as the formula in 16 bits is."""
    encoder, mask = small_encoder(config=CONFIG), np.array(mask)
    exact = encoded(encoder, mask).packed.numpy()
    exact_slopes = gradients(encoder, *encoded(encoder, mask))

    def found():
        with paddle.amp.auto_cast(level="O1", dtype=dtype):
            both = encoded(encoder, mask)
        return both.packed.astype("float32").numpy(), gradients(encoder, *both)

    calls, attend = [], flash.attend
    monkeypatch.setattr(flash, "attend", lambda *given: calls.append(given) or attend(*given))
    by_kernel = found()
    if paddle.device.cuda.get_device_capability() >= flash.LEAST_CAPABILITY:
        assert len(calls) == CONFIG.num_hidden_layers
    monkeypatch.setattr(flash, "precision", lambda query, heads: None)
    by_formula = found()
    distance = 3 * abs(by_formula[0] - exact).max() + 1e-3
    np.testing.assert_allclose(by_kernel[0], exact, atol=distance, rtol=0)
    for name, slope in exact_slopes.items():
        distance = 3 * abs(by_formula[1][name] - slope).max() + 1e-2 * max(1, abs(slope).max())
        np.testing.assert_allclose(by_kernel[1][name], slope, atol=distance, rtol=0, err_msg=name)
