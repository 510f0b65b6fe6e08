"""What ``make gpu`` says: without a GPU, and of parts that pass, fail or lack something."""

import json
import re
import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import paddle
import pytest

from scripts.gpu import __main__ as gpu_script
from tests.abilities import gpus, needs
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


def test_only_the_last_lines_are_told_and_more_of_what_failed():
    outcome = gpu_script.Outcome
    output = "".join(f"line {number}\n" for number in range(100))
    page = gpu_script.page({}, [outcome("one", "it", "passed", 1, output)])
    assert "line 88\n" in page
    assert "line 87\n" not in page
    page = gpu_script.page({}, [outcome("one", "it", "failed (status 1)", 1, output)])
    assert "line 60\n" in page
    assert "line 59\n" not in page


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


def test_a_part_has_its_variables_and_the_folder_of_data(tmp_path):
    code = "import os, sys; print(os.environ['NVIDIA_TF32_OVERRIDE'], sys.argv[1])"
    part = gpu_script.Part("it", (gpu_script.PYTHON, "-c", code, gpu_script.DATA), gpu_script.EXACT)
    assert gpu_script.run("one", part, tmp_path, tmp_path / "data").output == f"0 {tmp_path / 'data'}\n"


@needs(paddle.is_compiled_with_cuda(), "needs a Paddle for GPUs, which need not be there")
def test_paddle_knows_the_flags_that_are_set():
    for flag in gpu_script.SAME_BITS.keys() - gpu_script.EXACT.keys():
        assert not paddle.get_flags(flag)[flag]


def test_every_part_runs_files_that_are_there():
    for part in gpu_script.PARTS.values():
        files = [word for word in part.command if word.endswith(".py")]
        modules = [ROOT / after.replace(".", "/") for word, after in pairwise(part.command) if word == "-m"]
        assert [file for file in files if not (ROOT / file).is_file()] == []
        ours = [path for path in modules if path.parent != ROOT]
        assert [path for path in ours if not (path.is_dir() or path.with_suffix(".py").is_file())] == []


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


def test_only_what_is_asked_for_is_run(gpu, tmp_path):
    report = tmp_path / "gpu.md"
    assert gpu.main(["good", "--report", str(report)]) == 0
    assert "bad" not in report.read_text(encoding="utf-8")


@WITHOUT
def test_without_a_gpu_nothing_is_run(tmp_path):
    command = [sys.executable, "-m", "scripts.gpu", "--report", str(tmp_path / "gpu.md")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stdout.startswith("nothing was run: Paddle ")
    assert "docs/gpu.md" in run.stdout
    assert not (tmp_path / "gpu.md").exists()


def test_a_python_without_onion_is_told(tmp_path):
    run = subprocess.run([sys.executable, "-S", "-E", "-m", "scripts.gpu"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1
    assert re.search(r"has no [\w.]+; name a Python that has onion by GPU_PYTHON=\.\.\.", run.stdout)


def test_the_training_that_is_measured_learns(tmp_path):
    small = {"layers": 1, "hidden": 64, "words": 20, "batch": 8, "length": 12, "steps": 30}
    given = [word for name, value in small.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "scripts.gpu.training", *given]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    told = json.loads(run.stdout.splitlines()[-1])
    assert told["steps"] == 30
    assert told["examples a second"] > 0
    assert told["tokens a second"] > told["examples a second"] * 6
    assert told["loss"][1] < told["loss"][0] + 1
    assert (told["peak bytes"] is None) == (told["device"] == "cpu")
