"""``onion ctl``: watch and control a run through its ControlServer; HTTP is imported when a command needs it."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit
from uuid import uuid4

from onion.cli.flags import assignment
from onion.cli.parser import Parser
from onion.cli.values import natural, read
from onion.errors import DataError, OnionError
from onion.validation import Check

if TYPE_CHECKING:
    from onion.cli.remote import Remote

log = logging.getLogger("onion")

DEFAULT_URL = "http://127.0.0.1:8765"
SAMPLES_PER_CALL = 500
_wait = partial(read, Check("a number of seconds from 0 to 60", lambda value: 0 <= value <= 60, reads=float))


def add_actions(command: argparse.ArgumentParser, debug: argparse.ArgumentParser) -> None:
    """Add the actions of the command."""
    actions = command.add_subparsers(required=True, metavar="ACTION", dest="action")
    remote = Parser(add_help=False)
    remote.add_argument("--url", help=f"address of the service (default: $ONION_URL, or {DEFAULT_URL})")
    # The token itself is never an argument: every user of the machine could read it in the list of processes.
    where = "file with the token, readable by its owner only (default: $ONION_TOKEN)"
    remote.add_argument("--token-file", type=Path, metavar="FILE", help=where)
    waiting = Parser(add_help=False)
    wait = "time to wait for the answer, at most 60; the command stays queued (default: %(default)s)"
    waiting.add_argument("--timeout", type=_wait, default=30.0, metavar="SECONDS", help=wait)

    def add(name: str, text: str, function: Callable[..., int], *more: Parser) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=text, description=text, parents=[debug, remote, *more])
        action.set_defaults(command=function)
        return action

    add("status", "show the state of the run", look)
    add("show", "show the runner, with the time of each item", look)
    add("metrics", "show the metrics in the Prometheus text format", look)
    add("events", "follow the events, one JSON line each", events)
    add("pause", "pause before the next batch", steer, waiting)
    add("resume", "resume a paused run", steer, waiting)
    stepping = add("step", "run some batches, then pause", step, waiting)
    stepping.add_argument("n", nargs="?", type=natural, default=1, metavar="N", help="batches (default: 1)")
    add("save", "write a checkpoint", steer, waiting)
    add("test", "run the testers", steer, waiting)
    stopping = add("stop", "end the run", stop, waiting)
    stopping.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    stopping.add_argument("--why", metavar="TEXT", help="reason, stored in the journal")
    setting = add("set", "change settings, such as learning_rate=0.001", change, waiting)
    setting.add_argument("settings", nargs="+", type=assignment, metavar="NAME=VALUE")
    for name, text in (("enable", "enable an item"), ("disable", "disable an item")):
        switching = add(name, text, switch, waiting)
        switching.add_argument("item", metavar="ITEM", help="name of the item in the onion")
    sending = add("samples", "add samples to the stream", samples)
    sending.add_argument("file", metavar="FILE", help="JSON lines; -: standard input")
    predicting = add("predict", "predict with the newest snapshot", predict)
    text = "JSON lines (default: -, standard input)"
    predicting.add_argument("file", nargs="?", default="-", metavar="FILE", help=text)


def look(options: argparse.Namespace) -> int:
    """Print the answer of ``/status``, ``/onion`` (the action ``show``) or ``/metrics``."""
    path = "onion" if options.action == "show" else options.action
    answer = _service(options).call("GET", f"/{path}")
    print(answer if isinstance(answer, str) else _line(answer))
    return 0


def events(options: argparse.Namespace) -> int:
    """Print the events, a JSON line each, until the run ends."""
    from onion.cli.remote import SILENCE_SECONDS, LostError

    service, state = _service(options), None
    with service.opened("GET", "/events", seconds=SILENCE_SECONDS) as stream:
        for event in _events(stream):
            print(_line(event), flush=True)
            state = event.get("state", state)
    if state != "ended":  # the last event of a run
        raise LostError(service.url, "the events broke off")
    return 0


def _events(stream: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    kind = None
    for line in stream:
        name, _, value = line.decode().partition(": ")
        if name == "event":
            kind = value.rstrip("\n")
        elif name == "data" and line.endswith(b"\n"):  # else it is incomplete
            yield {"event": kind, **json.loads(value)}


def steer(options: argparse.Namespace) -> int:
    """Pause, resume, save or test."""
    return _command(options, f"/{options.action}")


def step(options: argparse.Namespace) -> int:
    """Run some batches, then pause."""
    return _command(options, "/step", n=options.n)


def stop(options: argparse.Namespace) -> int:
    """End the run; at a terminal, ask for confirmation."""
    if not options.yes and sys.stdin.isatty():
        print(f"Stop the run at {_url(options)}? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise OnionError("not stopped.")
    return _command(options, "/stop", **({"why": options.why} if options.why else {}))


def change(options: argparse.Namespace) -> int:
    """Change settings."""
    return _command(options, "/settings", "PATCH", json.dumps(dict(options.settings)).encode())


def switch(options: argparse.Namespace) -> int:
    """Enable or disable an item."""
    return _command(options, f"/rings/{quote(options.item, safe='')}/{options.action}")


def samples(options: argparse.Namespace) -> int:
    """Send the lines of a file, each once; wait while the stream is full."""
    service, producer, taken, first = _service(options), f"ctl-{uuid4().hex}", 0, 1
    with _opened(options.file) as file:
        while lines := list(islice(file, SAMPLES_PER_CALL)):
            last = first + len(lines) - 1
            if full := sum(bool(line.strip()) for line in lines):
                query = urlencode({"producer": producer, "cursor": last})
                try:
                    service.call("POST", f"/samples?{query}", b"".join(lines), patient=True)
                except OnionError as error:
                    where = f"{options.file}, of the lines {first} to {last}: {error}"
                    raise DataError(f"{where} The {taken} samples before were taken.") from None
            taken, first = taken + full, last + 1
    print(_line({"taken": taken}))
    return 0


def predict(options: argparse.Namespace) -> int:
    """Print the predictions for the lines of a file, a JSON value each."""
    with _opened(options.file) as file:
        inputs = list(_values(file, options.file))
    print(_line(_service(options).call("POST", "/predict", json.dumps({"inputs": inputs}).encode())))
    return 0


def _command(
    options: argparse.Namespace, path: str, method: str = "POST", body: bytes = b"", **query: str | int
) -> int:
    """Send a command with a new key, so that it is executed once however often it has to be sent."""
    service, words = _service(options), urlencode({**query, "timeout": options.timeout})
    print(_line(service.call(method, f"{path}?{words}", body, options.timeout, key=uuid4().hex)))
    return 0


# -- options ---------------------------------------------------------------------------------------------------------


def _service(options: argparse.Namespace) -> Remote:
    from onion.cli.remote import Remote
    from onion.http.auth import find_token, is_loopback

    service = Remote(_url(options), find_token(file=options.token_file))
    parts = urlsplit(service.url)
    if service.token is not None and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        log.warning("the token goes to %s unencrypted; put the service behind a proxy with TLS", parts.hostname)
    return service


def _url(options: argparse.Namespace) -> str:
    """Return the address of the option, of the environment, or of this machine."""
    url = str(options.url or os.environ.get("ONION_URL") or DEFAULT_URL).rstrip("/")
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        plain = not (parts.query or parts.fragment or parts.username or parts.password)
    except ValueError:
        fits = plain = False
    if not (fits and plain and url.isascii() and url.isprintable() and " " not in url):
        raise OnionError(f"{url!r} is not an address such as {DEFAULT_URL} or https://runs.example/mine.")
    return url


# -- files and lines -------------------------------------------------------------------------------------------------


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    """Open a file, or standard input for ``-``."""
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = open(name, "rb")  # noqa: PTH123, SIM115
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror}.") from None
    with file:
        yield file


def _values(lines: Iterable[bytes], name: str) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                yield json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name}, line {number}: no JSON value: {error}") from None


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
