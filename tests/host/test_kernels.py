"""Operators below Paddle's public functions: all that onion calls are listed, and none ends the process somewhere."""

import ast

import paddle
import pytest

from onion.host import kernels
from scripts.gpu_operators.kernels import LEVEL, kernels_in
from tests.abilities import needs_layers_by_hand
from tests.fresh_python import python
from tests.paths import ROOT

SPACES = {"_C_ops", "_legacy_C_ops"}


def operators_in(code):
    """The operators that code takes from one of Paddle's private name spaces."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            owner = node.value
            if getattr(owner, "id", None) in SPACES or getattr(owner, "attr", None) in SPACES:
                yield node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2] in SPACES:
            yield from (name.name for name in node.names)


def test_every_way_to_name_an_operator_is_seen():
    code = (
        "import paddle\nfrom paddle import _C_ops\nfrom paddle._C_ops import c\n_C_ops.a()\npaddle()._legacy_C_ops.b()"
    )
    assert set(operators_in(code)) == {"a", "b", "c"}


def test_onion_calls_what_is_listed_and_nothing_that_does_not_ask_the_processor():
    sources = [path for room in ("onion", "models", "tasks") for path in (ROOT / room).rglob("*.py")]
    called = {name for path in sources for name in operators_in(path.read_text(encoding="utf-8"))}
    assert called == set(kernels.CALLED)
    assert not called & set(kernels.ENTERED_UNASKED)


@needs_layers_by_hand
@pytest.mark.parametrize("name", sorted(kernels.CALLED))
def test_this_paddle_has_it(name):
    assert hasattr(paddle._legacy_C_ops if name == "check_finite_and_unscale" else paddle._C_ops, name)


def test_only_what_is_listed_is_there():
    assert kernels.has("matmul", "embedding")
    assert not kernels.has("matmul", "an_operator_of_tomorrow")
    assert not kernels.has("fused_bias_residual_layernorm")  # Paddle may have it; onion does without


WORK = """
from tests.models.helpers import small_encoder
from onion import DataProvider, Forward, GradientMachine, ParameterUpdater, Runner
from onion.tasks.networks.pooled_encoder import PooledEncoder
from onion.tasks.networks.heads import SentenceHead, TokenHead
from onion.tasks.batches import batch_of
import paddle

examples = [{"ids": [5] * length, "types": [0] * length} for length in (4, 3)]
data = DataProvider(examples, batch_size=2, collate=batch_of)
for head in SentenceHead, TokenHead:
    network = head(small_encoder(), 2)
    optimizer = paddle.optimizer.AdamW(0.1, parameters=network.parameters())
    machine = GradientMachine(network, loss=lambda outputs, batch: outputs.square().mean())
    Runner(data, ParameterUpdater(optimizer), machine).run(passes=1)
    Runner(data, Forward(network)).run(passes=1)
Runner(data, Forward(PooledEncoder(network.encoder, "mean"))).run(passes=1)
"""


def test_what_runs_in_training_and_prediction_has_been_asked_of_the_processor():
    """By Paddle's own log: also what its public functions call in turn."""
    ran = set(kernels_in(python(WORK, **LEVEL)[1].splitlines()))
    assert ran > {"addmm", "gather", "layer_norm", "softmax", "matmul", "adamw"}
    assert not ran & set(kernels.ENTERED_UNASKED)
