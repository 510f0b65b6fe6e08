"""What a launcher tells a process; and that processes of one machine share its processors."""

import pytest

from onion.host import launch, thread_count
from onion.host.thread_count import MAX_THREADS


def test_without_a_launcher_there_is_one_process(monkeypatch):
    for name in ("PADDLE_TRAINERS_NUM", "PADDLE_TRAINER_ID", "PADDLE_LOCAL_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert (launch.rank(), launch.world_size(), launch.local_size()) == (0, 1, 1)


def test_what_a_launcher_tells(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "8")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "5")
    monkeypatch.setenv("PADDLE_LOCAL_SIZE", "4")
    assert (launch.rank(), launch.world_size(), launch.local_size()) == (5, 8, 4)


@pytest.mark.parametrize(("size", "threads"), [(1, MAX_THREADS), (2, 8), (3, 5), (8, 2), (32, 1)])
def test_processes_of_a_machine_share_its_processors(size, threads, monkeypatch):
    monkeypatch.setattr(thread_count, "processors", lambda: 16)
    monkeypatch.setattr(thread_count, "quota", lambda: float("inf"))
    monkeypatch.setenv("PADDLE_LOCAL_SIZE", str(size))
    assert thread_count.default_threads() == threads


def test_paddles_launcher_is_known_by_what_it_sets(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINER_ID", "0")
    monkeypatch.delenv("PADDLE_LOG_DIR", raising=False)
    assert not launch.by_paddle()
    monkeypatch.setenv("PADDLE_LOG_DIR", "log")
    assert launch.by_paddle()
