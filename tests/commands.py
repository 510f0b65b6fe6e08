"""The command line in processes of its own, in a folder with a tiny encoder and data."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.patience import PATIENCE
from tests.tasks.helpers import films, tiny_encoder, write_tsv

ONION = str(Path(sysconfig.get_path("scripts")) / "onion")
TEXTS = 320  # in a.tsv


def place_in(folder):
    """Fill a folder with the encoder ``tiny``, the texts ``a.tsv`` to train on and ``b.tsv`` to test on; return it."""
    tiny_encoder(folder / "tiny")
    write_tsv(folder / "a.tsv", films(TEXTS, seed=1))
    write_tsv(folder / "b.tsv", films(70, seed=2))
    return folder


def onion(place, *words, before="", after="", env=None, **options):
    """Run a command; ``before`` and ``after`` are Python that runs in the same process."""
    code = f"{before}\nimport sys, onion.cli\nstatus = onion.cli.main()\n{after}\nsys.exit(status)"
    command = [sys.executable, "-c", code] if before or after else [ONION]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", **options}
    env = {**os.environ, "OMP_NUM_THREADS": "1", **(env or {})}  # so small a network gains nothing by more
    return subprocess.run([*command, *map(str, words)], cwd=place, env=env, check=False, timeout=PATIENCE, **options)


def max_file_size(size):
    """Python that lets no file of its process grow beyond a size, as on a full disk."""
    return f"import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, ({size}, resource.RLIM_INFINITY))"


def last_line(text):
    return json.loads(text.splitlines()[-1])


def plain(error, *parts):
    """Whether it is one or two plain lines with these parts."""
    lines = error.splitlines()
    assert 1 <= len(lines) <= 2, error
    assert all(line.startswith(("onion", "See onion")) for line in lines), error
    assert "Traceback" not in error
    for part in parts:
        assert part in error
    return True
