"""``onion embed`` in processes of its own: what it prints, what it leaves behind, how much memory it takes."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.tasks.helpers import HIDDEN, films, snapshot, tiny_encoder, write_tsv

pytestmark = pytest.mark.slow

TINY = ["embed", "--encoder", "tiny", "--max-length", "24", "--quiet"]
STOPPED = """
import os, signal
from onion.cli.commands import start_paddle
start_paddle()  # it loads Paddle without Paddle's warnings
from onion.tasks.embedding.embedder import PooledEncoder
forward, done = PooledEncoder.forward, []
def stop(self, batch):
    done.append(batch)
    if len(done) == 3:
        os.kill(os.getpid(), signal.{})
    return forward(self, batch)
PooledEncoder.forward = stop
"""
FULL_DISK = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with an encoder and data, for processes to run in."""
    folder = tmp_path_factory.mktemp("embed")
    tiny_encoder(folder / "tiny")
    write_tsv(folder / "a.tsv", films(320, seed=1))
    return folder


def onion(place, *words, before="", after=""):
    """Run the command in a process of its own; ``before`` and ``after`` are Python that runs in the same process."""
    code = f"{before}\nimport sys, onion.cli\nstatus = onion.cli.main()\n{after}\nsys.exit(status)"
    command = [sys.executable, "-c", code, *words]
    own = {**os.environ, "OMP_NUM_THREADS": "1"}  # so small a network gains nothing by more
    return subprocess.run(command, cwd=place, capture_output=True, text=True, encoding="utf-8", check=False, env=own)


def test_embed_writes_files_and_prints_a_line_of_json(place):
    words = ["--pooling", "mean", "--normalize", "--tokens", "--layer", "1", "--batch-size", "16"]
    done = onion(place, *TINY, "--input", "a.tsv", "--output", "whole", *words)
    assert (done.returncode, done.stderr) == (0, "")
    lengths = np.load(place / "whole" / "lengths.npy")
    total = int(lengths.sum())
    assert json.loads(done.stdout) == {"rows": 320, "tokens": total, "hidden": HIDDEN, "output": "whole"}
    assert np.load(place / "whole" / "top_layer_emb.npy", mmap_mode="r").shape == (total, HIDDEN)
    vectors = np.load(place / "whole" / "cls_emb.npy")
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), np.ones(320), atol=1e-5)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--input", "none.tsv", "--output", "o"], ["none.tsv: there is no such file"]),
        (["--input", "a.tsv", "--output", "tiny"], ["tiny: is not empty", "choose a new folder"]),
        (["--input", "a.tsv", "--output", "o", "--layer", "3"], ["layer 3", "layers 1 to 2"]),
        (["--input", "a.tsv", "--output", "o", "--layer", "0"], ["--layer", "'0'"]),
        (["--input", "a.tsv", "--output", "o", "--pooling", "max"], ["--pooling", "cls", "mean", "pooler"]),
        (["--input", "a.tsv", "--output", "o", "--max-length", "25"], ["--max-length 25", "3 to 24 tokens"]),
        (["--input", "a.tsv", "--output", "o", "--encoder", "none"], ["none: neither a folder nor a known model"]),
        (["--input", "a.tsv"], ["--output"]),
    ],
)
def test_mistakes_are_told_in_plain_lines_and_change_nothing(place, words, parts):
    before = snapshot(place)
    done = onion(place, *TINY, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) <= 2
    assert all(line.startswith(("onion", "See onion")) for line in done.stderr.splitlines())
    assert all(part in done.stderr for part in parts), done.stderr
    assert snapshot(place) == before


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_leaves_nothing(place, name):
    before = snapshot(place)
    words = ["--input", "a.tsv", "--output", "new/o", "--tokens", "--batch-size", "16"]
    done = onion(place, *TINY, *words, before=STOPPED.format(name))
    said = {"SIGINT": "interrupted", "SIGTERM": "terminated"}[name]
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.Signals[name], "", f"onion: {said}\n")
    assert snapshot(place) == before


def test_a_full_disk_leaves_nothing(place):
    before = snapshot(place)
    done = onion(place, *TINY, "--input", "a.tsv", "--output", "o", "--tokens", before=FULL_DISK)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "onion: o: cannot be written: File too large; nothing was written.\n"
    assert snapshot(place) == before


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc")
def test_memory_does_not_grow_with_the_input(place):
    # Not ru_maxrss: Linux starts a process's at what its parent, the tests, had.
    tell = "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    chance = random.Random(1)
    most = []
    for rows in (2_000, 20_000):
        texts = [" ".join(chance.choices(["film", "lovely", "was"], k=chance.randrange(1, 400))) for _ in range(rows)]
        data = write_tsv(place / f"{rows}.tsv", [(text,) for text in texts], ("text_a",))
        words = ["--input", data.name, "--output", f"{rows}", "--tokens", "--batch-size", "16"]
        done = onion(place, *TINY, *words, after=tell)
        assert done.returncode == 0, done.stderr
        report, peak = done.stdout.splitlines()
        most.append(int(peak) * 1024)
    # The larger one reads 20 MB of text and writes 60 MB of vectors.
    assert data.stat().st_size + (place / f"{rows}" / "top_layer_emb.npy").stat().st_size > 70_000_000
    assert json.loads(report)["rows"] == 20_000
    assert abs(most[1] - most[0]) < 15_000_000
