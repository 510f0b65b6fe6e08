"""The calls that only look."""

import json
import math

from tests.online.service.calls import call


def test_status_is_that_of_the_desk(shared):
    desk, service = shared
    status, headers, body = call(service, "GET", "/status")
    assert (status, body) == (200, desk.status())
    assert headers["cache-control"] == "no-store"


def test_figures_that_are_no_numbers_are_null(served):
    desk, service = served
    desk.loss, desk.metrics = math.nan, {"a": math.inf}
    body = call(service, "GET", "/status")[2]
    assert body["loss"] is None
    assert body["metrics"] == {"a": None}


def test_onion(shared):
    desk, service = shared
    assert call(service, "GET", "/onion")[2] == desk.onion()


def test_metrics_are_prometheus_text(served):
    from prometheus_client.parser import text_string_to_metric_families

    desk, service = served
    desk.metrics = {'hostile"} 1\nonion_step 99': 0.5, "nothing": None}
    call(service, "GET", "/etc/passwd")
    call(service, "GET", "/rings/x")
    call(service, "POST", "/step?n=3")
    text = call(service, "GET", "/metrics")[2].decode()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["onion_step",] == 10
    assert found["onion_pass",] == 1
    assert found["onion_loss",] == 0.5
    assert found["onion_queue_samples",] == 7
    assert found["onion_rejected_samples",] == 3
    assert found["onion_commands_total",] == 1
    assert found["onion_metric", 'hostile"} 1\nonion_step 99'] == 0.5
    assert ("onion_metric", "nothing") not in found
    assert found["onion_reading", "learning_rate"] == 0.1
    assert found["onion_http_requests_total", "POST", "/step", "200"] == 1
    assert found["onion_http_requests_total", "GET", "other", "404"] == 2


def test_a_figure_that_is_not_there_is_left_out(served):
    desk, service = served
    desk.loss = None
    assert b"onion_loss" not in call(service, "GET", "/metrics")[2]


def test_answers_are_json_that_any_reader_takes(served):
    desk, service = served
    desk.metrics = {"\ud800": 1.0}  # half a pair, in a name of somebody's metric
    assert json.dumps(call(service, "GET", "/status")[2]["metrics"]) == r'{"\ud800": 1.0}'


def test_made_up_methods_are_counted_as_one(served):
    service = served[1]
    for method in ("DELETE", "BREW", "WHEN"):
        call(service, method, "/nothing")
    text = call(service, "GET", "/metrics")[2].decode()
    assert 'onion_http_requests_total{method="other",path="other",status="404"} 3.0' in text
    assert "BREW" not in text
