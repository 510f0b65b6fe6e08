"""The process of a service: models, a socket, and signals that end it or load its models again."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import threading
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from onion.device import chosen_threads
from onion.errors import OnionError
from onion.http.auth import VARIABLE, Access, find_token, is_loopback
from onion.http.listening import address_of, bind
from onion.serving.batcher import Batcher, Computed
from onion.serving.limits import ServingLimits
from onion.serving.servable import Servable
from onion.serving.served_models import ServedModel, ServedModels, check_names

if TYPE_CHECKING:
    import socket

    from onion.http.bounded import ClosingServer

log = logging.getLogger("onion")

PORT = 8000
PROBES = ("/health", "/ready", "/v2/health/live", "/v2/health/ready")
"""What may be asked without a token: whether the service lives, and takes calls."""

NEEDED = ("fastapi", "prometheus_client", "uvicorn")


class ModelServer:
    """Serve models over HTTP until SIGTERM or Ctrl-C; SIGHUP loads all of them again.

        ModelServer({"films": "run"}, port=8000).run()

    Args:
        models: name -> folder of ``onion train`` or ``onion export``, or an encoder.
        host: address to listen at. Default ``127.0.0.1``.
        port: default 8000; 0: any free port.
        token: required of callers: ``Authorization: Bearer TOKEN``. Default: the one in ``token_file``, or in the
            environment variable ``ONION_TOKEN``.
        token_file: a file with the token, which only its owner can read.
        limits: what is accepted.
        threads: that ONNX Runtime computes one batch on. Default 1: short texts gain little by more.
        workers: batches that are computed at the same time. Default: so many that all threads of
            :func:`onion.device.use_threads` are used.
        engine: of runs: ``paddle`` or ``onnx``.

    Raises:
        OnionError: the extra ``[serve]`` is not installed; a model, a name, the token or the port is invalid; or there
            is no token although the host is not this machine.
    """

    def __init__(
        self,
        models: Mapping[str, str | Path],
        host: str = "127.0.0.1",
        port: int = PORT,
        *,
        token: str | None = None,
        token_file: str | Path | None = None,
        limits: ServingLimits | None = None,
        threads: int = 1,
        workers: int | None = None,
        engine: str | None = None,
    ) -> None:
        _require_extra()
        if not models:
            raise OnionError("there is no model to serve; give the folder of at least one.")
        check_names(models)
        self.limits = limits or ServingLimits()
        self._access = Access(find_token(token, token_file), PROBES)
        if self._access.token is None and not is_loopback(host):
            raise OnionError(
                f"The service would listen at {host} without a token, so that anyone there could use it. Give a token "
                f"(--token-file, or the environment variable {VARIABLE}), or listen at 127.0.0.1."
            )
        self._listening = bind(host, port)
        try:
            self.models = ServedModels(
                [ServedModel(name, str(folder), threads, engine) for name, folder in models.items()]
            )
        except BaseException:
            self._listening.close()
            raise
        self.url = address_of(self._listening)
        self._ready, self._until = True, math.inf
        workers = workers or max(1, chosen_threads() // threads)
        self._batcher = Batcher(self.limits.batch_tokens, self.limits.queue, self._count, workers)
        self._server = self._made(self._batcher)

    def run(self, signals: bool = True) -> None:
        """Serve until the end.

        Args:
            signals: whether to answer signals, which only the main thread can.
        """
        before: dict[int, Any] = self._answer_signals() if signals else {}
        log.info("serving %s at %s", ", ".join(model.name for model in self.models.all), self.url)
        try:
            asyncio.run(self._serve([self._listening]))
        finally:
            self._ready = False
            self._batcher.close(self._left())
            self._listening.close()
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self, at_once: bool = False) -> None:
        """End the service; may be called by anyone, again too.

        Args:
            at_once: calls under way are cut off. Default: they are answered, within ``limits.drain`` seconds.
        """
        self._ready = False
        if at_once:
            self._batcher.abandon()
            self._server.cut()
        self._until = min(self._until, time.monotonic() + self.limits.drain)
        self._server.should_exit = True

    def _left(self) -> float:
        """Return the seconds that are left of the end."""
        return max(0.0, min(self._until - time.monotonic(), self.limits.drain))

    async def _serve(self, sockets: list[socket.socket]) -> None:
        # uvicorn's serve() would take the signals, and raise them again at its end.
        await self._server._serve(sockets)

    def _made(self, batcher: Batcher) -> ClosingServer:
        # Imported here: who only predicts loads no web framework, and the missing extra was reported before.
        from onion.http.bounded import bounded_server
        from onion.serving.app import make_app
        from onion.serving.calls import Calls
        from onion.serving.metrics import ServingMetrics

        self._metrics = ServingMetrics(batcher.waiting, lambda: self._ready)
        calls = Calls(self.models, batcher, self.limits)
        app = make_app(calls, self._metrics, self._access, lambda: self._ready)
        return bounded_server(app, self.limits, asyncio.Event(), math.ceil(self.limits.drain))

    def _count(self, servable: Servable, what: Computed) -> None:
        names = (model.name for model in self.models.all if model.servable is servable)
        self._metrics.computed(next(names, "exchanged"), what)

    def _answer_signals(self) -> dict[int, Any]:
        def end(number: int, frame: FrameType | None) -> None:
            self.stop(at_once=not self._ready)  # the second one

        def reload(number: int, frame: FrameType | None) -> None:
            threading.Thread(target=self._reload_all, name="onion-reload", daemon=True).start()

        wanted = {signal.SIGTERM: end, signal.SIGINT: end, signal.SIGHUP: reload}
        return {number: signal.signal(number, handler) for number, handler in wanted.items()}

    def _reload_all(self) -> None:
        for model in self.models.all:
            try:
                with self._metrics.reloading(model.name):
                    model.reload()
                log.info("the model %s was loaded again", model.name)
            except Exception as error:
                log.error("the model %s was not exchanged: %s", model.name, error)


def _require_extra() -> None:
    for name in NEEDED:
        if find_spec(name) is None:
            raise OnionError(f"The service requires {name}; run: pip install 'onion-paddle[serve]'")
