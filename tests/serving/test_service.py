"""The service itself: load, the end, tokens, callers who go, models that are exchanged."""

import json
import math
import shutil
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from urllib.parse import urlsplit

import httpx
import pytest

from onion.errors import OnionError
from onion.serving import served_models
from onion.serving.calls import AT_ONCE
from onion.serving.limits import ServingLimits
from onion.serving.server import ModelServer
from onion.tasks.export.export import export
from onion.tasks.finetune.predictor import Predictor
from scripts.serving_load import alike
from tests.patience import PATIENCE
from tests.serving.fakes import Echo
from tests.serving.services import served

pytest.importorskip("onnxruntime")
TOKEN = "a token that nobody guesses".replace(" ", "-")


@pytest.fixture
def echo(monkeypatch):
    """What is served in the place of whatever folder: a model that answers texts with themselves."""
    models = []

    def load(folder, threads, engine):
        models.append(Echo(**settings))
        return models[-1]

    settings = {}
    monkeypatch.setattr(served_models, "load_servable", load)
    monkeypatch.setattr(served_models, "check_answers", lambda servable, folder: None)
    return models, settings


def ask(server, *texts, path="/models/echo/predict", **options):
    return httpx.post(f"{server.url}{path}", json={"inputs": list(texts)}, timeout=PATIENCE, **options)


def answers(response):
    assert response.status_code == 200, response.text
    return response.json()["predictions"]


def test_many_callers_get_each_their_own_answer(echo, tmp_path):
    texts = [[f"{'x' * (number % 40)} {number} {part}" for part in range(1 + number % 5)] for number in range(400)]
    with served({"echo": tmp_path}) as server, httpx.Client(timeout=PATIENCE) as client, ThreadPoolExecutor(32) as pool:

        def one(given):
            return client.post(f"{server.url}/models/echo/predict", json={"inputs": given}).json()["predictions"]

        assert list(pool.map(one, texts)) == [[text.upper() for text in given] for given in texts]
    [model] = echo[0]
    assert max(map(len, model.batches)) > 1


def test_paddle_computes_one_batch_at_a_time(run_of, tmp_path):
    texts = [f"a good film {'great ' * (number % 5)}" for number in range(40)]
    with (
        served({"films": run_of("classification")}, engine="paddle", workers=2) as server,
        ThreadPoolExecutor(8) as pool,
    ):
        expected = {text: answers(ask(server, text, path="/models/films/predict")) for text in set(texts)}
        found = pool.map(lambda text: answers(ask(server, text, path="/models/films/predict")), texts)
        for text, answer in zip(texts, found, strict=True):
            assert answer[0]["probabilities"] == pytest.approx(expected[text][0]["probabilities"], abs=2e-6)


def test_what_8_bits_answer_does_not_depend_on_the_texts_beside_them(run_of, tmp_path):
    export(run_of("classification"), tmp_path / "small", int8="dynamic")
    predictor = Predictor.load(tmp_path / "small")
    texts = [f"a good film {'great ' * (number % 7)}" for number in range(60)]
    alone = {text: next(iter(predictor(predictor.task.text_rows([text])))) for text in set(texts)}
    with served({"films": tmp_path / "small"}, workers=2) as server, ThreadPoolExecutor(32) as pool:
        asked = [
            pool.submit(ask, server, *texts[place : place + 3], path="/models/films/predict") for place in range(57)
        ]
        for place, answer in enumerate(asked):
            expected = [alone[text] for text in texts[place : place + 3]]
            assert answers(answer.result(PATIENCE)) == expected


@pytest.mark.parametrize(
    "begun",
    [
        b"POST /models/echo/predict HTTP/1.1\r\nhost: localhost\r\n",
        b'POST /models/echo/predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 20\r\n\r\n{"inputs": ',
    ],
)
def test_a_request_that_does_not_arrive_is_cut_off_and_others_are_answered(begun, echo, tmp_path):
    limits = ServingLimits(seconds=0.1)
    with served({"echo": tmp_path}, limits=limits) as server:
        with closing(_connected(server)) as connection:
            connection.sendall(begun)
            answer = b""
            while part := connection.recv(1000):  # which ends: that is the test
                answer += part
        assert answer.startswith(b"HTTP/1.1 408")
        object.__setattr__(limits, "seconds", PATIENCE)  # a valid one may take longer on a busy machine
        assert answers(ask(server, "next")) == ["NEXT"]


