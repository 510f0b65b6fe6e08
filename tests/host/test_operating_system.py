"""What other systems than Linux do not have: onion is refused with what to do, or does without.

They are simulated, in processes of their own: what a system does not have is taken away before onion is imported.
"""

import subprocess
import sys

import pytest

from tests.paths import ROOT

LIKE_WINDOWS = "import sys; sys.modules['fcntl'] = None; sys.platform = 'win32'\n"

LIKE_MACOS = """
import ctypes, os, sys
del os.sched_getaffinity
def hide(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith(("/proc", "/sys")):
        hidden.append(arguments[0])
        raise FileNotFoundError(arguments[0])
hidden = []
sys.addaudithook(hide)
library = ctypes.CDLL
ctypes.CDLL = lambda name, *more, **options: library(name, *more, **options) if name else object()
"""


def python(code, *words):
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.parametrize("what", ["onion", "onion.checkpointing.lock", "onion.cli", "onion.models.encoder"])
def test_a_system_without_posix_locks_is_refused_at_import_with_what_to_do(what):
    done = python(f"{LIKE_WINDOWS}import {what}")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: onion runs on Linux and macOS: it locks the folder of a run by flock")
    assert "which win32 does not know. On Windows use WSL 2: run wsl --install, and install onion and Paddle" in last


def test_nobody_else_asks_for_the_system():
    """One place knows what onion runs on; what a posix system may not have is asked for by its own name."""
    asks = ("os.name", "sys.platform", "platform.system")
    files = [path for top in ("onion", "models", "tasks") for path in (ROOT / top).rglob("*.py")]
    found = [path.name for path in files if any(each in path.read_text(encoding="utf-8") for each in asks)]
    assert found == ["operating_system.py"]


TRAINING = """
import onion, os
from onion import DataProvider, GradientMachine, ParameterUpdater, Runner, Saver, Signals, device
from onion.host import math_library
from onion.testing import assert_resumes_exactly, toy_examples, toy_network
from onion.host.thread_count import default_threads
import paddle

def make(folder):
    paddle.seed(1)
    network = toy_network()
    updater = ParameterUpdater(paddle.optimizer.Adam(0.1, parameters=network.parameters()))
    data = DataProvider(toy_examples(32), 8, shuffle=True)
    return Runner(Signals(), Saver(folder, every=2), data, updater, GradientMachine(network))

assert_resumes_exactly(make, sys.argv[1], passes=2, cuts=[3, 5])
assert default_threads() == min(8, os.cpu_count())
assert not device.keep_freed_memory()
assert math_library.kernels_for(math_library.CPUINFO) is None
assert {"/proc/cpuinfo", "/proc/self/cgroup"} <= {str(place) for place in hidden}
print("the same bits")
"""


def test_without_what_only_linux_has_a_training_is_saved_and_resumed(tmp_path):
    """No /proc, no control groups, no affinity, no mallopt, as on macOS."""
    done = python(LIKE_MACOS + TRAINING, tmp_path)
    assert (done.returncode, done.stdout) == (0, "the same bits\n"), done.stderr
