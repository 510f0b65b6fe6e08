"""What ``make gpu`` says without a GPU and of its parts; what ``make gpu-dry`` says of operators and their kernels."""

import json
import re
import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import paddle
import pytest

from scripts.gpu import __main__ as gpu_script
from scripts.gpu_operators import kernels as operators
from tests.abilities import gpus, needs
from tests.fresh_python import module
from tests.paths import ROOT

WITHOUT = needs(not gpus(), "there is a GPU")
PAGE = """\
# onion on A Card: 1 of 3 parts failed: two

| | |
| --- | --- |
| GPU | A Card, 8 GiB |
| odd | one \\| other |

| part | what it shows | outcome | seconds |
| --- | --- | --- | --- |
| one | something | passed | 2 |
| two | another thing | failed (status 3) | 10 |
| three | a third | not run: no data | 0 |

## one: passed

```
all went well
```

## two: failed (status 3)

````
```
it went wrong
````

## three: not run: no data

```
nobody gave any
```
"""


def test_the_page_tells_the_machine_each_part_and_the_last_lines():
    outcome = gpu_script.Outcome
    outcomes = [
        outcome("one", "something", "passed", 2.4, "all went well\n"),
        outcome("two", "another thing", "failed (status 3)", 10.0, "```\nit went wrong\n\n"),
        outcome("three", "a third", "not run: no data", 0.0, "nobody gave any\n"),
    ]
    machine = {"GPU": "A Card, 8 GiB", "odd": "one | other"}
    page = gpu_script.page
    assert page(machine, outcomes) == PAGE
    assert page(machine, outcomes[:1]).startswith("# onion on A Card: no part failed\n")
    output = "".join(f"line {number}\n" for number in range(100))
    for verdict, first in (("passed", 88), ("failed (status 1)", 60)):  # more of what failed
        shown = page({}, [outcome("one", "it", verdict, 1, output)])
        assert (f"line {first}\n" in shown, f"line {first - 1}\n" in shown) == (True, False)


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("print('fine')", "passed"),
        ("import sys; print('bad', file=sys.stderr); sys.exit(3)", "failed (status 3)"),
        ("import sys; sys.exit('none')", "not run: nothing is there"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "failed (status -9)"),
    ],
)
def test_a_part_is_run_and_its_output_kept(code, verdict, tmp_path, capfd):
    part = gpu_script.Part("it", (gpu_script.PYTHON, "-c", code), lacks={1: "nothing is there"})
    found = gpu_script.run("one", part, tmp_path, tmp_path)
    assert found.verdict == verdict
    assert found.failed == verdict.startswith("failed")
    shown = capfd.readouterr().out
    assert shown.startswith("== one: ")
    assert shown.endswith(found.output)
    assert ("fine" in found.output) == (verdict == "passed")
    assert ("bad" in found.output) == (verdict == "failed (status 3)")


def test_a_part_has_its_variables_and_the_folder_of_data_and_runs_files_that_are_there(tmp_path):
    code = "import os, sys; print(os.environ['NVIDIA_TF32_OVERRIDE'], sys.argv[1])"
    part = gpu_script.Part("it", (gpu_script.PYTHON, "-c", code, gpu_script.DATA), gpu_script.EXACT)
    assert gpu_script.run("one", part, tmp_path, tmp_path / "data").output == f"0 {tmp_path / 'data'}\n"
    for part in gpu_script.PARTS.values():
        files = [word for word in part.command if word.endswith(".py")]
        modules = [ROOT / after.replace(".", "/") for word, after in pairwise(part.command) if word == "-m"]
        assert [file for file in files if not (ROOT / file).is_file()] == []
        ours = [path for path in modules if path.parent != ROOT]
        assert [path for path in ours if not (path.is_dir() or path.with_suffix(".py").is_file())] == []


@needs(paddle.is_compiled_with_cuda(), "needs a Paddle for GPUs, which need not be there")
def test_paddle_knows_the_flags_that_are_set():
    for flag in gpu_script.SAME_BITS.keys() - gpu_script.EXACT.keys():
        assert not paddle.get_flags(flag)[flag]