def test_headers_that_are_too_long_end_the_connection(echo, tmp_path):
    with served({"echo": tmp_path}) as server, closing(_connected(server)) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 16_300)
        connection.sendall(b"a" * 200 + b"\r\n\r\n")
        with connection.makefile("rb") as answer:
            head = [answer.readline(), *(line.lower() for line in iter(answer.readline, b"\r\n"))]
    assert head[0].split()[1] in (b"431", b"400")  # by how it is cut on the way
    assert b"connection: close\r\n" in head


def test_a_full_queue_is_told_with_a_time(echo, tmp_path):
    echo[1]["is_open"] = False
    with served({"echo": tmp_path}, limits=ServingLimits(queue=2)) as server, ThreadPoolExecutor(4) as pool:
        [model] = echo[0]
        first = pool.submit(ask, server, "first")
        assert model.begun.acquire(timeout=PATIENCE)
        second = pool.submit(ask, server, "d", "e")
        _until(lambda: _metric(server, "onion_queue_rows") == 2)
        refused = ask(server, "a")
        assert refused.status_code == 429
        assert refused.json()["error_type"] == "overloaded"
        assert int(refused.headers["retry-after"]) >= 1
        never = ask(server, "a", "b", "c")
        assert (never.status_code, never.json()["error"]) == (413, "3 texts are more than 2, the most of one call.")
        model.open.set()
        assert [*answers(first.result(PATIENCE)), *answers(second.result(PATIENCE))] == ["FIRST", "D", "E"]


def test_calls_under_way_are_answered_when_the_service_ends(echo, tmp_path):
    echo[1]["is_open"] = False
    with ThreadPoolExecutor(4) as pool:
        with served({"echo": tmp_path}) as server:
            [model] = echo[0]
            computed = pool.submit(ask, server, "a")
            assert model.begun.acquire(timeout=PATIENCE)
            queued = pool.submit(ask, server, "b")
            _until(lambda: _metric(server, "onion_queue_rows") == 1)
            server.stop()
            model.open.set()
        assert [*answers(computed.result(PATIENCE)), *answers(queued.result(PATIENCE))] == ["A", "B"]
    with pytest.raises(httpx.ConnectError):
        ask(server, "late")


def test_an_answer_that_is_still_being_sent_when_the_service_ends_arrives_whole(echo, tmp_path, monkeypatch):
    long = "X" * 16_000_000  # more than the buffers of both ends take
    monkeypatch.setattr(Echo, "answer", lambda self, prepared: [long for _ in prepared])
    done = 'onion_http_requests_total{method="POST",path="/models/{name}/predict",status="200"}'
    with served({"echo": tmp_path}) as server, closing(_connected(server, receive_bytes=4096)) as connection:
        connection.sendall(_call(b'{"inputs": ["a"]}'))
        _until(lambda: _metric(server, done) == 1)
        server.stop()
        with connection.makefile("rb") as answer:
            head = answer.readline()
            lines = iter(answer.readline, b"\r\n")
            length = next(int(line.split()[1]) for line in [*lines] if line.lower().startswith(b"content-length"))
            assert head.startswith(b"HTTP/1.1 200")
            assert len(answer.read()) == length > len(long)


def test_a_second_signal_ends_the_service_at_once(echo, tmp_path):
    echo[1]["is_open"] = False
    with ThreadPoolExecutor(1) as pool:
        with served({"echo": tmp_path}, limits=ServingLimits(drain=10 * PATIENCE)) as server:
            [model] = echo[0]
            cut_off = pool.submit(ask, server, "a")
            assert model.begun.acquire(timeout=PATIENCE)
            handlers = server._answer_signals()
            try:
                signal.raise_signal(signal.SIGTERM)
                assert 0 < (until := server._until) < math.inf
                signal.raise_signal(signal.SIGTERM)  # or the block would end with an answer
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        assert server._until == until  # it ends no later for it
        model.open.set()
        with pytest.raises(httpx.HTTPError):
            cut_off.result(PATIENCE)


def test_a_caller_who_has_gone_is_dropped(echo, tmp_path, caplog):
    echo[1].update(is_open=False, alone=True)
    with served({"echo": tmp_path}) as server, ThreadPoolExecutor(2) as pool:
        [model] = echo[0]
        first = pool.submit(ask, server, "first")
        assert model.begun.acquire(timeout=PATIENCE)
        with closing(_connected(server)) as connection:
            connection.sendall(_call(json.dumps({"inputs": ["gone"] * 3}).encode()))
            _until(lambda: _metric(server, "onion_queue_rows") == 3)
        _until(
            lambda: (
                _metric(server, 'onion_http_requests_total{method="POST",path="/models/{name}/predict",status="499"}')
                == 1
            )
        )
        model.open.set()
        assert answers(first.result(PATIENCE)) == ["FIRST"]
        assert answers(ask(server, "next")) == ["NEXT"]
        assert model.batches == [["first"], ["next"]]
    assert not [each.getMessage() for each in caplog.records if each.name == "asyncio"]


