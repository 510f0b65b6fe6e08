"""``onion serve`` as a process: it answers, loads again at SIGHUP, and ends at SIGTERM with all calls answered."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from onion.cli.serving import _named
from tests.patience import PATIENCE
from tests.tasks.export.conftest import run_of  # noqa: F401  a fixture
from tests.tasks.test_without_paddle import NO_PADDLE

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(run_of, tmp_path_factory):  # noqa: F811
    from onion.tasks.export.export import export

    folder = tmp_path_factory.mktemp("served") / "films"
    export(run_of("classification"), folder)
    return folder


@contextmanager
def serving(*words, code=NO_PADDLE):
    """A service in a process that cannot import Paddle; yield the process and its address."""
    command = [
        sys.executable,
        "-c",
        f"{code}\nfrom onion.cli import main\nsys.exit(main({['serve', *map(str, words)]!r}))",
    ]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=env, **streams) as process:
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), process.stderr.read()
            yield process, url
        finally:
            process.kill()


def ask(url, text, name="films"):
    return httpx.post(f"{url}/models/{name}/predict", json={"inputs": [text]}, timeout=PATIENCE)


def test_it_serves_without_paddle_and_ends_at_sigterm(model):
    with serving(model, "--port", 0, "--log-calls") as (process, url):
        assert ask(url, "a good film").json()["predictions"][0].keys() == {"label", "probabilities"}
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    calls = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    assert [(call["path"], call["status"]) for call in calls] == [("/models/{name}/predict", 200)]


def statuses_logged(told):
    """How many calls had which status, as the service's log of calls says."""
    return Counter(json.loads(line)["status"] for line in told.splitlines() if line.startswith("{"))


def test_every_call_that_was_taken_is_answered_when_it_ends(model):
    with (
        serving(f"films={model}", "--port", 0, "--log-calls") as (process, url),
        ThreadPoolExecutor(8) as pool,
        httpx.Client(timeout=PATIENCE) as client,
    ):

        def one(number):
            try:
                return client.post(
                    f"{url}/models/films/predict", json={"inputs": [f"a good film {number}"]}
                ).status_code
            except httpx.TransportError:  # it came after the end: the log knows nothing of it
                return None

        calls = [pool.submit(one, number) for number in range(64)]
        assert calls[0].result(PATIENCE) == 200
        process.send_signal(signal.SIGTERM)
        statuses = Counter(call.result(PATIENCE) for call in calls)
        _, told = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    del statuses[None]
    assert set(statuses) <= {200, 503}
    logged = statuses_logged(told)
    del logged[499]  # it had not arrived as a whole when the service ended
    assert logged == statuses


def test_a_call_under_way_at_sigterm_is_answered(model):
    texts = [f"a good film {number}" for number in range(10_000)]
    words = [
        "--port",
        0,
        "--drain",
        PATIENCE,
        "--max-texts",
        len(texts),
        "--max-tokens",
        1_000_000,
        "--queue",
        len(texts),
    ]
    with serving(f"films={model}", *words) as (process, url), ThreadPoolExecutor(1) as pool:

        def call():
            return pool.submit(httpx.post, f"{url}/models/films/predict", json={"inputs": texts}, timeout=PATIENCE)

        answer = call()
        while "onion_queue_rows 0.0" in httpx.get(f"{url}/metrics", timeout=PATIENCE).text:
            if answer.done():  # nobody looked while its rows waited: another one
                assert answer.result().status_code == 200
                answer = call()
        process.send_signal(signal.SIGTERM)
        found = answer.result(PATIENCE)
        assert process.wait(PATIENCE) == 0
    assert found.status_code == 200
    assert len(found.json()["predictions"]) == len(texts)


def test_sighup_loads_models_again(model, tmp_path):
    shutil.copytree(model, tmp_path / "films")
    with serving(tmp_path / "films", "--port", 0) as (process, url):
        assert httpx.get(f"{url}/models/films", timeout=PATIENCE).json()["version"] == 1
        process.send_signal(signal.SIGHUP)
        for line in process.stderr:
            if "was loaded again" in line:
                break
        assert httpx.get(f"{url}/models/films", timeout=PATIENCE).json()["version"] == 2
        assert ask(url, "a good film").status_code == 200


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere"),
        (["a/b=x"], "cannot be part of an address"),
        (["one/export", "two/export"], "two models have the name 'export'; give another one: NAME=DIR"),
        (["--host", "0.0.0.0", "x"], "without a token"),
        (["--token-file", "nowhere", "x"], "cannot read the token"),
    ],
)
def test_what_cannot_be_served_is_told_in_a_sentence(words, message, tmp_path):
    for folder in ("one/export", "two/export"):
        (tmp_path / folder).mkdir(parents=True)
    command = [sys.executable, "-m", "onion", "serve", "--port", "0", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_model_has_the_name_of_its_folder_or_link(tmp_path):
    for folder in ("films-2", "lr=0.1"):
        (tmp_path / folder).mkdir()
    (tmp_path / "films").symlink_to("films-2")
    for given, name in (
        (tmp_path / "films-2", "films-2"),
        (tmp_path / "films", "films"),
        (tmp_path / "lr=0.1", "lr=0.1"),
    ):
        assert _named(str(given)) == (name, str(given))
    assert _named("films=ada/films") == ("films", "ada/films")
    assert _named("minilm") == ("minilm", "minilm")
