"""A real HTTP server on this machine that behaves badly when told to."""

import threading
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
        headers: further headers of every answer; a Content-Length here takes the place of the true one.
        statuses: answered first, one a request.
        cuts: the bodies of the next answers end after so many bytes, one a request.
        redirect: answer with a redirect there.
        status: of the answer that has the content.
    """

    content: bytes = b""
    headers: dict = attrs.field(factory=dict)
    statuses: list = attrs.field(factory=list)
    cuts: list = attrs.field(factory=list)
    redirect: str | None = None
    status: int = 200


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; the server's ``find`` says with which file."""

    timeout = PATIENCE

    def do_GET(self):
        self.server.requests.append(self.path)
        self.respond(self.server.find(self.path, self.headers))

    def respond(self, file):
        if file is None:
            self.head(404, {"Content-Length": 0})
        elif file.statuses:
            self.head(file.statuses.pop(0), {**file.headers, "Content-Length": 0})
        elif file.redirect is not None:
            self.head(302, {**file.headers, "Location": file.redirect, "Content-Length": 0})
        else:
            self.answer(file)

    do_HEAD = do_GET  # noqa: N815

    def answer(self, file):
        self.head(file.status, {"Content-Length": len(file.content), **file.headers})
        if self.command != "HEAD":
            self.wfile.write(file.content[: file.cuts.pop(0)] if file.cuts else file.content)

    def head(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, str(value))
        self.end_headers()

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    """Attributes: files, path -> Published; requests, paths as they came; address; handler, the class of handlers."""

    daemon_threads = False
    handler = Handler

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.handler)
        self.files, self.requests = {}, []
        self.address = f"http://127.0.0.1:{self.server_address[1]}"

    def find(self, path, headers):
        return self.files.get(path)

    def publish(self, path, content=b"", **quirks):
        self.files[path] = Published(content, **quirks)
        return self.address + path

    def handle_error(self, request, client_address):  # a client that went away
        pass


@contextmanager
def serving(kind=Server):
    with kind() as server:
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