def test_a_caller_who_goes_while_its_call_arrives_is_no_failure_of_the_service(echo, tmp_path):
    counted = 'onion_http_requests_total{{method="POST",path="/models/{{name}}/predict",status="{}"}}'
    with served({"echo": tmp_path}) as server:
        with closing(_connected(server)) as connection:
            connection.sendall(_call(b"{" + b" " * 19)[:-19])
        _until(lambda: _metric(server, counted.format(499)) == 1 or _metric(server, counted.format(500)))
        assert _metric(server, counted.format(500)) is None


def _connected(server, receive_bytes=None):
    """Return a socket that is connected to a service."""
    address = urlsplit(server.url)
    connection = socket.socket()
    connection.settimeout(PATIENCE)
    if receive_bytes is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.connect((address.hostname, address.port))
    return connection


def _call(body, path="/models/echo/predict", headers=""):
    """Return the bytes of a call."""
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _metric(server, name):
    lines = httpx.get(f"{server.url}/metrics", timeout=PATIENCE).text.splitlines()
    return next((float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == name), None)


def _until(condition):
    """Ask again and again, each time by a whole call, until it is so."""
    for _ in range(100_000):
        if condition():
            return
    raise AssertionError


def test_a_failing_model_fails_its_call_alone(echo, tmp_path):
    echo[1]["alone"] = True
    with served({"echo": tmp_path}) as server:
        failed = ask(server, "fail")
        assert (failed.status_code, failed.json()["error"]) == (500, "The service failed: RuntimeError; see its log.")
        assert answers(ask(server, "fine")) == ["FINE"]


def test_a_long_text_does_not_keep_others_from_the_event_loop(echo, monkeypatch, tmp_path):
    lock, long_began, short_came, release = threading.Lock(), threading.Event(), threading.Event(), threading.Event()
    prepare = Echo.prepare

    def slowly(self, given):  # as tokenizers do, which hold a lock
        if given == "short":
            short_came.set()
        with lock:
            if given != "short":
                long_began.set()
                assert release.wait(PATIENCE)
            return prepare(self, given)

    monkeypatch.setattr(Echo, "prepare", slowly)
    with served({"echo": tmp_path}) as server, ThreadPoolExecutor(2) as pool:
        long = pool.submit(ask, server, "x" * (AT_ONCE + 1))
        assert long_began.wait(PATIENCE)
        short = pool.submit(ask, server, "short")
        assert short_came.wait(PATIENCE)
        try:
            assert httpx.get(f"{server.url}/health", timeout=PATIENCE).status_code == 200
        finally:
            release.set()
        assert answers(short.result(PATIENCE)) == ["SHORT"]
        assert answers(long.result(PATIENCE)) == ["X" * (AT_ONCE + 1)]


def test_a_model_that_does_not_answer_each_row_fails_its_call_alone(echo, monkeypatch, tmp_path):
    answer = Echo.answer
    monkeypatch.setattr(Echo, "answer", lambda self, rows: [each for each in answer(self, rows) if each != "LOST"])
    with served({"echo": tmp_path}) as server:
        assert ask(server, "lost").status_code == 500
        assert answers(ask(server, "fine")) == ["FINE"]


def test_a_token_is_asked_for_but_not_of_probes(echo, tmp_path):
    with served({"echo": tmp_path}, token=TOKEN) as server:
        assert ask(server, "a").status_code == 401
        assert ask(server, "a", headers={"Authorization": "Bearer other-other-other-other"}).status_code == 401
        assert answers(ask(server, "a", headers={"Authorization": f"Bearer {TOKEN}"})) == ["A"]
        for path in ("/health", "/ready", "/v2/health/live", "/v2/health/ready"):
            assert httpx.get(f"{server.url}{path}", timeout=PATIENCE).status_code == 200
        for path in ("/metrics", "/models", "/info", "/v1/models", "/openapi.json"):
            assert httpx.get(f"{server.url}{path}", timeout=PATIENCE).status_code == 401
        assert httpx.get(server.url, timeout=PATIENCE).status_code == 200  # the page
        for path in ("/", "/ready", "/health"):  # what may be read without a token
            assert ask(server, "a", path=path).status_code == 401


