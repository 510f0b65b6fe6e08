"""Gateway: samples in and predictions out, past the loop; EventBus: every subscriber gets all events."""

import numpy as np
import pytest

from onion import GradientMachine, Observer, Runner
from onion.online import Spool
from onion.online.control import gateway as module
from onion.online.control.gateway import EventBus, Gateway
from onion.online.learning.publish import Publish
from onion.online.stream.stream_provider import StreamProvider
from onion.testing import Batches, toy_network
from tests.online.toys import Line, refusal

NOTHING = Observer(on_batch_end=print)


def gateway_of(*items):
    gateway = Gateway()
    gateway.begin(Runner(*items))
    return gateway


def streaming(source):
    return gateway_of(StreamProvider(source, pass_every=8), NOTHING)


# -- samples -----------------------------------------------------------------------------------------------------------


def test_samples_are_in_the_stream_with_their_producers_cursor(tmp_path):
    spool = Spool(tmp_path / "samples.db")
    gateway = streaming(spool)
    assert gateway.put([{"a": 1}, {"a": 2}], "clicks", "1") == 2
    assert gateway.put([{"a": 1}, {"a": 2}], "clicks", "1") == 0
    assert gateway.put([{"a": 3}], "views", "1") == 1
    assert [sample.data for sample in spool.read(9, 0)] == [{"a": 1}, {"a": 2}, {"a": 3}]
    spool.close()


@pytest.mark.parametrize("items", [(Batches(1), NOTHING), (StreamProvider(Line(), pass_every=8), NOTHING)])
def test_without_a_stream_that_accepts_samples_they_are_refused(items):
    words = "the run has no stream that takes samples over HTTP; use a Spool or a RedisStream."
    assert refusal(gateway_of(*items).put, [1], "clicks", None) == (404, words)


def test_more_samples_than_the_capacity_are_refused(tmp_path):
    gateway = streaming(Spool(tmp_path / "samples.db", capacity=3))
    words = "4 samples at once exceed the capacity; send fewer."
    assert refusal(gateway.put, [1] * 4, "clicks", None) == (413, words)
    assert gateway.put([1] * 3, "clicks", None) == 3


def test_an_error_of_the_source_is_the_reason_of_a_refusal(tmp_path):
    (tmp_path / "samples.db").write_bytes(b"this is no spool" * 100)
    status, words = refusal(streaming(Spool(tmp_path / "samples.db")).put, [1], "clicks", None)
    assert status == 503
    assert "samples.db" in words


# -- predictions -------------------------------------------------------------------------------------------------------


def test_predictions_are_those_of_the_publish():
    publish = Publish(
        toy_network(), lambda inputs: {"x": np.asarray(inputs, "float32")}, lambda outputs: outputs.tolist()
    )
    runner = Runner(publish, Batches(1), NOTHING)
    gateway = gateway_of(*runner.items)
    assert refusal(gateway.predict, [[0.0] * 8]) == (503, "nothing is published yet; try again.")
    runner.run(passes=1)
    assert gateway.predict([[0.0] * 8] * 2) == publish.predict([[0.0] * 8] * 2)
    status, words = refusal(gateway.predict, [[0.0] * 5])
    assert status == 400
    assert words.startswith("the network cannot process these inputs (ValueError: ")


def test_without_a_publish_there_are_no_predictions():
    gateway = gateway_of(Batches(1), GradientMachine(toy_network()))
    assert refusal(gateway.predict, [1]) == (404, "the run publishes nothing; it has no Publish.")


# -- events ------------------------------------------------------------------------------------------------------------


def drained(queue):
    return [queue.get_nowait() for _ in range(queue.qsize())]


def test_every_subscriber_gets_all_events_since_it_subscribed():
    events = EventBus()
    early = events.subscribe()
    events.publish("status", {"step": 1})
    late = events.subscribe()
    events.publish("command", {"number": 1})
    events.end()
    assert drained(early) == [("status", {"step": 1}), ("command", {"number": 1}), None]
    assert drained(late) == [("command", {"number": 1}), None]


def test_an_unsubscribed_queue_gets_nothing():
    events = EventBus()
    queue = events.subscribe()
    events.unsubscribe(queue)
    events.unsubscribe(queue)
    events.publish("status", {})
    assert queue.empty()


def test_a_slow_subscriber_loses_the_oldest_events_and_never_the_end(monkeypatch):
    monkeypatch.setattr(module, "MAX_EVENTS", 3)
    events = EventBus()
    queue = events.subscribe()
    for step in range(10):
        events.publish("status", {"step": step})
    events.end()
    assert drained(queue) == [("status", {"step": 8}), ("status", {"step": 9}), None]
