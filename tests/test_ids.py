"""The ids of all tests, and their order, are the same in every process: pytest-xdist's workers have to agree."""

import os
import subprocess
import sys

import pytest

from tests.paths import ROOT
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


COLLECT = """
import os, sys
import pytest

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def test_the_ids_of_tests_are_the_same_elsewhere_and_later(request, tmp_path):
    """Of the files that are tested now: at a later second, on one processor, with another environment."""
    here = [item.nodeid for item in request.session.items]
    files = list(dict.fromkeys(name.partition("::")[0] for name in here))
    changed = {
        "PYTHONHASHSEED": "17",
        "TZ": "Asia/Kolkata",
        "LC_ALL": "C",
        "OMP_NUM_THREADS": "3",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", COLLECT, *files],
        cwd=ROOT,
        env={**os.environ, **changed},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    chosen = set(here)
    assert [name for name in done.stdout.splitlines() if name in chosen] == here
