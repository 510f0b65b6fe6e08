"""A real HTTP server on this machine that behaves badly when told to."""

import re
import threading
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import attrs

from tests.patience import PATIENCE

PROXIES = ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy"]


@attrs.define
class Published:
    """A file of the server.

    Attributes:
        content: the file.
        headers: further headers of every answer.
        etag: of the file; None: none is sent.
        ranges: whether Range is heeded; if_range: whether If-Range is, too.
        shift: send from so many bytes before what was asked for.
        statuses: answered first, one a request.
        cuts: the bodies of the next answers end after so many bytes, one a request.
        length: Content-Length if it is not the truth; ``none``: none is sent.
        chunked: send it in chunks.
        redirect: answer with a redirect there.
        before: called before each answer.
    """

    content: bytes = b""
    headers: dict = attrs.field(factory=dict)
    etag: str | None = '"1"'
    ranges: bool = True
    if_range: bool = True
    shift: int = 0
    statuses: list = attrs.field(factory=list)
    cuts: list = attrs.field(factory=list)
    length: int | str | None = None
    chunked: bool = False
    redirect: str | None = None
    before: Callable[[], None] = lambda: None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE

    def do_GET(self):
        self.close_connection = True
        self.server.requests.append((self.path, self.headers.get("Range")))
        file = self.server.files.get(self.path)
        if file is None:
            self.send_error(404)
            return
        file.before()
        if file.statuses:
            self.send_error(file.statuses.pop(0))
        elif file.redirect is not None:
            self.head(302, file, {"Location": file.redirect, "Content-Length": "0"})
        else:
            self.answer(file)

    def answer(self, file):
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        same = not file.if_range or self.headers.get("If-Range") == file.etag
        begin = int(found[1]) - file.shift if found and file.ranges and same else 0
        if begin > len(file.content):
            self.send_error(416)
            return
        body, size = file.content[begin:], len(file.content)
        headers = {"Content-Length": file.length or len(body)}
        if begin:
            headers["Content-Range"] = f"bytes {begin}-{size - 1}/{size}"
        if file.chunked:
            headers = {"Transfer-Encoding": "chunked"}
            body = b"".join(b"%x\r\n%s\r\n" % (len(body[i : i + 7]), body[i : i + 7]) for i in range(0, len(body), 7))
            body += b"0\r\n\r\n"
        if file.length == "none":
            headers = {}
        self.head(206 if begin else 200, file, headers)
        self.wfile.write(body[: file.cuts.pop(0)] if file.cuts else body)

    def head(self, status, file, headers):
        self.send_response(status)
        for name, value in {**headers, **file.headers, **({"ETag": file.etag} if file.etag else {})}.items():
            self.send_header(name, str(value))
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    """Attributes: files, path -> Published; requests, (path, Range) as they came; address."""

    daemon_threads = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.requests = {}, []
        self.address = f"http://127.0.0.1:{self.server_address[1]}"

    def publish(self, path, content=b"", **quirks):
        self.files[path] = Published(content, **quirks)
        return self.address + path

    def ranges(self):
        return [asked for _, asked in self.requests]

    def handle_error(self, request, client_address):  # a client that went away
        pass


@contextmanager
def serving():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def without_proxies(monkeypatch):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