@pytest.fixture
def gpu(monkeypatch):
    """The script on a machine that seems to have a GPU."""
    monkeypatch.setattr(gpu_script, "_paddle", lambda: (SimpleNamespace(), ""))
    monkeypatch.setattr(gpu_script, "described", lambda paddle, root: {"GPU": "A Card, 8 GiB"})

    def of(code):
        return gpu_script.Part("it", (gpu_script.PYTHON, "-c", code))

    monkeypatch.setattr(gpu_script, "PARTS", {"good": of("print('fine')"), "bad": of("raise SystemExit('wrong')")})
    return gpu_script


def test_one_part_that_fails_stops_none_and_the_status_is_1(gpu, tmp_path, capfd):
    report = tmp_path / "new" / "gpu.md"
    assert gpu.main(["--report", str(report)]) == 1
    text = report.read_text(encoding="utf-8")
    assert text.startswith("# onion on A Card: 1 of 2 parts failed: bad\n")
    assert "wrong" in text
    assert text in capfd.readouterr().out
    assert gpu.main(["good", "--report", str(report)]) == 0  # only what is asked for is run
    assert "bad" not in report.read_text(encoding="utf-8")


@WITHOUT
def test_without_a_gpu_nothing_is_run(tmp_path):
    run = module("scripts.gpu", "--report", str(tmp_path / "gpu.md"))
    assert run.returncode == 1
    assert run.stdout.startswith("nothing was run: Paddle ")
    assert "docs/gpu.md" in run.stdout
    assert not (tmp_path / "gpu.md").exists()


def test_a_python_without_onion_is_told(tmp_path):
    run = subprocess.run([sys.executable, "-S", "-E", "-m", "scripts.gpu"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert re.search(r"has no [\w.]+; name a Python that has onion by GPU_PYTHON=\.\.\.", run.stdout)


def test_the_training_that_is_measured_learns():
    small = {"layers": 1, "hidden": 64, "words": 20, "batch": 8, "length": 12, "steps": 30}
    run = module("scripts.gpu.training", *(word for name, value in small.items() for word in (f"--{name}", str(value))))
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    assert told["steps"] == 30
    assert told["examples a second"] > 0
    assert told["tokens a second"] > told["examples a second"] * 6
    assert told["loss"][1] < told["loss"][0] + 1
    assert (told["peak bytes"] is None) == (told["device"] == "cpu")


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


def test_kernels_are_read_from_the_log_and_floating_point_is_needed_in_16_bits_too():
    assert operators.kernels_in(PADDLE_2.splitlines()) == {
        "add": {"float32", "int64"},
        "embedding_grad": {"float32"},
        "adamw": {"float32"},
        "equal": {"int64"},
        "unscale": {"float32"},
    }
    needed = operators.needed_of({"add": {"float32", "int64"}, "equal": {"int64"}, "all": {"bool"}})
    assert needed["add"] == {*FLOATS, "int64"}
    assert needed["equal"] == {"int64"}
    assert needed["all"] == {"bool"}
    assert needed["flash_attn_unpadded"] == {"float16", "bfloat16"}


def test_this_paddle_tells_of_forward_and_backward(tmp_path):
    text = "import paddle\nx = paddle.ones([2])\nx.stop_gradient = False\n(x * x).sum().backward()\n"
    (tmp_path / "adds.py").write_text(text)
    found = operators.recorded("adds", tmp_path)
    assert {"full", "multiply", "sum", "multiply_grad", "sum_grad"} <= found.keys()
    assert found["multiply_grad"] == {"float32"}


@pytest.mark.parametrize(
    ("code", "said"), [("raise SystemExit('it went wrong')", "status 1:\nit went wrong"), ("", "told of no kernel")]
)
def test_what_failed_or_told_nothing_is_no_record(tmp_path, code, said):
    (tmp_path / "process.py").write_text(code)
    with pytest.raises(operators.FailedError, match=said):
        operators.recorded("process", tmp_path)


def of(backend, *dtypes):
    return [f"({backend}, Undefined(AnyLayout), {dtype})" for dtype in dtypes]


FLOATS = ("float32", "float16", "bfloat16")


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


@pytest.mark.skipif(paddle.is_compiled_with_cuda(), reason="this Paddle is for GPUs")
def test_a_paddle_for_the_cpu_has_nothing_to_look_for():
    run = module("scripts.gpu_operators")
    assert run.returncode == 2
    assert "this Paddle is for the CPU" in run.stdout
