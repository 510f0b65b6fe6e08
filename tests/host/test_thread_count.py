"""How many threads compute by default: processors of this process, time that control groups allow, eight at most."""

import math
import os
from pathlib import Path

import pytest

from onion.host import thread_count
from onion.host.thread_count import MAX_THREADS, default_threads, processors, quota


@pytest.fixture
def limits(tmp_path):
    """Return a function that writes files of control groups; it gives what `quota` reads."""

    def write(groups, **files):
        (tmp_path / "cgroup").write_text(groups)
        for name, text in files.items():
            file = tmp_path / "fs" / name.replace("__", "/").replace("_max", ".max").replace("cfs", "cpu.cfs")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path / "cgroup", tmp_path / "fs"

    return write


@pytest.mark.parametrize(
    ("count", "allowed", "threads"),
    [
        (1, math.inf, 1),
        (2, math.inf, 2),
        (64, math.inf, MAX_THREADS),
        (64, 4.0, 4),
        (64, 1.5, 2),
        (2, 16.0, 2),
        (4, 0.1, 1),
    ],
)
def test_a_thread_for_each_processor_within_quota_and_limit(monkeypatch, count, allowed, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(count)), raising=False)
    monkeypatch.setattr(thread_count, "quota", lambda: allowed)
    assert default_threads() == threads


def test_where_the_system_tells_of_no_affinity_all_processors_count(monkeypatch):
    assert 1 <= default_threads() <= min(MAX_THREADS, processors())  # of this machine
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert processors() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processors() == 1


@pytest.mark.parametrize(
    ("group", "files", "processors"),
    [
        pytest.param("/job", {"job__cpu_max": "250000 100000\n"}, 2.5, id="of the group"),
        pytest.param("/a/b", {"a__cpu_max": "100 100\n", "a__b__cpu_max": "400 100\n"}, 1, id="of the group around it"),
        pytest.param("/docker/0123", {"cpu_max": "300000 100000\n"}, 3, id="of a container, at the top"),
    ],
)
def test_the_limit_of_a_group_of_version_2(limits, group, files, processors):
    assert quota(*limits(f"0::{group}\n", **files)) == processors


@pytest.mark.parametrize("top", ["cpu,cpuacct__", "cpu,cpuacct__docker__01__"])
def test_the_limit_of_a_group_of_version_1(limits, top):
    files = {f"{top}cfs_quota_us": "50000\n", f"{top}cfs_period_us": "100000\n"}
    assert quota(*limits("5:memory:/x\n4:cpu,cpuacct:/docker/01\n0::/\n", **files)) == 0.5


@pytest.mark.parametrize(
    "files",
    [{}, {"cpu_max": "max 100000\n"}, {"cpu_max": "?\n"}, {"cpu__cfs_quota_us": "-1", "cpu__cfs_period_us": "100000"}],
    ids=["no file", "max", "noise", "-1"],
)
def test_no_limit_is_infinity(limits, files):
    assert quota(*limits("3:cpu:/\n0::/\n", **files)) == math.inf
    assert quota(Path("/missing"), Path("/")) == math.inf
