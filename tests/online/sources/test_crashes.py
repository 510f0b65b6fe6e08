"""Who writes, who reads and the server are killed at random moments, and each sample is counted once."""

import json
import random
import subprocess
import sys

import pytest

from tests.online.sources import workers
from tests.paths import ROOT
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

TOTAL, KILLS = 700, 9


class Process:
    """A worker that is started again and again."""

    def __init__(self, *words):
        self.words = [str(word) for word in words]
        self.start()

    def start(self):
        command = [sys.executable, "-m", workers.__name__, *self.words]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True
        )

    def hear(self, lines):
        """Wait until it has told so much, or all."""
        for _ in range(lines):
            self.process.stdout.readline()

    def kill(self):
        """Kill it; tell whether it lived."""
        lived = self.process.poll() is None
        self.process.kill()
        self.process.communicate()
        return lived

    def end(self):
        _, wrong = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, wrong


@pytest.mark.parametrize("kind", ["spool", pytest.param("redis", marks=pytest.mark.redis), "folder"])
def test_each_sample_is_counted_once_whoever_is_killed(kind, tmp_path, request):
    server = request.getfixturevalue("own_redis") if kind == "redis" else None
    place, weights = server.url if server else tmp_path / "samples", tmp_path / "weights"
    if server is None:
        place.mkdir()
    reader = Process("read", kind, place, TOTAL, weights)
    writer = Process("write", kind, place, TOTAL)
    dice, killed = random.Random(7), 0
    for kill in range(KILLS):
        victim = (reader, writer, server)[kill % (3 if server else 2)]
        (reader if victim is server else victim).hear(dice.randrange(1, 4))
        killed += victim.kill()
        victim.start()
    writer.end()
    reader.end()
    _, counts = json.loads(weights.read_text())
    assert killed >= KILLS / 2  # all but writers who had done their work before
    assert counts == {str(number): 1 for number in range(TOTAL)}
