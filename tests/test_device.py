"""Paddle's import, memory and threads, in processes of their own, and arrays on their way to the device."""

import os
import platform
import sys
from collections import namedtuple

import numpy as np
import pytest

from onion import OnionError, device
from onion.device import paddle, to_tensors, use_threads
from onion.host.thread_count import default_threads
from tests.abilities import gpus, needs
from tests.fresh_python import python

pytestmark = pytest.mark.slow


FAULTS = """
import resource, onion
from onion.device import keep_freed_memory, paddle
full = paddle().full
full([8_000_000], 1.0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    full([8_000_000], 1.0)
print(keep_freed_memory(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")
def test_what_is_freed_is_used_again_without_asking_the_system():
    """20 tensors of 32 MB, each freed before the next: handed out anew, they would be 20 * 7,812 pages."""
    kept, faults = python(FAULTS)[0].split()
    assert kept == "True"
    assert int(faults) < 10_000


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")
@pytest.mark.parametrize("name", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"])
def test_who_has_chosen_how_memory_is_kept_is_left_alone(name):
    value = "glibc.malloc.mmap_threshold=131072" if name == "GLIBC_TUNABLES" else "131072"
    kept, faults = python(FAULTS, **{name: value})[0].split()
    assert kept == "False"
    assert int(faults) > 100_000


def test_a_missing_paddle_says_what_to_install_and_a_broken_one_keeps_its_own_error(empty_paddle):
    """A module in its place says that it is missing, as an interpreter without Paddle would."""
    (empty_paddle / "paddle.py").write_text("raise ModuleNotFoundError(\"No module named 'paddle'\", name='paddle')")
    code = "from onion.device import paddle\ntry:\n    paddle()\nexcept Exception as error:\n    print(repr(error))"
    told = python(code, PYTHONPATH=empty_paddle)[0]
    assert told.startswith("OnionError")
    assert "pip install 'onion-paddle[cpu]' (or [gpu]; never both)" in told
    assert issubclass(OnionError, Exception)
    (empty_paddle / "paddle.py").write_text("import a_module_that_is_missing")
    code = "from onion.device import paddle\ntry:\n    paddle()\nexcept ImportError as error:\n    print(error.name)"
    assert python(code, PYTHONPATH=empty_paddle)[0] == "a_module_that_is_missing"


@needs(gpus() or not paddle().is_compiled_with_cuda(), "a Paddle for GPUs warns where there is none, as it should")
@pytest.mark.parametrize("code", ["from onion.device import paddle; paddle()", "import onion, paddle"])
def test_paddle_comes_without_a_warning_whoever_imports_it(code):
    """Its own at import are none that a user could act on."""
    assert python(code)[1] == ""


def test_of_paddles_warnings_that_one_alone_is_silent(tmp_path):
    """A module in Paddle's place that warns of a missing ccache where Paddle does, of something else, and elsewhere."""
    inner = tmp_path / "paddle" / "utils" / "cpp_extension"
    inner.mkdir(parents=True)
    warn = "import warnings\nwarnings.warn('No ccache found. Please')\nwarnings.warn('another')\n"
    (inner / "extension_utils.py").write_text(warn)
    (inner / "__init__.py").write_text("from . import extension_utils")
    (tmp_path / "paddle" / "utils" / "__init__.py").write_text("from . import cpp_extension")
    (tmp_path / "paddle" / "__init__.py").write_text("from . import utils")
    (tmp_path / "others.py").write_text(warn)
    code = "import onion, paddle; print('-', file=__import__('sys').stderr); import others"
    paddles, others = python(code, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))[1].split("-\n")
    assert ("UserWarning: No ccache" in paddles, "UserWarning: another" in paddles) == (False, True)
    assert ("UserWarning: No ccache" in others, "UserWarning: another" in others) == (True, True)


@pytest.mark.parametrize(
    ("wish", "threads"), [("3", 3), ("", None), ("many", None), (None, None)], ids=["3", "empty", "text", "unset"]
)
def test_use_threads_follows_the_wish_of_the_environment_or_takes_the_default(monkeypatch, wish, threads):
    monkeypatch.setattr(device, "_wished_threads", wish)
    assert use_threads() == (threads or default_threads())
    assert use_threads(1) == 1


def test_the_wish_is_read_before_paddle_overwrites_it():
    code = "from onion.device import use_threads; print(use_threads())"
    assert python(code, OMP_NUM_THREADS=3)[0] == "3"
    assert python(f"import paddle; {code}", OMP_NUM_THREADS=3)[0] == "3"
    assert python(f"import paddle; {code}")[0] == str(default_threads()), "Paddle's 1 is not the user's"


Pair = namedtuple("Pair", ["x", "y"])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8", "bool", "complex64"])
def test_arrays_become_tensors_of_the_same_type_and_values(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    tensor = to_tensors(array)
    assert isinstance(tensor, paddle().Tensor)
    assert tensor.numpy().dtype == array.dtype
    assert np.array_equal(tensor.numpy(), array)


def test_a_batch_keeps_its_shape_of_dicts_and_tuples_and_arrays_theirs():
    array = np.ones(2, "float32")
    given = {"x": array, "more": (array, {"y": array}), "pair": Pair(array, "text")}
    batch = to_tensors(given)
    tensors = [batch["x"], batch["more"][0], batch["more"][1]["y"], batch["pair"].x]
    assert all(isinstance(tensor, paddle().Tensor) for tensor in tensors)
    assert [type(batch["more"]), type(batch["pair"]), batch["pair"].y] == [tuple, Pair, "text"]
    assert given["x"] is array
    assert to_tensors(np.zeros((0, 3), "float32")).shape == [0, 3]
    assert to_tensors(np.array(2.0, "float32")).shape == []


@pytest.mark.parametrize(
    "value", ["text", 3, 2.5, None, ["a", "list"], np.array(["a", "b"]), np.array([object()]), paddle().ones([2])]
)
def test_anything_else_stays_as_it_is(value):
    assert to_tensors(value) is value
    assert to_tensors((value,))[0] is value
