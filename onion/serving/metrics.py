"""What a service tells Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from onion.http.refused import Refused
from onion.serving.batcher import Computed

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
METHODS = ("GET", "POST")


class ServingMetrics:
    """The values of one service, in a registry of its own.

    Args:
        waiting: returns how many rows wait.
        ready: returns whether calls are taken.
    """

    def __init__(self, waiting: Callable[[], int], ready: Callable[[], bool]) -> None:
        self._waiting, self._ready = waiting, ready
        self._registry = registry = CollectorRegistry(auto_describe=False)
        self._requests = Counter("onion_http_requests", "Calls.", ["method", "path", "status"], registry=registry)
        self._latency = Histogram(
            "onion_http_request_seconds",
            "Time from a call to its answer.",
            ["path"],
            buckets=SECONDS,
            registry=registry,
        )
        self._rows = Counter("onion_rows", "Rows answered.", ["model"], registry=registry)
        self._tokens = Counter("onion_tokens", "Tokens of these rows.", ["model"], registry=registry)
        self._compute = Counter(
            "onion_compute_seconds", "Time in which they were computed.", ["model"], registry=registry
        )
        self._batch = Histogram("onion_batch_rows", "Rows of a batch.", ["model"], buckets=ROWS, registry=registry)
        self._reloads = Counter("onion_reloads", "Models loaded again.", ["model", "result"], registry=registry)
        ProcessCollector(registry=registry)  # processor time, memory, files; of Linux only
        registry.register(self)

    def count(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a call by the path of its route."""
        self._requests.labels(method if method in METHODS else "other", path, str(status)).inc()
        self._latency.labels(path).observe(seconds)

    def computed(self, model: str, what: Computed) -> None:
        """Count a batch."""
        self._rows.labels(model).inc(what.rows)
        self._tokens.labels(model).inc(what.tokens)
        self._compute.labels(model).inc(what.seconds)
        self._batch.labels(model).observe(what.rows)

    @contextmanager
    def reloading(self, model: str) -> Iterator[None]:
        """Count a reload; it has failed if something is raised, but for the refusal of a second one at a time."""
        try:
            yield
        except Refused:
            raise
        except BaseException:
            self._reloads.labels(model, "failed").inc()
            raise
        self._reloads.labels(model, "succeeded").inc()

    def text(self) -> bytes:
        """Return all values."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield what is measured when it is asked for."""
        yield GaugeMetricFamily("onion_queue_rows", "Rows that wait.", value=self._waiting())
        yield GaugeMetricFamily("onion_ready", "Whether calls are taken.", value=float(self._ready()))
