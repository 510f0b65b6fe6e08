"""Gateway: samples in and predictions out, past the loop; EventBus: every subscriber gets all events."""

import numpy as np
import pytest

from onion import GradientMachine, Observer, Runner
from onion.online import Spool
from onion.online.control import gateway as module
from onion.online.control.gateway import EventBus, Gateway
from onion.online.control.run_api import Refused
from onion.online.learning.publish import Publish
from onion.online.stream.stream_provider import StreamProvider
from onion.testing import Batches, toy_network
from tests.online.lines import Line

NOTHING = Observer(on_batch_end=print)


def exchange_of(*items):
    gateway = Gateway()
    gateway.begin(Runner(*items))
    return gateway


def refusal(call, *arguments):
    with pytest.raises(Refused) as refused:
        call(*arguments)
    return refused.value.status, str(refused.value)


# -- samples -----------------------------------------------------------------------------------------------------------


def streaming(source):
    return exchange_of(StreamProvider(source, pass_every=8), NOTHING)


def test_samples_are_in_the_stream_with_their_producer_s_mark(tmp_path):
    spool = Spool(tmp_path / "samples.db")
    gateway = streaming(spool)
    assert gateway.put([{"a": 1}, {"a": 2}], "clicks", "1") == 2
    assert gateway.put([{"a": 1}, {"a": 2}], "clicks", "1") == 0
    assert gateway.put([{"a": 3}], "views", "1") == 1
    assert [sample.data for sample in spool.read(9, 0)] == [{"a": 1}, {"a": 2}, {"a": 3}]
    spool.close()


@pytest.mark.parametrize("items", [(Batches(1), NOTHING), (StreamProvider(Line(), pass_every=8), NOTHING)])
def test_without_a_stream_that_takes_samples_they_are_refused(items):
    status, words = refusal(exchange_of(*items).put, [1], "clicks", None)
    assert (status, words) == (404, "the run has no stream that takes samples over HTTP; use a Spool or a RedisStream.")


def test_more_than_ever_have_room_are_refused(tmp_path):
    gateway = streaming(Spool(tmp_path / "samples.db", capacity=3))
    assert refusal(gateway.put, [1] * 4, "clicks", None) == (413, "4 samples at once never have room; send fewer.")
    assert gateway.put([1] * 3, "clicks", None) == 3


def test_what_a_source_cannot_take_is_refused_with_its_reason(tmp_path):
    (tmp_path / "samples.db").write_bytes(b"this is no spool" * 100)
    status, words = refusal(streaming(Spool(tmp_path / "samples.db")).put, [1], "clicks", None)
    assert status == 503
    assert "samples.db" in words


# -- predictions -------------------------------------------------------------------------------------------------------


def as_batch(inputs):
    return {"x": np.asarray(inputs, "float32")}


def test_predictions_are_those_of_the_publish():
    network = toy_network()
    publish = Publish(network, as_batch, lambda outputs: outputs.tolist())
    runner = Runner(publish, Batches(1), NOTHING)
    gateway = exchange_of(*runner.items)
    assert refusal(gateway.predict, [[0.0] * 8]) == (503, "nothing is published yet; try again.")
    runner.run(passes=1)
    assert gateway.predict([[0.0] * 8] * 2) == publish.predict([[0.0] * 8] * 2)
    status, words = refusal(gateway.predict, [[0.0] * 5])
    assert status == 400
    assert words.startswith("the network does not take these inputs (ValueError: ")


def test_without_a_publish_there_are_no_predictions():
    gateway = exchange_of(Batches(1), GradientMachine(toy_network()))
    assert refusal(gateway.predict, [1]) == (404, "the run publishes nothing; it has no Publish.")


def drained(queue):
    found = []
    while not queue.empty():
        found.append(queue.get_nowait())
    return found


def test_all_listeners_hear_all_from_when_they_came():
    events = EventBus()
    early = events.subscribe()
    events.publish("status", {"step": 1})
    late = events.subscribe()
    events.publish("command", {"number": 1})
    events.end()
    assert drained(early) == [("status", {"step": 1}), ("command", {"number": 1}), None]
    assert drained(late) == [("command", {"number": 1}), None]


def test_who_has_left_hears_nothing():
    events = EventBus()
    queue = events.subscribe()
    events.unsubscribe(queue)
    events.unsubscribe(queue)
    events.publish("status", {})
    assert queue.empty()


def test_a_slow_one_loses_the_oldest_and_never_the_end(monkeypatch):
    monkeypatch.setattr(module, "MAX_EVENTS", 3)
    events = EventBus()
    queue = events.subscribe()
    for step in range(10):
        events.publish("status", {"step": step})
    events.end()
    assert drained(queue) == [("status", {"step": 8}), ("status", {"step": 9}), None]
