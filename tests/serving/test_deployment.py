"""What the guide of serving says of proxies, containers and clusters: the commands are understood, the proxy works."""

import json
import re
import shlex
import shutil
import subprocess
import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn, UnixStreamServer

import httpx
import pytest
import yaml

from onion.cli.arguments import parser
from tests.paths import ROOT
from tests.patience import PATIENCE
from tests.serving.services import served

pytest.importorskip("onnxruntime")

PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
IMAGE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
ENTRY = json.loads(re.search(r"^ENTRYPOINT (.*)$", IMAGE, re.MULTILINE)[1])
TOKEN = "a-token-of-this-test"


class ThreadingUnixStreamServer(ThreadingMixIn, UnixStreamServer):
    """A thread for each connection."""


def block(kind):
    return re.search(rf"^```{kind}\n([\s\S]*?)^```$", PAGE, re.MULTILINE)[1]


def serving(arguments):
    """The arguments of a container, as `onion serve` understands them."""
    assert ENTRY[0] == "onion"
    return parser().parse_args([*ENTRY[1:], *arguments])


def test_the_container_serves_what_is_mounted():
    [line] = re.findall(r"^docker run .*$", PAGE, re.MULTILINE)
    words = shlex.split(line)
    options = serving(words[words.index("onion-serve") + 1 :])
    assert options.models == ["/films"]
    assert options.host == "0.0.0.0"
    assert f"EXPOSE {options.port}" in IMAGE


def test_a_pod_serves_until_the_cluster_knows_that_it_ends():
    [deployment] = yaml.safe_load_all(block("yaml"))
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    options = serving(container["args"])
    [program, seconds] = container["lifecycle"]["preStop"]["exec"]["command"]
    assert program == "sleep"
    assert pod["terminationGracePeriodSeconds"] > int(seconds) + options.drain
    assert {
        each["port"] for probe in ("livenessProbe", "readinessProbe") for each in [container[probe]["httpGet"]]
    } == {options.port}


@pytest.fixture
def proxied(folders, tmp_path):
    """A client of the guide's proxy, without TLS, before a service with a token."""
    if (nginx := shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")) is None:
        pytest.skip("no nginx (Debian: apt-get install nginx-light)")
    with ExitStack() as held, served({"films": folders("classification")}, token=TOKEN) as server:
        config, place = tmp_path / "nginx.conf", tmp_path / "socket"
        held.enter_context(_full(tmp_path / "full"))
        config.write_text(_config(str(httpx.URL(server.url).netloc.decode()), place, tmp_path))
        subprocess.run([nginx, "-c", config, "-p", tmp_path], check=True, timeout=PATIENCE)
        try:
            transport = httpx.HTTPTransport(uds=str(place))
            with httpx.Client(transport=transport, base_url="http://models.example.org", timeout=PATIENCE) as client:
                yield client
        finally:
            subprocess.run([nginx, "-c", config, "-p", tmp_path, "-s", "stop"], check=True, timeout=PATIENCE)


@contextmanager
def _full(place):
    """A service that has no room for any call, at a socket of the file system."""

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(429)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *told):
            pass

        def address_string(self):
            return "nginx"

    with ThreadingUnixStreamServer(str(place), Refusing) as server:
        place.chmod(0o777)  # nginx' workers have a user of their own
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join(PATIENCE)


def _config(service, place, folder):
    """The guide's block in a whole file, which listens at a socket of the file system."""
    own = re.sub(r"^ *(ssl_\w+|listen) .*\n", "", block("nginx"), flags=re.MULTILINE)
    own = own.replace("server {", f"server {{\n    listen unix:{place};")
    own = own.replace("server 127.0.0.1:8000", f"server unix:{folder / 'full'} max_fails=0; server {service}")
    paths = "\n".join(
        f"{name}_temp_path {folder / name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""
worker_processes 1;
pid {folder / "pid"};
error_log {folder / "errors"};
events {{ }}
http {{
access_log off;
{paths}
{own}
}}
"""


def test_callers_and_the_page_reach_the_service_through_the_proxy(proxied):
    body = {"inputs": "a good film"}
    token = {"Authorization": f"Bearer {TOKEN}"}
    assert proxied.post("/predict", json=body).status_code == 401
    assert proxied.post("/predict", json=body, headers=token).json()[0]["label"]
    assert proxied.get("/").status_code == 200
    of_page = {**token, "Origin": "https://models.example.org"}
    assert proxied.post("/models/films/predict", json={"inputs": ["a good film"]}, headers=of_page).status_code == 200
    for _ in range(20):  # half of them come to the service without room first
        assert proxied.post("/predict", json=body, headers=token).status_code == 200
    assert proxied.post("/models/films/reload", headers=token).status_code == 403
    foreign = {**token, "Origin": "https://elsewhere.example.org"}
    assert proxied.post("/models/films/predict", json={"inputs": ["a good film"]}, headers=foreign).status_code == 403
