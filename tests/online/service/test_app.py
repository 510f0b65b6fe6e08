"""All calls together: what is the same for every one."""

import pytest

from onion.online.service import Limits
from tests.online.service.calls import call
from tests.online.service.memory_desk import TOKEN, serving


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/pause", 405),
        ("POST", "/pause/", 404),
        ("DELETE", "/settings", 405),
        ("GET", "/docs", 404),
        ("GET", "/openapi.json", 404),
        ("GET", "/static/../app.py", 404),
        ("GET", "/static/%2e%2e/app.py", 404),
        ("GET", "//etc/passwd", 404),
        ("POST", "/rings/../../etc/passwd/enable", 404),
    ],
)
def test_what_is_not_there(shared, method, path, status):
    got, _, answer = call(shared[1], method, path)
    assert got == status
    assert list(answer) == ["error"]


def test_a_defect_behind_the_desk_is_an_answer_and_in_the_log(served, caplog):
    desk, service = served
    desk.on_put = lambda: 1 / 0
    status, _, answer = call(service, "POST", "/samples", "1")
    assert (status, answer) == (500, {"error": "The service failed: ZeroDivisionError; its log has more."})
    assert call(service, "GET", "/status")[0] == 200
    assert [record.name for record in caplog.records] == ["onion"]
    assert caplog.records[0].exc_info[0] is ZeroDivisionError


@pytest.mark.parametrize("path", ["/status", "/onion", "/metrics", "/events", "/nothing"])
def test_everything_that_is_of_the_run_needs_the_token(shared, path):
    service = shared[1]
    for token in (None, TOKEN + "x", TOKEN[:-1], ""):
        status, headers, answer = call(service, "GET", path, token=token)
        assert status == 401
        assert headers["www-authenticate"] == "Bearer"
        assert "Bearer" in answer["error"]


def test_without_the_token_nothing_is_steered(shared):
    desk, service = shared
    for path in ("/pause", "/samples", "/predict", "/stop"):
        assert call(service, "POST", path, "1", token=None)[0] == 401
    assert call(service, "PATCH", "/settings", {"learning_rate": 0.2}, token="wrong" * 5)[0] == 401
    assert desk.heard == desk.samples == []


def test_every_answer_keeps_browsers_in_bounds(shared):
    for path, token in (("/status", TOKEN), ("/status", None), ("/nothing", TOKEN), ("/", None)):
        headers = call(shared[1], "GET", path, token=token)[1]
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == ("no-cache" if path == "/" else "no-store")


def test_the_page_of_another_site_gets_nothing(shared):
    desk, service = shared
    assert call(service, "POST", "/pause", headers={"Origin": "https://evil.example"})[0] == 403
    assert call(service, "GET", "/status", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert desk.heard == []
    assert call(service, "GET", "/status", headers={"Origin": service.url})[0] == 200


def test_long_headers_are_refused():
    with serving(limits=Limits(header=2000)) as (_, service):
        assert call(service, "GET", "/status", headers={"X": "x" * 1500})[0] == 200
        assert call(service, "GET", "/status", headers={"X": "x" * 2100})[0] in (400, 431)
