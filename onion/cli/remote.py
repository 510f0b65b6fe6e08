"""A client of the service of a run, with the standard library alone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import IO, Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

import attrs

from onion.errors import OnionError
from onion.http.auth import is_loopback

ATTEMPTS = 5
RETRY_SECONDS = 0.2  # before the second attempt; doubled before each further one
MARGIN_SECONDS = 15.0  # allowed for the transfer of an answer
SILENCE_SECONDS = 60.0  # a stream of events has a heartbeat every 15


@attrs.frozen
class Remote:
    """The service of a run.

    Attributes:
        url: of http or https, without a slash at the end.
        token: for authorization, or None.
    """

    url: str
    token: str | None = attrs.field(repr=False)

    def call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        wait: float = 0.0,
        key: str | None = None,
        patient: bool = False,
    ) -> Any:
        """Return the answer, JSON or text; send the request again if the connection is lost.

        Args:
            method: of HTTP.
            path: with the query.
            body: of the request.
            wait: seconds that the service may take.
            key: the idempotency key of a command.
            patient: whether to try again while the service is busy.

        Raises:
            OnionError: the service cannot be reached, or refuses.
        """
        attempt, headers = 0, {"Idempotency-Key": key} if key else {}
        while True:
            try:
                with self.opened(method, path, body, headers, wait + MARGIN_SECONDS) as answer:
                    return _content(answer)
            except BusyError as busy:
                if not patient:
                    raise
                time.sleep(busy.seconds)
            except LostError as lost:
                attempt += 1
                if attempt == ATTEMPTS or (lost.refused and attempt == 1):
                    raise
                time.sleep(RETRY_SECONDS * 2 ** (attempt - 1))

    @contextmanager
    def opened(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        seconds: float = MARGIN_SECONDS,
    ) -> Iterator[HTTPResponse]:
        """Open the answer to a request.

        Raises:
            LostError: there was none, or it is incomplete.
            BusyError: the service is busy.
            OnionError: the service refused, with its message.
        """
        url = f"{self.url}{path}"  # http or https, which the caller checks
        request = Request(url, body or None, dict(headers or {}), method=method)  # noqa: S310
        if self.token is not None:
            # Unredirected: no other service may get it.
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        try:
            with _opener(self.url).open(request, timeout=seconds) as answer:
                yield answer
        except HTTPError as error:
            with error:
                _refused(error)
        except (URLError, HTTPException, ConnectionError, TimeoutError) as error:
            reason = getattr(error, "reason", error)
            raise LostError(self.url, reason) from None


class LostError(OnionError):
    """There was no answer."""

    def __init__(self, url: str, reason: object) -> None:
        self.refused = isinstance(reason, ConnectionRefusedError)
        what = "nothing listens there" if self.refused else f"the connection was lost ({reason})"
        super().__init__(f"{url}: {what}; is the run under way, and its ControlServer at this address? See --url.")


class BusyError(OnionError):
    """The service is busy; try again after some seconds."""

    def __init__(self, words: str, seconds: float) -> None:
        super().__init__(words)
        self.seconds = seconds


class _Stay(HTTPRedirectHandler):
    """Follows no redirection: a command is for the given service only."""

    def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str) -> None:
        return None


def _opener(url: str) -> OpenerDirector:
    """Return an opener for an address; for this machine it uses no proxy."""
    here = is_loopback(urlsplit(url).hostname or "")
    return build_opener(_Stay, *([ProxyHandler({})] if here else []))


def _content(answer: HTTPResponse) -> Any:
    """Return the content of an answer: JSON or plain text."""
    if answer.length is None and not answer.chunked:  # http.client accepts incomplete headers
        raise IncompleteRead(b"")
    body, kind = answer.read(), answer.headers.get("Content-Type", "").partition(";")[0]
    try:
        if kind in ("application/json", "text/plain"):
            return json.loads(body) if kind == "application/json" else body.decode().rstrip("\n")
    except ValueError:
        pass
    raise OnionError(f"{answer.url}: unexpected answer; is this the service of a run?")


def _refused(error: HTTPError) -> NoReturn:
    """Raise the error of the service."""
    try:
        answer = json.loads(error.read(100_000))
        words = str(answer["error"])
    except (ValueError, LookupError, TypeError, OSError, HTTPException):
        raise OnionError(f"{error.url}: status {error.code} {error.reason}; is this the service of a run?") from None
    if error.code == 401:
        words += " Here: --token-file FILE, or the environment variable ONION_TOKEN."
    if error.code == 429:  # 503 may last: a source is unreachable, or nothing is published yet
        raise BusyError(words, float(error.headers.get("Retry-After") or 1))
    if "command" in answer:
        words = f"command {answer['number']}, {answer['command']}, failed after step {answer['step']}: {words}"
    raise OnionError(words)
