import base64
import hashlib
import io
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from email.message import Message

import pytest

from onion.errors import WeightsError
from onion.models.downloads import download as module
from onion.models.downloads.answers import agreed_size, mirrored, range_of
from onion.models.downloads.download import ATTEMPTS, REDIRECTS, download
from tests.models.file_server import serving, without_proxies
from tests.patience import PATIENCE

CONTENT = random.Random(1).randbytes(5000)
OTHER = random.Random(2).randbytes(4000)


@pytest.fixture
def server(monkeypatch):
    without_proxies(monkeypatch)
    monkeypatch.setattr(module, "PAUSE", 0)
    with serving() as server:
        yield server


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.bin"


def names(path):
    return sorted(file.name for file in path.parent.iterdir())


def refused(url, path, **options):
    """The message of a download that fails and leaves no file behind; it is one line."""
    with pytest.raises(WeightsError) as caught:
        download(url, path, **options)
    assert not path.exists()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def given_up(server, path, **quirks):
    """A download that fails after 1200 bytes, which are kept."""
    url = server.publish("/m", CONTENT, cuts=[1200, *[0] * ATTEMPTS], **quirks)
    assert "cut after 1200 of 5000 bytes; given up, 1200 bytes are kept" in refused(url, path)
    server.files["/m"].cuts = []
    server.requests.clear()
    return url


# -- whole -------------------------------------------------------------------------------------------------------------


def test_fetches_a_file(server, path, capsys):
    assert download(server.publish("/m", CONTENT), path) == path
    assert path.read_bytes() == CONTENT
    assert names(path) == ["model.bin"]
    assert server.requests == [("/m", None)]
    assert capsys.readouterr().err == ""  # no terminal, no progress


@pytest.mark.parametrize("quirks", [{"chunked": True}, {"etag": None}, {"content": b""}])
def test_fetches_what_is_sent_otherwise(server, path, quirks):
    server.publish("/m", **({"content": CONTENT} | quirks))
    assert download(server.address + "/m", path).read_bytes() == quirks.get("content", CONTENT)
    assert names(path) == ["model.bin"]


def test_a_file_that_is_there_is_replaced_at_the_end_only(server, path):
    path.write_bytes(b"old")
    url = server.publish("/m", CONTENT, cuts=[100], before=lambda: seen.append(path.read_bytes()))
    seen = []
    download(url, path)
    assert seen == [b"old", b"old"]
    assert path.read_bytes() == CONTENT


