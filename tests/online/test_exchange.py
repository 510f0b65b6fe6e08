"""Exchange: samples in and predictions out, past the loop."""

import numpy as np
import pytest

from onion import GradientMachine, Observer, Runner
from onion.online.desk import Refused
from onion.online.exchange import Exchange
from onion.online.publish import Publish
from onion.online.sources import Spool
from onion.online.stream_provider import StreamProvider
from onion.testing import Batches, toy_network
from tests.online.lines import Line

NOTHING = Observer(on_batch_end=print)


def exchange_of(*items):
    exchange = Exchange()
    exchange.begin(Runner(*items))
    return exchange


def refusal(call, *arguments):
    with pytest.raises(Refused) as refused:
        call(*arguments)
    return refused.value.status, str(refused.value)


# -- samples -----------------------------------------------------------------------------------------------------------


def streaming(source):
    return exchange_of(StreamProvider(source, pass_every=8), NOTHING)


def test_samples_are_in_the_stream_with_their_producer_s_mark(tmp_path):
    spool = Spool(tmp_path / "samples.db")
    exchange = streaming(spool)
    assert exchange.put([{"a": 1}, {"a": 2}], "clicks", "1") == 2
    assert exchange.put([{"a": 1}, {"a": 2}], "clicks", "1") == 0
    assert exchange.put([{"a": 3}], "views", "1") == 1
    assert [sample.data for sample in spool.read(9, 0)] == [{"a": 1}, {"a": 2}, {"a": 3}]
    spool.close()


@pytest.mark.parametrize("items", [(Batches(1), NOTHING), (StreamProvider(Line(), pass_every=8), NOTHING)])
def test_without_a_stream_that_takes_samples_they_are_refused(items):
    status, words = refusal(exchange_of(*items).put, [1], "clicks", None)
    assert (status, words) == (404, "the run has no stream that takes samples over HTTP; use a Spool or a RedisStream.")


def test_more_than_ever_have_room_are_refused(tmp_path):
    exchange = streaming(Spool(tmp_path / "samples.db", capacity=3))
    assert refusal(exchange.put, [1] * 4, "clicks", None) == (413, "4 samples at once never have room; send fewer.")
    assert exchange.put([1] * 3, "clicks", None) == 3


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
    exchange = exchange_of(*runner.items)
    assert refusal(exchange.predict, [[0.0] * 8]) == (503, "nothing is published yet; try again.")
    runner.run(passes=1)
    assert exchange.predict([[0.0] * 8] * 2) == publish.predict([[0.0] * 8] * 2)
    status, words = refusal(exchange.predict, [[0.0] * 5])
    assert status == 400
    assert words.startswith("the network does not take these inputs (ValueError: ")


def test_without_a_publish_there_are_no_predictions():
    exchange = exchange_of(Batches(1), GradientMachine(toy_network()))
    assert refusal(exchange.predict, [1]) == (404, "the run publishes nothing; it has no Publish.")
