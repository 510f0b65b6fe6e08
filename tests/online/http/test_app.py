"""The application: what all calls have in common; status, drawing, metrics, the files of the page, limits."""

import asyncio
import json
import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from onion.errors import OnionError
from onion.online.control.run_api import Refused
from onion.online.http import Limits
from onion.online.http.app import page_routes, read_page
from tests.online.http.calls import call
from tests.online.http.memory_run import TOKEN, serving


@pytest.mark.parametrize(
    ("status", "method", "path"),
    [
        *((404, "GET", path) for path in ("/nothing", "/docs", "/openapi.json", "//etc/passwd")),
        *((404, "GET", path) for path in ("/static/../app.py", "/static/%2e%2e/app.py")),
        *((404, "POST", path) for path in ("/pause/", "/rings/../../etc/passwd/enable")),
        (405, "GET", "/pause"),
        (405, "DELETE", "/settings"),
    ],
)
def test_what_does_not_exist(shared, method, path, status):
    got, _, answer = call(shared[1], method, path)
    assert got == status
    assert list(answer) == ["error"]


def test_an_error_in_the_run_is_answered_and_logged(served, caplog):
    run, service = served
    run.on_put = lambda: 1 / 0
    status, _, answer = call(service, "POST", "/samples", "1")
    assert (status, answer) == (500, {"error": "The service failed: ZeroDivisionError; see its log."})
    assert call(service, "GET", "/status")[0] == 200
    assert [record.name for record in caplog.records] == ["onion"]
    assert caplog.records[0].exc_info[0] is ZeroDivisionError


@pytest.mark.parametrize("path", ["/status", "/onion", "/metrics", "/events", "/nothing"])
def test_every_call_about_the_run_requires_the_token(shared, path):
    service = shared[1]
    for token in (None, TOKEN + "x", TOKEN[:-1], ""):
        status, headers, answer = call(service, "GET", path, token=token)
        assert status == 401
        assert headers["www-authenticate"] == "Bearer"
        assert "Bearer" in answer["error"]


def test_without_the_token_nothing_is_controlled(shared):
    run, service = shared
    for path in ("/pause", "/samples", "/predict", "/stop"):
        assert call(service, "POST", path, "1", token=None)[0] == 401
    assert call(service, "PATCH", "/settings", {"learning_rate": 0.2}, token="wrong" * 5)[0] == 401
    assert run.heard == run.samples == []


def test_every_answer_restricts_browsers(shared):
    for path, token in (("/status", TOKEN), ("/status", None), ("/nothing", TOKEN), ("/", None)):
        headers = call(shared[1], "GET", path, token=token)[1]
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == ("no-cache" if path == "/" else "no-store")


def test_the_page_of_another_site_gets_nothing(shared):
    run, service = shared
    assert call(service, "POST", "/pause", headers={"Origin": "https://evil.example"})[0] == 403
    assert call(service, "GET", "/status", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert run.heard == []
    assert call(service, "GET", "/status", headers={"Origin": service.url})[0] == 200


def test_long_headers_are_refused():
    with serving(limits=Limits(header=2000)) as (_, service):
        assert call(service, "GET", "/status", headers={"X": "x" * 1500})[0] == 200
        assert call(service, "GET", "/status", headers={"X": "x" * 2100})[0] in (400, 431)


def test_status_and_drawing_are_those_of_the_run(shared):
    run, service = shared
    assert call(service, "GET", "/status")[2] == run.status()
    assert call(service, "GET", "/onion")[2] == run.onion()


def test_values_that_are_not_finite_are_null(served):
    run, service = served
    run.loss, run.metrics = math.nan, {"a": math.inf}
    body = call(service, "GET", "/status")[2]
    assert (body["loss"], body["metrics"]) == (None, {"a": None})


def test_metrics_are_prometheus_text(served):
    run, service = served
    run.metrics = {'hostile"} 1\nonion_step 99': 0.5, "nothing": None}
    call(service, "GET", "/etc/passwd")
    call(service, "GET", "/rings/x")
    call(service, "POST", "/step?n=3")
    for method in ("DELETE", "BREW", "WHEN"):
        call(service, method, "/nothing")
    text = call(service, "GET", "/metrics")[2].decode()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    expected = {
        ("onion_step",): 10,
        ("onion_pass",): 1,
        ("onion_loss",): 0.5,
        ("onion_queue_samples",): 7,
        ("onion_rejected_samples",): 3,
        ("onion_commands_total",): 1,
        ("onion_metric", 'hostile"} 1\nonion_step 99'): 0.5,
        ("onion_log_value", "learning_rate"): 0.1,
        ("onion_http_requests_total", "POST", "/step", "200"): 1,
        ("onion_http_requests_total", "GET", "other", "404"): 2,
        ("onion_http_requests_total", "other", "other", "404"): 3,  # methods that do not exist are counted as one
    }
    assert found.items() >= expected.items()
    assert ("onion_metric", "nothing") not in found
    assert "BREW" not in text
    run.loss = None
    assert b"onion_loss" not in call(service, "GET", "/metrics")[2]


def test_answers_are_json_that_every_reader_accepts(served):
    run, service = served
    run.metrics = {"\ud800": 1.0}  # half a pair, in the name of a metric
    assert json.dumps(call(service, "GET", "/status")[2]["metrics"]) == r'{"\ud800": 1.0}'


@pytest.mark.parametrize(
    "wrong", [{"body": 0}, {"connections": 1.5}, {"seconds": -1}, {"keep_alive": float("inf")}, {"samples": True}]
)
def test_a_limit_must_be_a_number_above_0(wrong):
    with pytest.raises(OnionError, match=next(iter(wrong))):
        Limits(**wrong)
    assert Limits(seconds=0.1, keep_alive=0.5).seconds == 0.1


@pytest.fixture
def page(tmp_path):
    folder = tmp_path / "page"
    (folder / "vendor").mkdir(parents=True)
    (folder / "index.html").write_text("<p>页")
    (folder / "vendor" / "chart.js").write_text("1")
    (folder / "vendor" / "LICENSE").write_text("MIT")
    (tmp_path / "secret.js").write_text("2")
    return folder


def ask(folder, path, **names):
    endpoint = next(route.endpoint for route in page_routes(folder).routes if route.path == path)
    return asyncio.run(endpoint(**names))


def test_the_page_and_its_files(page):
    index = ask(page, "/")
    assert (index.body.decode(), index.media_type) == ("<p>页", "text/html; charset=utf-8")
    script = ask(page, "/static/{name:path}", name="vendor/chart.js")
    assert (script.body, script.media_type) == (b"1", "text/javascript; charset=utf-8")


@pytest.mark.parametrize(
    "name", ["", "../secret.js", "vendor", "vendor/LICENSE", "vendor/../../secret.js", "/etc/passwd"]
)
def test_no_other_file_is_served(page, name):
    with pytest.raises(Refused) as refused:
        ask(page, "/static/{name:path}", name=name)
    assert refused.value.status == 404


def test_a_missing_page_is_404(tmp_path):
    assert read_page(tmp_path / "nothing") == {}
    with pytest.raises(Refused):
        ask(tmp_path / "nothing", "/")


def test_files_are_read_once(page):
    router = page_routes(page)
    (page / "index.html").write_text("another")
    endpoint = next(route.endpoint for route in router.routes if route.path == "/")
    assert asyncio.run(endpoint()).body.decode() == "<p>页"
