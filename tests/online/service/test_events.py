"""What happens in a run, told to those who listen."""

import math

from onion.online.service import Limits
from onion.online.service import events as module
from tests.online.service.calls import call, listening, streaming
from tests.online.service.memory_desk import serving
from tests.patience import PATIENCE


def test_events_come_until_the_run_ends(served):
    desk, service = served
    with listening(service) as events:
        assert next(events) == ("status", desk.status())
        desk.events.tell("metrics", {"step": 11, "loss": math.nan, "name": "a\nb"})
        assert next(events) == ("metrics", {"step": 11, "loss": None, "name": "a\nb"})
        call(service, "POST", "/stop")
        kind, answer = next(events)
        assert (kind, answer["command"]) == ("command", "stop")
        kind, status = next(events)
        assert (kind, status["state"]) == ("status", "ended")
        assert list(events) == []
    assert desk.left.wait(PATIENCE)


def test_a_listener_who_leaves_is_forgotten_and_makes_room():
    with serving(limits=Limits(subscribers=1)) as (desk, service):
        with listening(service) as events:
            next(events)
            status, headers, _ = call(service, "GET", "/events")
            assert (status, headers["retry-after"]) == (503, "1")
        assert desk.left.wait(PATIENCE)
        with listening(service) as events:
            assert next(events)[0] == "status"


def test_a_silent_stream_has_heartbeats(served, monkeypatch):
    monkeypatch.setattr(module, "HEARTBEAT", 0.0)
    with streaming(served[1]) as answer:
        assert any(answer.readline() == b":\n" for _ in range(10))
