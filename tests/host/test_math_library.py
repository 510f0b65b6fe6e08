"""The CPU's math library, set up in processes of their own, whatever is imported first, and without a trace."""

import pytest

from onion.host import math_library
from onion.host.math_library import kernels_for, set_up_math_library
from tests.abilities import needs
from tests.fresh_python import python

pytestmark = pytest.mark.slow

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


SHOW = "import os, onion; print(os.environ.get('MKL_DEBUG_CPU_TYPE'))"


PROCESSORS = {
    "AMD": (AMD, "5"),
    "AMD with AVX-512": (NEW_AMD, "7"),
    "AMD with a part of it": (NEW_AMD.replace(" avx512vl", ""), "5"),
    "no AVX2": (NEW_AMD.replace(" avx2", ""), None),
    "old AMD": (OLD_AMD, None),
    "Intel": (INTEL, None),
    "ARM": (ARM, None),
    "noise": (NOISE, None),
    "empty": ("", None),
    "first AMD": (AMD + INTEL, "5"),
    "first Intel": (INTEL + AMD, None),
    "similar flag": (AMD.replace("avx2", "avx2x"), None),
}


@pytest.mark.parametrize(("text", "answer"), PROCESSORS.values(), ids=PROCESSORS)
def test_the_first_processor_of_the_file_decides(cpuinfo, text, answer):
    assert kernels_for(cpuinfo(text)) == answer


def test_a_file_that_cannot_be_read_is_no_amd_processor(tmp_path):
    assert kernels_for(tmp_path / "missing") is None
    assert kernels_for(tmp_path) is None


@pytest.mark.parametrize("processor", ["AMD", "AMD with AVX-512", "old AMD", "Intel"])
def test_importing_onion_chooses_the_kernels_on_amd_only(cpuinfo, processor):
    text, kernels = PROCESSORS[processor]
    assert python(SHOW, ONION_CPUINFO=cpuinfo(text)) == (str(kernels), "")


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


@pytest.mark.parametrize("processor", ["AMD", "Intel"])
def test_paddle_may_be_imported_first(cpuinfo, empty_paddle, processor):
    text, kernels = PROCESSORS[processor]
    told = python(f"import paddle; {SHOW}", ONION_CPUINFO=cpuinfo(text), modules=[empty_paddle])
    assert told == (str(kernels), "")


needs_amd = needs(kernels_for(math_library.CPUINFO) is not None, "MKL chooses the kernels of this processor itself")
PRODUCT = "a = paddle.ones([4, 4]); (a @ a).numpy()"
KERNELS = "from onion.host import math_library as own; from onion.device import paddle as load; load()"
KERNELS += "; print(own._read(own.VARIABLE))"


@needs_amd
@pytest.mark.parametrize("first", ["import onion; import paddle", "import paddle; import onion"])
def test_the_kernels_are_those_that_were_chosen_whatever_is_imported_first(first):
    output, errors = python(f"{first}; {PRODUCT}; {KERNELS}")
    assert output == kernels_for(math_library.CPUINFO)
    assert "RuntimeWarning" not in errors


@needs_amd
def test_who_has_computed_before_is_told_the_remedy():
    output, errors = python(f"import paddle; {PRODUCT}; import onion, onion.device, onion.engine.runner; {KERNELS}")
    assert output == "0"
    assert errors.count("RuntimeWarning") == 1
    kernels = kernels_for(math_library.CPUINFO)
    assert "Paddle has computed before onion was imported" in errors
    assert f"or set MKL_DEBUG_CPU_TYPE={kernels} in the environment" in errors


@needs_amd
def test_no_warning_where_the_variable_was_set_in_time():
    output, errors = python(f"import paddle; {PRODUCT}; import onion; {KERNELS}", MKL_DEBUG_CPU_TYPE=5)
    assert output == "5"
    assert "RuntimeWarning" not in errors


CHILDREN = """
import os, subprocess, sys
{first}
from onion.device import paddle
paddle()
ask = "import os; print([os.environ.get(name) for name in ('MKL_DEBUG_CPU_TYPE', 'KMP_BLOCKTIME')])"
print(subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout.strip())
"""


@pytest.mark.parametrize("first", ["import onion", "import paddle, onion"])
def test_children_do_not_inherit_what_was_set(cpuinfo, first):
    assert python(CHILDREN.format(first=first), ONION_CPUINFO=cpuinfo(AMD))[0] == "[None, None]"


def test_children_inherit_what_the_user_has_set(cpuinfo):
    user = {"MKL_DEBUG_CPU_TYPE": 7, "KMP_BLOCKTIME": 200}
    assert python(CHILDREN.format(first=""), ONION_CPUINFO=cpuinfo(AMD), **user)[0] == "['7', '200']"


def test_what_was_set_since_stays(cpuinfo):
    code = CHILDREN.format(first="import onion; os.environ['KMP_BLOCKTIME'] = '20'")
    assert python(code, ONION_CPUINFO=cpuinfo(AMD))[0] == "[None, '20']"


def test_what_no_library_reads_stays(cpuinfo, empty_paddle):
    code = f"import paddle, onion; from onion.device import paddle as load; load(); {SHOW}"
    assert python(code, ONION_CPUINFO=cpuinfo(AMD), modules=[empty_paddle]) == ("5", "")


def test_the_environment_may_be_any_mapping(cpuinfo, monkeypatch):
    monkeypatch.setattr(math_library, "_ours", {})
    environment = {}
    set_up_math_library(environment, cpuinfo(INTEL))
    assert environment == {"KMP_BLOCKTIME": "1"}


def test_threads_that_wait_let_go_of_their_processor_unless_the_user_wishes_otherwise(cpuinfo):
    show = "import os, onion; print(os.environ['KMP_BLOCKTIME'])"
    assert python(show, ONION_CPUINFO=cpuinfo(INTEL)) == ("1", "")
    assert python(show, ONION_CPUINFO=cpuinfo(INTEL), KMP_BLOCKTIME=200) == ("200", "")
