"""What ``make gpu-dry`` says of operators: read from Paddle's log, compared with what is kernels."""

import subprocess
import sys

import pytest

from scripts.gpu_operators import kernels as operators
from tests.paths import ROOT

PADDLE_2 = """\
I1122 17:48:34.314736  8591 api.cc:72808] add API kernel key: [CPU, NCHW, float32]
I1122 17:48:34.314740  8591 api.cc:72815] add kernel: {"input":["CPU, NCHW, float32"],"output":[],"attribute":[]}
I1122 17:48:34.405907  8591 api_custom_impl.cc:235] embedding_grad API kernel key: [CPU, NCHW, float32]
I1122 17:48:34.405911  8591 api_custom_impl.cc:247] embedding_grad API kernel: {"input":["CPU, NCHW, float32"]}
I1122 17:48:34.415969  8591 api.cc:3306] adamw_ API kernel key: [CPU, NCHW, float32]
what a program prints between them
I1122 17:48:34.415970  8600 api.cc:3306] equal API kernel key: [CPU, NCHW, int64]
I1122 17:48:34.415974  8591 api.cc:3313] adamw kernel: {"input":["CPU, NCHW, float32"]}
I1122 17:48:34.415975  8600 api.cc:3313] equal kernel: {"input":["CPU, NCHW, int64"]}
I1122 17:48:34.416919  8591 prepared_operator.cc:291] Dynamic mode PrepareImpl - kernel name: unscale \
| kernel key: (CPU, Undefined(AnyLayout), float32) | kernel: {"input":["CPU, NCHW, float32"]}
I1122 17:48:34.500000  8591 api.cc:72808] add API kernel key: [CPU, NCHW, int64]
I1122 17:48:34.500001  8591 api.cc:72815] add kernel: {"input":["CPU, NCHW, int64"],"output":[],"attribute":[]}
"""


def test_kernels_and_their_types_are_read_from_the_log():
    assert operators.kernels_in(PADDLE_2.splitlines()) == {
        "add": {"float32", "int64"},
        "embedding_grad": {"float32"},
        "adamw": {"float32"},
        "equal": {"int64"},
        "unscale": {"float32"},
    }


@pytest.fixture
def small(tmp_path):
    """A process that adds two numbers and goes back; a second one that fails."""
    text = "import paddle\nx = paddle.ones([2])\nx.stop_gradient = False\n(x * x).sum().backward()\n"
    (tmp_path / "adds.py").write_text(text)
    (tmp_path / "fails.py").write_text("raise SystemExit('it went wrong')\n")
    (tmp_path / "idle.py").write_text("")
    return operators, tmp_path


def test_this_paddle_tells_of_forward_and_backward(small):
    module, folder = small
    found = module.recorded("adds", folder)
    assert {"full", "multiply", "sum", "multiply_grad", "sum_grad"} <= found.keys()
    assert found["multiply_grad"] == {"float32"}


@pytest.mark.parametrize(("name", "said"), [("fails", "status 1:\nit went wrong"), ("idle", "told of no kernel")])
def test_what_failed_or_told_nothing_is_no_record(small, name, said):
    module, folder = small
    with pytest.raises(module.FailedError, match=said):
        module.recorded(name, folder)


def of(backend, *dtypes):
    return [f"({backend}, Undefined(AnyLayout), {dtype})" for dtype in dtypes]


FLOATS = ("float32", "float16", "bfloat16")


def test_floating_point_is_needed_in_16_bits_too_and_integers_as_they_are():
    needed = operators.needed_of({"add": {"float32", "int64"}, "equal": {"int64"}, "all": {"bool"}})
    assert needed["add"] == {*FLOATS, "int64"}
    assert needed["equal"] == {"int64"}
    assert needed["all"] == {"bool"}
    assert needed["flash_attn_unpadded"] == {"float16", "bfloat16"}


@pytest.mark.parametrize(
    ("kernels", "missing"),
    [
        (of("GPU", *FLOATS), set()),
        (of("GPUDNN", *FLOATS), set()),
        (of("GPU", "float32", "float16"), {"bfloat16"}),
        (of("CPU", *FLOATS), set(FLOATS)),
        (of("GPU", "Undefined(ALL_DTYPE)"), set()),
        ([], set(FLOATS)),
    ],
)
def test_what_is_missing(kernels, missing):
    (verdict,) = operators.verdicts({"add": FLOATS}, {"add": kernels})
    assert verdict.missing == missing
    assert verdict.fails == bool(missing)


@pytest.mark.parametrize(("there", "fails"), [(("float32", "float16"), False), (("float32",), True), (FLOATS, False)])
def test_a_way_around_is_for_the_types_it_names(there, fails, monkeypatch):
    way = operators.Mode(frozenset({"bfloat16"}), "another road")
    monkeypatch.setattr(operators, "WAYS", {"add": way})
    found = operators.verdicts({"add": FLOATS}, {"add": of("GPU", *there)})
    assert found[0].fails == fails
    assert ("another road" in operators.rendered(found)) == (there == ("float32", "float16"))
    assert ("NO WAY AROUND" in operators.rendered(found)) == fails
    assert operators.idle_ways(found) == (["add"] if there == FLOATS else [])


def test_a_paddle_for_the_cpu_has_nothing_to_look_for():
    import paddle

    if paddle.is_compiled_with_cuda():
        pytest.skip("this Paddle is for GPUs")
    run = subprocess.run([sys.executable, "-m", "scripts.gpu_operators"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 2
    assert "this Paddle is for the CPU" in run.stdout
