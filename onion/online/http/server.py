"""The service of a run: a socket and one thread."""

from __future__ import annotations

import asyncio
import logging
import socket
from importlib.util import find_spec
from pathlib import Path
from threading import Thread, get_ident
from typing import TYPE_CHECKING

from onion.errors import OnionError
from onion.http.auth import VARIABLE, Access, find_token, is_loopback
from onion.http.listening import address_of, bind
from onion.online.control.run_api import RunAPI
from onion.online.http.limits import Limits

if TYPE_CHECKING:
    from uvicorn import Server

log = logging.getLogger("onion")

PORT = 8765
STOP_SECONDS = 10
NEEDED = ("fastapi", "prometheus_client", "uvicorn")
LOGGERS = ("uvicorn.error", "asyncio")


class Service:
    """Answer HTTP calls about a run, in a thread of its own. It handles no signals.

        service = Service(run, port=0, token_file="token")
        service.start()
        print(service.url)
        service.stop()

    Args:
        run: The run.
        host: Address to listen at. Default ``127.0.0.1``.
        port: Default 8765; 0: any free port.
        token: Required of callers: ``Authorization: Bearer TOKEN``. At least 16 characters. Default: the one in
            ``token_file`` or in the environment variable ``ONION_TOKEN``.
        token_file: A file with the token, which only its owner can read.
        limits: What is accepted.

    Raises:
        OnionError: The extra ``[online]`` is not installed, the token or the port is invalid, or there is no token
            although the host is not this machine.
    """

    def __init__(
        self,
        run: RunAPI,
        host: str = "127.0.0.1",
        port: int = PORT,
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        limits: Limits | None = None,
    ) -> None:
        _require_extra()
        if not 0 <= port <= 65535:
            raise OnionError(f"port must be between 0 (any) and 65535, got {port}.")
        self._run, self._host, self._port, self._limits = run, host, port, limits or Limits()
        self._access = Access(find_token(token, token_file))
        if self._access.token is None and not is_loopback(host):
            raise OnionError(
                f"The service would listen at {host} without a token, so that anyone there could control the run. Give "
                f"a token (token=, token_file=, or the environment variable {VARIABLE}), or listen at 127.0.0.1."
            )
        self._server: Server | None = None
        self._thread: Thread | None = None
        self._url = ""

    @property
    def url(self) -> str:
        """The address, such as ``http://127.0.0.1:8765``; empty before the first start."""
        return self._url

    def start(self) -> None:
        """Start to listen.

        Raises:
            OnionError: It listens already, or the host and port are not available.
        """
        if self._thread is not None:
            raise OnionError(f"The service listens already, at {self._url}.")
        listening = bind(self._host, self._port)
        self._url = address_of(listening)
        if self._access.token is None:
            log.warning(
                "%s has no token: every user and program of this machine can control the run. Set %s to protect it.",
                self._url,
                VARIABLE,
            )
        self._server = _server(self._run, self._access, self._limits)
        self._thread = Thread(target=_serve, args=(self._server, listening), name="onion-service", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish calls in progress, within 5 seconds, and close everything; no effect if it is not running."""
        thread, server = self._thread, self._server
        if thread is None or server is None:
            return
        server.should_exit = True
        thread.join(STOP_SECONDS)
        if thread.is_alive():
            log.warning("%s: a call is still running in its thread, which is abandoned.", self._url)
        self._thread = self._server = None


def _require_extra() -> None:
    for name in NEEDED:
        if find_spec(name) is None:
            raise OnionError(f"The service requires {name}; run: pip install 'onion-paddle[online]'")


def _server(run: RunAPI, access: Access, limits: Limits) -> Server:
    # Imported here: a run without a service loads no web framework, and the missing extra was reported before.
    from onion.http.bounded import bounded_server
    from onion.online.http.app import make_app

    closing = asyncio.Event()
    return bounded_server(make_app(run, access, limits, closing), limits, closing)


def _serve(server: Server, listening: socket.socket) -> None:
    """Run a server until it stops; its log goes to onion's, at debug level unless it is an error."""
    ours = _Ours()
    for name in LOGGERS:
        logging.getLogger(name).addFilter(ours)
    try:
        server.run([listening])
    except BaseException:
        log.exception("The service has failed; the run continues without it.")
    finally:
        for name in LOGGERS:
            logging.getLogger(name).removeFilter(ours)
        listening.close()


class _Ours(logging.Filter):
    """Moves the messages of this thread to onion's log; other threads may have servers of their own."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        level = record.levelno if record.levelno >= logging.ERROR else logging.DEBUG
        log.log(level, "service: %s", record.getMessage(), exc_info=record.exc_info)
        return False