def test_shows_progress_on_a_terminal(server, path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    download(server.publish("/m", CONTENT), path)
    assert "model.bin" in shown.getvalue()
    assert "5.00k" in shown.getvalue()
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    download(server.address + "/m", path, quiet=True)
    assert shown.getvalue() == ""


def test_the_proxy_of_the_environment_is_asked(server, path, monkeypatch):
    server.publish("http://models.invalid/m", CONTENT)
    monkeypatch.setenv("http_proxy", server.address)
    assert download("http://models.invalid/m", path).read_bytes() == CONTENT


# -- cut ---------------------------------------------------------------------------------------------------------------


def test_goes_on_after_cuts(server, path):
    url = server.publish("/m", CONTENT, cuts=[0, 1000, 1, 2000])
    assert download(url, path).read_bytes() == CONTENT
    assert server.ranges() == [None, None, "bytes=1000-", "bytes=1001-", "bytes=3001-"]
    assert names(path) == ["model.bin"]


def test_a_cut_in_chunks_is_noticed(server, path):
    url = server.publish("/m", CONTENT, chunked=True, cuts=[300])
    assert download(url, path).read_bytes() == CONTENT
    assert len(server.requests) == 2


def test_many_cuts_are_no_reason_to_give_up_but_attempts_end(server, path, monkeypatch):
    url = server.publish("/m", CONTENT, cuts=[100] * 49)
    assert download(url, path).read_bytes() == CONTENT
    monkeypatch.setattr(module, "REQUESTS", 20)
    server.publish("/m", CONTENT, cuts=[1] * 200)
    server.requests.clear()
    path.unlink()
    refused(url, path)
    assert len(server.requests) == module.REQUESTS


def test_a_later_call_goes_on(server, path):
    url = given_up(server, path)
    assert names(path) == [".model.bin.part", ".model.bin.part.json"]
    assert download(url, path).read_bytes() == CONTENT
    assert server.ranges() == ["bytes=1200-"]
    assert names(path) == ["model.bin"]


def test_a_killed_process_leaves_what_can_be_taken_up(server, path):
    """It is killed where it has just said how much is safe; that much is taken up."""
    url = server.publish("/m", CONTENT)
    program = """
import sys
from pathlib import Path
from onion.models.downloads import download
download.BLOCK, download.SYNC_EVERY = 100, 1000
save = download._Transfer._save
def save_and_say(*args):
    done = save(*args)
    if done == 3000:
        print(done, flush=True)
        sys.stdin.readline()
    return done
download._Transfer._save = save_and_say
download.download(sys.argv[1], Path(sys.argv[2]))
"""
    command = [sys.executable, "-c", program, url, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "3000\n"
        process.send_signal(signal.SIGKILL)
    server.requests.clear()
    assert not path.exists()
    assert download(url, path).read_bytes() == CONTENT
    assert server.ranges() == ["bytes=3000-"]


def test_what_was_whole_but_not_in_place_yet_is_not_fetched_again(server, path, monkeypatch):
    url = server.publish("/m", CONTENT)
    with monkeypatch.context() as patch:
        patch.setattr(module._Transfer, "_is_whole", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            download(url, path)
    assert not path.exists()
    assert download(url, path).read_bytes() == CONTENT
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "notes",
    ["", "{", "[]", '{"other": 1}', None, {"done": 9999}, {"url": "http://other.invalid/m"}, {"validator": None}],
)
def test_with_doubtful_notes_it_starts_anew(server, path, notes):
    url = given_up(server, path)
    file = path.with_name(".model.bin.part.json")
    if isinstance(notes, dict):
        notes = json.dumps(json.loads(file.read_text()) | notes)
    file.unlink() if notes is None else file.write_text(notes)
    assert download(url, path).read_bytes() == CONTENT
    assert server.ranges() == [None]
    assert names(path) == ["model.bin"]


# -- a file that is not the same any more ------------------------------------------------------------------------------


def test_a_server_without_ranges_starts_anew(server, path):
    url = given_up(server, path)
    server.files["/m"].ranges = False
    assert download(url, path).read_bytes() == CONTENT
    assert server.ranges() == ["bytes=1200-"]


@pytest.mark.parametrize("content", [OTHER, OTHER[:1000], CONTENT[:1200], OTHER + CONTENT, CONTENT[::-1]])
@pytest.mark.parametrize("if_range", [True, False])  # not heeding it, the server sends a part of another file
def test_another_file_of_another_etag_starts_anew(server, path, content, if_range):
    url = given_up(server, path)
    server.publish("/m", content, etag='"2"', if_range=if_range)
    assert download(url, path).read_bytes() == content
    assert len(server.requests) <= 2


def test_a_server_without_ranges_that_cuts_every_time_comes_to_an_end(server, path):
    url = server.publish("/m", CONTENT, ranges=False, cuts=[1000] * 50)
    assert "given up" in refused(url, path)
    assert len(server.requests) == ATTEMPTS + 1


def test_another_size_of_the_same_etag_starts_anew(server, path):
    url = given_up(server, path)
    server.publish("/m", OTHER)
    assert download(url, path).read_bytes() == OTHER
    assert server.ranges() == ["bytes=1200-", None]


def test_another_part_than_the_one_asked_for_starts_anew(server, path):
    url = given_up(server, path)
    server.files["/m"].shift = 100
    assert download(url, path).read_bytes() == CONTENT
    assert server.ranges() == ["bytes=1200-", None]


def test_what_lies_behind_the_safe_part_is_cut_off(server, path):
    url = given_up(server, path)
    with path.with_name(".model.bin.part").open("ab") as file:
        file.write(bytes(9000))
    assert download(url, path).read_bytes() == CONTENT
    assert server.ranges() == ["bytes=1200-"]


@pytest.mark.parametrize("etag", [None, 'W/"1"'])
def test_nothing_is_taken_up_that_cannot_be_known_again(server, path, etag):
    url = server.publish("/m", CONTENT, etag=etag, cuts=[1200])
    assert download(url, path).read_bytes() == CONTENT
    assert server.ranges() == [None, None]


def test_the_date_of_the_last_change_will_do(server, path):
    date = "Wed, 21 Oct 2015 07:28:00 GMT"
    url = server.publish("/m", CONTENT, etag=None, headers={"Last-Modified": date}, cuts=[1200], if_range=False)
    assert download(url, path).read_bytes() == CONTENT
    assert server.ranges() == [None, "bytes=1200-"]


# -- wrong lengths and checksums ---------------------------------------------------------------------------------------


def test_less_than_was_promised_is_never_whole(server, path):
    url = server.publish("/m", CONTENT, length=6000)
    assert "given up" in refused(url, path)
    assert len(server.requests) <= 2 * ATTEMPTS


def test_another_length_than_the_known_one_is_refused(server, path):
    url = server.publish("/m", CONTENT, length=4000)
    assert "has 4000 bytes, not the 5000 that were published" in refused(url, path, size=5000)
    assert len(server.requests) == 1
    assert names(path) == []


@pytest.mark.parametrize("size", [100, 6000])
def test_chunks_have_to_come_to_the_known_length(server, path, size):
    url = server.publish("/m", CONTENT, chunked=True)
    assert "given up" in refused(url, path, size=size)
    assert len(server.requests) <= ATTEMPTS + 1


def test_without_any_length_it_is_refused(server, path):
    url = server.publish("/m", CONTENT, length="none")
    assert "nobody can tell when it is whole" in refused(url, path)
    assert download(url, path, sha256=hashlib.sha256(CONTENT).hexdigest()).read_bytes() == CONTENT


@pytest.mark.parametrize("length", ["²", "+5000", "5_000", "9" * 5000])
def test_a_length_that_is_none_is_passed_over(length):
    headers = Message()
    headers["Content-Length"] = length
    assert agreed_size("http://h/m", None, None, headers) is None
    assert agreed_size("http://h/m", 5000, length, headers) == 5000
    headers["Content-Range"] = f"bytes 0-1/{length}"
    assert range_of(headers) == (0, 0, 0)


def checksums(content):
    md5 = base64.b64encode(hashlib.md5(content).digest()).decode()
    return [{"X-Linked-ETag": f'"{hashlib.sha256(content).hexdigest()}"'}, {"Content-MD5": md5}]


@pytest.mark.parametrize("kind", [0, 1])
def test_checksums_that_the_server_tells_are_checked(server, path, kind):
    url = server.publish("/m", CONTENT, headers=checksums(CONTENT)[kind])
    assert download(url, path).read_bytes() == CONTENT
    path.unlink()
    server.publish("/m", CONTENT, headers=checksums(OTHER)[kind])
    assert "another checksum" in refused(url, path)
    assert names(path) == []


def test_a_known_checksum_counts_more_than_a_told_one(server, path):
    url = server.publish("/m", CONTENT, headers=checksums(CONTENT)[0])
    assert "another checksum" in refused(url, path, sha256="0" * 64)
    assert names(path) == []


@pytest.mark.parametrize("headers", [{"X-Linked-ETag": '"abc"'}, {"Content-MD5": "?"}, {"Content-MD5": "YWJj"}])
def test_what_is_no_checksum_is_passed_over(server, path, headers):
    assert download(server.publish("/m", CONTENT, headers=headers), path).read_bytes() == CONTENT


def test_checksum_and_size_told_by_a_redirect_are_checked(server, path):
    linked = {**checksums(CONTENT)[0], "X-Linked-Size": "5000"}
    url = server.publish("/a", redirect="/m", headers=linked)
    server.publish("/m", CONTENT, cuts=[500])
    assert download(url, path).read_bytes() == CONTENT
    path.unlink()
    server.publish("/m", bytes(5000))
    assert "another checksum" in refused(url, path)
    server.publish("/m", OTHER)
    assert "has 4000 bytes, not the 5000" in refused(url, path)


def test_a_part_that_became_wrong_on_the_disk_is_fetched_again(server, path):
    url = given_up(server, path, headers=checksums(CONTENT)[0])
    path.with_name(".model.bin.part").write_bytes(bytes(1200))
    assert download(url, path).read_bytes() == CONTENT
    assert server.ranges() == ["bytes=1200-", None]


def test_compression_that_was_not_asked_for_is_refused(server, path):
    url = server.publish("/m", CONTENT, headers={"Content-Encoding": "gzip"})
    assert "comes as gzip" in refused(url, path)


def test_it_does_not_go_on_for_ever(server, path, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 4000)
    assert "goes on after 4000 bytes" in refused(server.publish("/m", CONTENT, chunked=True), path)


# -- redirects ---------------------------------------------------------------------------------------------------------


def test_redirects_are_followed_and_resumed_through(server, path):
    url = server.publish("/a", redirect="/b", etag=None)
    server.publish("/b", redirect=server.address + "/m", etag=None)
    server.publish("/m", CONTENT, cuts=[1000])
    assert download(url, path).read_bytes() == CONTENT
    assert server.requests[-1] == ("/m", "bytes=1000-")


def test_redirects_end(server, path):
    assert "HTTP 302" in refused(server.publish("/a", redirect="/a"), path)
    server.requests.clear()
    for number in range(50):
        server.publish(f"/{number}", redirect=f"/{number + 1}")
    assert "HTTP 302" in refused(server.address + "/0", path)
    assert len(server.requests) == REDIRECTS + 1


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://127.0.0.1/m", "data:,abc"])
def test_redirects_lead_to_http_only(server, path, place):
    url = server.publish("/a", redirect=place)
    assert place.partition(":")[0] in refused(url, path)


@pytest.mark.parametrize("place", ["http://[::bad/", "http://127.0.0.1:x/m"])
def test_redirects_to_what_is_no_address(server, path, place):
    url = server.publish("/a", redirect=place)
    message = refused(url, path)
    assert f"{url}: sends us on to {place}, which is" in message
    assert "no address" in message
    assert len(server.requests) == 1


@pytest.mark.parametrize(("old", "new"), [("https", "http"), ("https", "file"), ("http", "file")])
def test_redirects_to_less_safety_are_refused(old, new):
    body = io.BytesIO()
    with pytest.raises(WeightsError, match=rf"sends us on to {new}://b.invalid/, which is not safe"):
        module._Redirects().redirect_request(
            urllib.request.Request(f"{old}://a.invalid/"), body, 302, "Found", {}, f"{new}://b.invalid/"
        )
    assert body.closed


# -- no use ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "requests"), [(404, 1), (401, 1), (403, 1), (503, ATTEMPTS), (429, ATTEMPTS)])
def test_what_may_pass_is_tried_again_a_few_times(server, path, status, requests):
    url = server.publish("/m", CONTENT, statuses=[status] * 20)
    assert f"{url}: HTTP {status} " in refused(url, path)
    assert len(server.requests) == requests


def test_what_passes_has_passed(server, path):
    assert download(server.publish("/m", CONTENT, statuses=[503, 500]), path).read_bytes() == CONTENT


def test_nobody_there(server, path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and nobody listens
        assert "cannot be reached" in refused(f"http://127.0.0.1:{unused.getsockname()[1]}/m", path)


def test_no_network(server, path, monkeypatch):
    def lookup(*args, **kwargs):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    assert "cannot be reached: [Errno -2] Name or service not known" in refused("https://models.invalid/m", path)


def test_silence_has_an_end(server, path, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 0.05)
    monkeypatch.setattr(module, "ATTEMPTS", 2)
    released = threading.Event()
    url = server.publish("/m", CONTENT, before=lambda: released.wait(PATIENCE))
    assert "timed out; given up" in refused(url, path)
    released.set()


def test_a_folder_that_is_not_there(server, tmp_path):
    assert "cannot be written" in refused(server.publish("/m", CONTENT), tmp_path / "none" / "m")


ODD = ["file:///etc/passwd", "ftp://127.0.0.1/m", "model.bin", "http:///m"]
BAD = ["http://[::bad", "http://127.0.0.1:99999999/m", "http://127.0.0.1:x/m", "http://a b/m", "http://h/a b"]
BAD += ["http://h/\n", "http://中/m", "http://h/中"]


@pytest.mark.parametrize("url", [*ODD, *BAD])
def test_only_http(path, url):
    with pytest.raises(WeightsError, match="not an http or https address"):
        download(url, path)


def test_mirrored():
    url = "https://huggingface.co/a/b/resolve/main/c?d=e"
    assert mirrored(url, None) == url
    assert mirrored(url, "http://127.0.0.1:80") == "http://127.0.0.1:80/a/b/resolve/main/c?d=e"
    assert mirrored(url, "https://mirror.example.org/hf/") == "https://mirror.example.org/hf/a/b/resolve/main/c?d=e"
    for mirror in ("", "mirror.example.org", "ftp://mirror.example.org", "https://", "https://a.b?c", "/mirror", *BAD):
        with pytest.raises(WeightsError, match="not the address of a mirror"):
            mirrored(url, mirror)
