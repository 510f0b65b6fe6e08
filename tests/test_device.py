"""The CPU's math library, set up in processes of their own, threads, and arrays on their way to the device."""

import os
import platform
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from onion import OnionError, device
from onion.device import kernels_for, paddle, set_up_math_library, to_tensors, use_threads
from onion.thread_count import default_threads
from tests.abilities import gpus, needs
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent

AMD = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\nflags\t\t: fpu sse4_2 avx avx2 bmi2\n\n"
OLD_AMD = AMD.replace(" avx2", "")
INTEL = AMD.replace("AuthenticAMD", "GenuineIntel").replace("AMD EPYC", "Xeon")
NEW_AMD = AMD.replace("avx2", "avx2 avx512f avx512dq avx512cd avx512bw avx512vl")
ARM = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n\n"
NOISE = "no colon here\n:\nflags\nvendor_id\xff: x\n"


@pytest.fixture
def cpuinfo(tmp_path):
    """Return a function that writes a description of a processor to a file."""

    def write(text):
        path = tmp_path / "cpuinfo"
        path.write_bytes(text.encode("latin-1"))
        return path

    return write


def python(code, **environment):
    """Run code in a fresh process that shows every warning; return its output and what it wrote to standard error."""
    kept = {name: value for name, value in os.environ.items() if name not in ("MKL_DEBUG_CPU_TYPE", "OMP_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        env={**kept, **{name: str(value) for name, value in environment.items()}},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


SHOW = "import os, onion; print(os.environ.get('MKL_DEBUG_CPU_TYPE'))"


# -- the processor -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (AMD, "5"),
        (NEW_AMD, "7"),
        (NEW_AMD.replace(" avx512vl", ""), "5"),
        (NEW_AMD.replace(" avx2", ""), None),
        (OLD_AMD, None),
        (INTEL, None),
        (ARM, None),
        (NOISE, None),
        ("", None),
        (AMD + INTEL, "5"),
        (INTEL + AMD, None),
        (AMD.replace("avx2", "avx2x"), None),
    ],
    ids=[
        *("AMD", "AMD with AVX-512", "AMD with a part of it", "no AVX2", "old AMD", "Intel", "ARM", "noise", "empty"),
        *("first AMD", "first Intel", "similar flag"),
    ],
)
def test_the_first_processor_of_the_file_decides(cpuinfo, text, answer):
    assert kernels_for(cpuinfo(text)) == answer


def test_a_file_that_cannot_be_read_is_no_amd_processor(tmp_path):
    assert kernels_for(tmp_path / "missing") is None
    assert kernels_for(tmp_path) is None


# -- the variable, in a fresh process ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "variable"),
    [(AMD, "5"), (NEW_AMD, "7"), (OLD_AMD, "None"), (INTEL, "None")],
    ids=["AMD", "AMD with AVX-512", "old AMD", "Intel"],
)
def test_importing_onion_chooses_the_kernels_on_amd_only(cpuinfo, text, variable):
    assert python(SHOW, ONION_CPUINFO=cpuinfo(text)) == (variable, "")


def test_where_the_processor_cannot_be_read_nothing_is_set(tmp_path):
    assert python(SHOW, ONION_CPUINFO=tmp_path / "missing") == ("None", "")


@pytest.mark.parametrize("value", ["6", ""])
def test_a_variable_that_is_set_already_is_kept_even_if_empty(cpuinfo, value):
    assert python(SHOW, ONION_CPUINFO=cpuinfo(AMD), MKL_DEBUG_CPU_TYPE=value) == (value, "")


def test_what_was_done_is_told_at_debug_level(cpuinfo):
    code = "import logging; logging.basicConfig(level=logging.DEBUG); import onion"
    for text, told in ((AMD, "set MKL_DEBUG_CPU_TYPE=5"), (INTEL, "is not needed on this processor")):
        assert told in python(code, ONION_CPUINFO=cpuinfo(text))[1]
    assert "MKL_DEBUG_CPU_TYPE=7 was set already" in python(code, ONION_CPUINFO=cpuinfo(AMD), MKL_DEBUG_CPU_TYPE=7)[1]


# -- Paddle before onion -----------------------------------------------------------------------------------------------


