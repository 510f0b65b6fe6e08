import random
import socket
import subprocess
import sys
import threading

import pytest

from onion.errors import WeightsError
from onion.models.downloads import download as module
from onion.models.downloads.download import download
from tests.models.file_server import serving, without_proxies

CONTENT = random.Random(1).randbytes(5000)


@pytest.fixture
def server(monkeypatch):
    without_proxies(monkeypatch)
    with serving() as server:
        yield server


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.bin"


def names(path):
    return sorted(file.name for file in path.parent.iterdir())


def refused(url, path):
    """The message of a download that fails and leaves nothing behind; it is one line."""
    with pytest.raises(WeightsError) as caught:
        download(url, path)
    assert not path.parent.exists() or names(path) == []
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_fetches_a_file(server, path, capsys):
    path.write_bytes(b"old")
    download(server.publish("/m", CONTENT), path)
    assert path.read_bytes() == CONTENT
    assert names(path) == ["model.bin"]
    assert server.requests == ["/m"]
    assert capsys.readouterr().err == ""  # no terminal, no progress


def test_the_proxy_of_the_environment_is_asked(server, path, monkeypatch):
    server.publish("http://models.invalid/m", CONTENT)
    monkeypatch.setenv("http_proxy", server.address)
    download("http://models.invalid/m", path)
    assert path.read_bytes() == CONTENT


def test_what_was_cut_is_not_taken_for_whole(server, path):
    url = server.publish("/m", CONTENT, cuts=[1000])
    assert refused(url, path) == f"{url}: is incomplete, 4000 bytes are missing; download it again"
    download(url, path)
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("length", [6000, 0, None])
def test_what_is_not_as_long_as_it_says_is_refused(server, path, length):
    url = server.publish("/m", CONTENT, headers={"Content-Length": length})
    assert url in refused(url, path)


@pytest.mark.parametrize("status", [404, 401, 503])
def test_what_the_server_refuses(server, path, status):
    url = server.publish("/m", CONTENT, statuses=[status])
    assert f"{url}: HTTP {status} " in refused(url, path)


def test_redirects_are_followed_but_not_to_another_protocol(server, path):
    download(server.publish("/a", redirect=server.publish("/m", CONTENT)), path)
    assert path.read_bytes() == CONTENT
    path.unlink()
    assert "HTTP 302" in refused(server.publish("/a", redirect="/a"), path)
    assert "HTTP 302" in refused(server.publish("/a", redirect="file:///etc/passwd"), path)


def test_a_redirect_to_less_safety_is_refused(server, path, monkeypatch):
    split = module.urlsplit
    monkeypatch.setattr(module, "urlsplit", lambda url: split(url.replace(f"{server.address}/a", "https://safe/a")))
    url = server.publish("/a", redirect=server.publish("/m", CONTENT))
    assert refused(url, path) == f"{url}: redirects to {server.address}/m, which is not secure"


def test_nobody_there(path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and nobody listens
        assert "cannot be downloaded: " in refused(f"http://127.0.0.1:{unused.getsockname()[1]}/m", path)


def test_silence_has_an_end(server, path, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 0.05)
    released, find = threading.Event(), server.find
    monkeypatch.setattr(server, "find", lambda *asked: released.wait(30) and find(*asked))
    assert "cannot be downloaded: timed out" in refused(server.publish("/m", CONTENT), path)
    released.set()


def test_a_folder_that_is_not_there(server, tmp_path):
    assert "cannot be written" in refused(server.publish("/m", CONTENT), tmp_path / "none" / "m")


def test_what_a_killed_process_has_left_goes_with_the_next_download(server, path):
    program = """
import os, sys
from pathlib import Path
from onion.models.downloads import download
chunks = download._chunks
def killed(*given):
    yield next(chunks(*given))
    os.kill(os.getpid(), 9)
download._chunks = killed
download.download(sys.argv[1], Path(sys.argv[2]))
"""
    url = server.publish("/m", CONTENT)
    assert subprocess.run([sys.executable, "-c", program, url, str(path)], check=False).returncode == -9
    assert len(names(path)) == 1
    assert not path.exists()
    download(url, path)
    assert names(path) == ["model.bin"]