def test_metrics(echo, tmp_path):
    with served({"echo": tmp_path}) as server:
        ask(server, "a", "bcd")
        assert _metric(server, 'onion_rows_total{model="echo"}') == 2
        assert _metric(server, 'onion_tokens_total{model="echo"}') == 4
        assert _metric(server, "onion_ready") == 1
        if sys.platform == "linux":
            assert _metric(server, "process_cpu_seconds_total") > 0


def test_calls_are_logged_without_their_texts(echo, tmp_path, caplog, monkeypatch):
    from onion.serving import call_log

    monkeypatch.setattr(call_log.log, "propagate", True)
    caplog.set_level("INFO", "onion.calls")
    with served({"echo": tmp_path}) as server:
        ask(server, "a secret")
    [line] = map(json.loads, {record.getMessage() for record in caplog.records if record.name == "onion.calls"})
    assert (line["path"], line["status"], line["model"], line["rows"], line["tokens"]) == (
        "/models/{name}/predict", 200, "echo", 1, 8,
    )  # fmt: skip
    assert "secret" not in json.dumps(line)


# -- exchange ----------------------------------------------------------------------------------------------------------


def test_a_model_is_exchanged_under_load_without_a_lost_or_mixed_answer(folders, run_of, tmp_path):
    """Versions take turns between two models, so that an answer of another version than it tells is seen."""
    link, texts = tmp_path / "films", ("a good film", "it", "a plot")
    link.symlink_to(folders("multilabel"))
    with served({"films": link, "tags": folders("token-classification")}, workers=2) as server:

        def exchange(kind):
            (tmp_path / "next").symlink_to(folders(kind))
            (tmp_path / "next").replace(link)
            return httpx.post(f"{server.url}/models/films/reload", timeout=PATIENCE).json()["version"]

        def ask_for(text):
            return ask(server, text, path="/models/films/predict")

        expected = {0: {text: answers(ask_for(text))[0] for text in texts}}
        assert exchange("classification") == 2
        expected[1] = {text: answers(ask_for(text))[0] for text in texts}
        done, errors, answered = threading.Event(), [], set()

        def load(text):
            while not done.is_set():
                response = ask_for(text)
                told = response.json()
                answered.add(told["version"] % 2)
                # Rows that are computed with others may be rounded otherwise.
                if response.status_code != 200 or not alike(
                    told["predictions"][0], expected[(told["version"] + 1) % 2][text]
                ):
                    errors.append(response.text)

        threads = [threading.Thread(target=load, args=(text,)) for text in texts for _ in range(2)]
        for thread in threads:
            thread.start()
        kinds = ["multilabel", "classification", "multilabel", "classification", "multilabel"]
        versions = [exchange(kind) for kind in kinds]
        done.set()
        for thread in threads:
            thread.join(PATIENCE)
        assert (versions, errors, answered) == ([3, 4, 5, 6, 7], [], {0, 1})


def wait_in_load(monkeypatch):
    """Let the next load wait; return what tells that it has begun, and what lets it go on."""
    loading, loaded, load = threading.Event(), threading.Event(), served_models.load_servable

    def slowly(*given):
        loading.set()
        assert loaded.wait(PATIENCE)
        return load(*given)

    monkeypatch.setattr(served_models, "load_servable", slowly)
    return loading, loaded


def test_while_a_model_is_loaded_again_the_old_one_answers_and_is_healthy(echo, monkeypatch, tmp_path):
    with served({"echo": tmp_path}) as server, ThreadPoolExecutor(1) as pool:
        loading, loaded = wait_in_load(monkeypatch)
        reload = pool.submit(httpx.post, f"{server.url}/models/echo/reload", timeout=PATIENCE)
        try:
            assert loading.wait(PATIENCE)
            assert [
                httpx.get(f"{server.url}/{probe}", timeout=PATIENCE).status_code for probe in ("health", "ready")
            ] == [200, 200]
            assert answers(ask(server, "a")) == ["A"]
            assert httpx.post(f"{server.url}/models/echo/reload", timeout=PATIENCE).status_code == 409
        finally:
            loaded.set()
        assert reload.result(PATIENCE).json()["version"] == 2
        assert _metric(server, 'onion_reloads_total{model="echo",result="failed"}') is None
        first, second = echo[0]
        assert answers(ask(server, "b")) == ["B"]
        assert (first.batches, second.batches[-1:]) == ([["a"]], [["b"]])


