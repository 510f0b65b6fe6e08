"""Events: every listener hears all, a slow one loses the oldest."""

from onion.online import events as module
from onion.online.events import Events


def drained(queue):
    found = []
    while not queue.empty():
        found.append(queue.get_nowait())
    return found


def test_all_listeners_hear_all_from_when_they_came():
    events = Events()
    early = events.subscribe()
    events.tell("status", {"step": 1})
    late = events.subscribe()
    events.tell("command", {"number": 1})
    events.end()
    assert drained(early) == [("status", {"step": 1}), ("command", {"number": 1}), None]
    assert drained(late) == [("command", {"number": 1}), None]


def test_who_has_left_hears_nothing():
    events = Events()
    queue = events.subscribe()
    events.unsubscribe(queue)
    events.unsubscribe(queue)
    events.tell("status", {})
    assert queue.empty()


def test_a_slow_one_loses_the_oldest_and_never_the_end(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 3)
    events = Events()
    queue = events.subscribe()
    for step in range(10):
        events.tell("status", {"step": step})
    events.end()
    assert drained(queue) == [("status", {"step": 8}), ("status", {"step": 9}), None]
