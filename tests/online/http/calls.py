"""Calls as any client makes them, with the standard library."""

import http.client
import json
import socket
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

from tests.online.http.memory_run import TOKEN
from tests.patience import PATIENCE


def call(service, method, path, body=None, *, token=TOKEN, headers=(), host=None):
    """Return the status, the headers and the body; JSON is parsed."""
    given = dict(headers)
    if token is not None:
        given.setdefault("Authorization", f"Bearer {token}")
    if host is not None:
        given["Host"] = host
    if isinstance(body, dict | list):
        body = json.dumps(body)
    with closing(http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=PATIENCE)) as connection:
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        content = answer.read()
        if answer.headers.get_content_type() == "application/json":
            content = json.loads(content)
        return answer.status, answer.headers, content


@contextmanager
def dialled(service):
    """Yield a socket that is connected."""
    address = urlsplit(service.url)
    with socket.create_connection((address.hostname, address.port), PATIENCE) as connection:
        yield connection


def rest(connection):
    """Return what arrives until the other side closes the connection."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


@contextmanager
def streaming(service, token=TOKEN):
    """Yield the response of /events, which has begun."""
    with closing(http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=PATIENCE)) as connection:
        connection.request("GET", "/events", headers={"Authorization": f"Bearer {token}"})
        with connection.getresponse() as answer:
            assert answer.status == 200
            yield answer


@contextmanager
def listening(service, token=TOKEN):
    """Yield the events of /events as they arrive: kind, JSON."""
    with streaming(service, token) as answer:
        yield events_of(answer)


def events_of(lines):
    kind = None
    for line in lines:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)