def test_a_version_that_was_exchanged_while_the_call_arrived_is_refused(echo, tmp_path):
    text = {"name": "text_a", "shape": [1], "datatype": "BYTES", "data": ["a"]}
    call = _call(
        json.dumps({"inputs": [text]}).encode(), "/v2/models/echo/versions/1/infer", "expect: 100-continue\r\n"
    )
    head, end, body = call.partition(b"\r\n\r\n")
    with served({"echo": tmp_path}) as server, closing(_connected(server)) as connection:
        connection.sendall(head + end)
        answer = connection.makefile("rb")
        assert answer.readline().startswith(b"HTTP/1.1 100")  # it reads the body now
        assert httpx.post(f"{server.url}/models/echo/reload", timeout=PATIENCE).json()["version"] == 2
        assert answer.readline() == b"\r\n"
        connection.sendall(body)
        assert answer.readline().startswith(b"HTTP/1.1 404")


def test_the_end_does_not_wait_for_a_model_that_is_loaded_again(echo, monkeypatch, tmp_path):
    loaded = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        try:
            with served({"echo": tmp_path}, limits=ServingLimits(drain=0.1)) as server:
                loading, loaded = wait_in_load(monkeypatch)
                reload = pool.submit(httpx.post, f"{server.url}/models/echo/reload", timeout=PATIENCE)
                assert loading.wait(PATIENCE)
        finally:
            loaded.set()
        assert reload.exception(PATIENCE) is not None or reload.result().status_code >= 500


def test_a_model_that_does_not_give_its_stored_answers_is_not_taken(folders, tmp_path):
    shutil.copytree(folders("classification"), tmp_path / "films")
    with served({"films": tmp_path / "films"}) as server:
        before = answers(ask(server, "a good film", path="/models/films/predict"))
        (tmp_path / "films" / "model.onnx").write_bytes(b"no model")
        refused = httpx.post(f"{server.url}/models/films/reload", timeout=PATIENCE)
        assert refused.status_code == 409
        assert "The model was not exchanged: " in refused.json()["error"]
        assert answers(ask(server, "a good film", path="/models/films/predict")) == before
        assert _metric(server, 'onion_reloads_total{model="films",result="failed"}') == 1
        shutil.rmtree(tmp_path / "films")
        shutil.copytree(folders("multilabel"), tmp_path / "films")
        assert httpx.post(f"{server.url}/models/films/reload", timeout=PATIENCE).json()["task"] == "multilabel"
        assert "labels" in answers(ask(server, "a good film", path="/models/films/predict"))[0]


def test_a_folder_that_is_gone_is_not_looked_for_elsewhere(echo, tmp_path, monkeypatch):
    folder = tmp_path / "exports" / "films"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(served_models.hub, "resolve", lambda name: pytest.fail("asked the hub"))
    with served({"echo": "exports/films"}) as server:
        folder.rmdir()
        refused = httpx.post(f"{server.url}/models/echo/reload", timeout=PATIENCE)
        assert (refused.status_code, "exports/films: the folder is gone" in refused.json()["error"]) == (409, True)
        server._reload_all()  # what SIGHUP does
        assert _metric(server, 'onion_reloads_total{model="echo",result="failed"}') == 2
        assert answers(ask(server, "a")) == ["A"]


# -- the start ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "settings", "message"),
    [
        ({}, {}, "there is no model to serve"),
        ({"a/b": "x"}, {}, "'a/b' cannot be part of an address"),
        ({"v1": "x"}, {}, "'v1' cannot be part of an address"),
        ({"echo": "nowhere"}, {}, "nowhere"),
        ({"echo": "x"}, {"host": "0.0.0.0"}, "without a token"),
        ({"echo": "x"}, {"token": "short"}, "fewer than 16 characters"),
    ],
)
def test_what_cannot_be_served_is_told_before(models, settings, message):
    with pytest.raises(OnionError, match=message):
        ModelServer(models, **{"port": 0, **settings})


def test_a_port_in_use_is_told(echo, tmp_path):
    with served({"echo": tmp_path}) as server, pytest.raises(OnionError, match="Choose another port"):
        ModelServer({"echo": tmp_path}, port=urlsplit(server.url).port)


def test_limits_are_checked():
    with pytest.raises(OnionError, match="ServingLimits: texts must be an integer > 0, got 0"):
        ServingLimits(texts=0)
