"""What onion does to the process it runs in: docs/host.md has all of it, and a training leaves nothing else."""

import re

import pytest

from tests.fresh_python import python
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "host.md").read_text(encoding="utf-8")

CHANGES = re.compile(
    r"environ\[[^\]]*\] =|environment\[[^\]]*\] =|environ\.(setdefault|pop|update)|putenv|setrecursionlimit|"
    r"field_size_limit|\.mallopt|signal\.signal\(|pthread_sigmask|filterwarnings|simplefilter|os\.umask|sys\.path\.|"
    r"basicConfig|\.setLevel|addHandler|addFilter|\.propagate = |random\.seed|paddle\.seed\(|"
    r"framework\.seed|np\.random\.set_state|set_num_threads|\.reconfigure\(|dup2|set_flags|chdir\(|setlocale|"
    r"atexit|sys\.\w*hook|set_rng_state|settrace|setprofile|"
    r"gc\.(disable|freeze|set_threshold)|set_device|seterr|set_printoptions|set_start_method|Thread\(|"
    r"register_at_fork|setitimer|signal\.alarm"
)


def changing():
    """Give the files that change something of the process, by their lines of code."""
    for folder in ("onion", "models", "tasks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = re.sub(r'"""[\s\S]*?"""', "", path.read_text(encoding="utf-8"))
            if CHANGES.search(re.sub(r"#.*", "", text)):
                yield path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", list(changing()))
def test_the_page_names_every_place(path):
    assert f"`{path}`" in PAGE


def test_the_page_names_no_other():
    named = re.findall(r"`((?:onion|models|tasks)/[\w/]+\.py)`", PAGE)
    assert set(named) - set(changing()) <= {"onion/engine/runner.py", "onion/checkpointing/writer.py"}


BEFORE_AND_AFTER = """
import csv, gc, locale, logging, os, random, signal, sys, threading, warnings
from pathlib import Path
import paddle

def look():
    umask = os.umask(0)
    os.umask(umask)
    return {
        "environment": dict(os.environ),
        "recursion limit": sys.getrecursionlimit(),
        "longest cell": csv.field_size_limit(),
        "handlers": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "filters": [each for each in warnings.filters if "ccache" not in str(each)],
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "log": (logging.root.level, logging.root.handlers[:]),
        "hooks": (sys.excepthook, threading.excepthook, sys.unraisablehook, sys.gettrace(), sys.getprofile()),
        "path": sys.path[:],
        "folder": os.getcwd(),
        "umask": umask,
        "locale": locale.setlocale(locale.LC_ALL),
        "collector": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()),
        "streams": (sys.stdout, sys.stderr, sys.stdout.encoding),
        "device": paddle.get_device(),
        "type": paddle.get_default_dtype(),
        "numpy": np.geterr(),
    }

import numpy as np
before = look()

from onion import DataProvider, GradientMachine, Logger, ParameterUpdater, Progress, Runner, Saver, Signals
from onion.data import read_rows
from onion.testing import toy_examples, toy_network

out = Path(os.environ["FOLDER"])
(out / "rows.csv").write_text("a,b\\n1,2\\n")
read_rows(out / "rows.csv")
network = toy_network()
updater = ParameterUpdater(paddle.optimizer.Adam(0.1, parameters=network.parameters()))
watching = [Progress(quiet=True), Signals(), Saver(out / "run", async_save=True), Logger(out / "log.jsonl")]
Runner(*watching, DataProvider(toy_examples(32), 8, shuffle=True), updater, GradientMachine(network)).run(passes=2)

after = look()
for name in before:
    if before[name] != after[name]:
        print(name, before[name], after[name], sep="\\n  ")
"""


def test_a_training_leaves_its_process_as_it_was(tmp_path):
    assert python(BEFORE_AND_AFTER, FOLDER=tmp_path)[0] == ""