@pytest.fixture
def empty_paddle(tmp_path):
    """Return a folder with a module called paddle that imports at once."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "paddle.py").write_text("")
    return tmp_path / "modules"


LATE = f"import paddle; {SHOW}"


def test_paddle_imported_first_is_one_warning_with_the_remedy(cpuinfo, empty_paddle):
    code = f"{LATE}; import onion.device, onion.runner; from onion import Runner"
    output, errors = python(code, ONION_CPUINFO=cpuinfo(AMD), PYTHONPATH=empty_paddle)
    assert output == "None"
    assert errors.count("RuntimeWarning") == 1
    assert "import onion first, or set MKL_DEBUG_CPU_TYPE=5 in the environment" in errors


@pytest.mark.parametrize("text", [INTEL, OLD_AMD], ids=["Intel", "old AMD"])
def test_no_warning_where_nothing_is_lost(cpuinfo, empty_paddle, text):
    assert python(LATE, ONION_CPUINFO=cpuinfo(text), PYTHONPATH=empty_paddle) == ("None", "")


def test_no_warning_where_the_variable_was_set_in_time(cpuinfo, empty_paddle):
    environment = {"ONION_CPUINFO": cpuinfo(AMD), "PYTHONPATH": empty_paddle, "MKL_DEBUG_CPU_TYPE": 5}
    assert python(LATE, **environment) == ("5", "")


def test_the_real_paddle_imported_first_is_warned_of_too(cpuinfo):
    output, errors = python(LATE, ONION_CPUINFO=cpuinfo(AMD))
    assert output == "None"
    assert errors.count("Paddle was imported before onion") == 1


def test_the_environment_may_be_any_mapping(cpuinfo):
    environment = {}
    set_up_math_library(environment, cpuinfo(AMD), loaded=False)
    assert environment == {"MKL_DEBUG_CPU_TYPE": "5", "KMP_BLOCKTIME": "1"}
    environment = {"ONION_CPUINFO": str(cpuinfo(AMD))}
    with pytest.warns(RuntimeWarning, match="Paddle was imported before onion"):
        set_up_math_library(environment, loaded=True)
    assert environment.keys() == {"ONION_CPUINFO"}


def test_threads_that_wait_let_go_of_their_processor_unless_the_user_wishes_otherwise(cpuinfo):
    show = "import os, onion; print(os.environ['KMP_BLOCKTIME'])"
    assert python(show, ONION_CPUINFO=cpuinfo(INTEL)) == ("1", "")
    assert python(show, ONION_CPUINFO=cpuinfo(INTEL), KMP_BLOCKTIME=200) == ("200", "")


# -- memory ------------------------------------------------------------------------------------------------------------

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


# -- importing Paddle --------------------------------------------------------------------------------------------------


def test_a_missing_paddle_is_an_error_that_says_what_to_install(empty_paddle):
    """A module in its place says that it is missing, as an interpreter without Paddle would."""
    (empty_paddle / "paddle.py").write_text("raise ModuleNotFoundError(\"No module named 'paddle'\", name='paddle')")
    code = "from onion.device import paddle\ntry:\n    paddle()\nexcept Exception as error:\n    print(repr(error))"
    told = python(code, PYTHONPATH=empty_paddle)[0]
    assert told.startswith("OnionError")
    assert "pip install 'onion-paddle[cpu]' (or [gpu]; never both)" in told
    assert issubclass(OnionError, Exception)


def test_a_broken_paddle_keeps_its_own_error(empty_paddle):
    (empty_paddle / "paddle.py").write_text("import a_module_that_is_missing")
    code = "from onion.device import paddle\ntry:\n    paddle()\nexcept ImportError as error:\n    print(error.name)"
    assert python(code, PYTHONPATH=empty_paddle)[0] == "a_module_that_is_missing"


@needs(gpus() or not paddle().is_compiled_with_cuda(), "a Paddle for GPUs warns where there is none, as it should")
def test_paddle_comes_without_a_warning():
    """Its own at import are none that a user could mend; -W error turns any into an error."""
    code = "from onion.device import paddle; print(paddle().__name__)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.stdout.strip(), done.returncode) == ("paddle", 0), done.stderr


# -- threads -----------------------------------------------------------------------------------------------------------


def test_use_threads_takes_a_number():
    assert use_threads(1) == 1


@pytest.mark.parametrize(
    ("wish", "threads"), [("3", 3), ("", None), ("many", None), (None, None)], ids=["3", "empty", "text", "unset"]
)
def test_use_threads_follows_the_wish_of_the_environment_or_takes_the_default(monkeypatch, wish, threads):
    monkeypatch.setattr(device, "_WISHED_THREADS", wish)
    assert use_threads() == (threads or default_threads())
    use_threads(1)


def test_the_wish_is_read_before_paddle_overwrites_it():
    code = "from onion.device import use_threads; print(use_threads())"
    assert python(code, OMP_NUM_THREADS=3)[0] == "3"


# -- arrays ------------------------------------------------------------------------------------------------------------

Pair = namedtuple("Pair", ["x", "y"])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8", "bool", "complex64"])
def test_arrays_become_tensors_of_the_same_type_and_values(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    tensor = to_tensors(array)
    assert isinstance(tensor, paddle().Tensor)
    assert tensor.numpy().dtype == array.dtype
    assert np.array_equal(tensor.numpy(), array)


def test_a_batch_keeps_its_shape_of_dicts_and_tuples():
    array = np.ones(2, "float32")
    batch = to_tensors({"x": array, "more": (array, {"y": array}), "pair": Pair(array, "text")})
    tensors = [batch["x"], batch["more"][0], batch["more"][1]["y"], batch["pair"].x]
    assert all(isinstance(tensor, paddle().Tensor) for tensor in tensors)
    assert isinstance(batch["more"], tuple)
    assert isinstance(batch["pair"], Pair)
    assert batch["pair"].y == "text"


@pytest.mark.parametrize("value", ["text", 3, 2.5, None, ["a", "list"], np.array(["a", "b"]), np.array([object()])])
def test_anything_else_stays_as_it_is(value):
    assert to_tensors(value) is value


def test_a_tensor_stays_the_very_tensor():
    tensor = paddle().ones([2])
    assert to_tensors((tensor,))[0] is tensor


def test_empty_arrays_and_single_numbers_keep_their_shapes():
    assert to_tensors(np.zeros((0, 3), "float32")).shape == [0, 3]
    assert to_tensors(np.array(2.0, "float32")).shape == []


def test_the_batch_itself_is_not_changed():
    batch = {"x": np.ones(2, "float32")}
    to_tensors(batch)
    assert isinstance(batch["x"], np.ndarray)
