"""Ranks that Paddle's elastic launcher starts again; without an etcd the tests skip, and say what is missing."""

import random
import signal

import pytest

from scripts.kill_ranks import elastic, moments
from scripts.kill_ranks.__main__ import whole_run
from scripts.kill_ranks.run import Run
from tests.abilities import needs_draws_again

pytestmark = [
    pytest.mark.ranks,
    pytest.mark.etcd,
    needs_draws_again,
    pytest.mark.skipif(elastic.missing() is not None, reason=str(elastic.missing())),
]


def test_killed_ranks_are_started_again_and_come_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(moments, "MOMENTS", {"save": moments.while_saving})
    monkeypatch.setattr(moments, "SIGNALS", {signal.SIGKILL: 1})
    monkeypatch.setattr(elastic, "MOST", 1)
    whole, seconds = whole_run(tmp_path)
    run = Run(tmp_path / "killed")
    with elastic.etcd(tmp_path / "etcd") as address:
        elastic.killed(run, random.Random(0), seconds, address)
    assert run.hits
    assert run.complaints(whole) == []
