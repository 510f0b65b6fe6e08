"""``onion train --processes``: the same bits, one output, and an end by Ctrl-C that can be resumed."""

import json
import os
import select
import signal
import subprocess

import pytest

from tests.abilities import needs_draws_again
from tests.commands import ONION, last_line, onion, place_in
from tests.distributed.launched import appeared
from tests.patience import PATIENCE

pytestmark = [pytest.mark.ranks, needs_draws_again]

DATA = "--task classification --train a.tsv --dev b.tsv --encoder tiny --max-length 16 --batch-size 16"
WORDS = f"train {DATA} --pieces 4 --passes 16 --test-every 40"
ARRAYS = "*.safetensors"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with data, and a training by one process."""
    place = place_in(tmp_path_factory.mktemp("command"))
    done = onion(place, *WORDS.split(), "--output", "one")
    assert done.returncode == 0, done.stderr
    (place / "one.json").write_text(done.stdout.splitlines()[-1])
    return place


def weights(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.glob(f"step-*/{ARRAYS}")}


def rows(folder):
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in found]


def test_two_processes_come_to_the_same_bits_and_print_one_result(place):
    done = onion(place, *WORDS.split(), "--output", "two", "--processes", 2, "--shard-optimizer")
    assert done.returncode == 0, done.stderr
    same = ("seconds", "output")
    one, two = json.loads((place / "one.json").read_text()), last_line(done.stdout)
    assert {**two, **{name: one[name] for name in same}} == one
    assert done.stdout.count('"best_step"') == 1
    assert weights(place / "two") == weights(place / "one") != {}
    assert rows(place / "two") == rows(place / "one")


def test_ctrl_c_saves_and_the_same_command_resumes_with_another_number(place):
    words = [ONION, *WORDS.split(), "--output", "cut", "--processes", "2", "--shard-optimizer"]
    process = subprocess.Popen(words, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    appeared(place / "cut" / "metrics.jsonl", process)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT, error
    assert "the same command resumes it" in error
    stopped = last_line(out)["step"]
    assert onion(place, *WORDS.split(), "--output", "cut").returncode == 0
    assert stopped < json.loads((place / "one.json").read_text())["step"]
    assert weights(place / "cut") == weights(place / "one")


def test_no_rank_goes_on_where_the_command_is_killed(place):
    words = [ONION, *WORDS.split(), "--output", "orphans", "--processes", "2"]
    process = subprocess.Popen(words, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    appeared(place / "orphans" / "metrics.jsonl", process)
    listed = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout
    ranks = [os.pidfd_open(int(pid)) for pid in listed.split()]
    process.kill()
    process.communicate(timeout=PATIENCE)
    for each in ranks:
        assert select.select([each], [], [], PATIENCE)[0], "a rank goes on"
        os.close(each)
    assert len(ranks) == 2


def test_an_error_is_told_once(place):
    done = onion(place, *WORDS.split(), "--output", "bad", "--processes", 2, "--monitor", "dev.nothing")
    assert done.returncode == 2
    assert done.stderr.count("has no metric") == 1
