"""``/metrics``: the run's status and the service's own calls, as Prometheus text."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from onion.online.control.run_api import RunAPI

METHODS = ("GET", "POST", "PATCH")
SINGLE = {
    "step": "Batches finished over the whole run.",
    "pass": "Passes finished.",
    "loss": "Cost of the last batch.",
    "queue": "Samples that wait.",
    "rejected": "Samples that could not be used.",
}
NAMES = {"queue": "queue_samples", "rejected": "rejected_samples"}


class Metrics:
    """The figures of one service, in a registry of its own: those of others in this process are left alone.

    Args:
        run: The run.
    """

    def __init__(self, run: RunAPI) -> None:
        self._run = run
        self._registry = CollectorRegistry(auto_describe=False)
        labels = ["method", "path", "status"]
        self._requests = Counter("onion_http_requests", "Calls of the service.", labels, registry=self._registry)
        self._registry.register(self)

    def count(self, method: str, path: str, status: int) -> None:
        """Count a call.

        Args:
            method: Of HTTP.
            path: That of the route, not the one that was called: of those there may be any number.
            status: Of the answer.
        """
        self._requests.labels(method if method in METHODS else "other", path, str(status)).inc()

    def text(self) -> bytes:
        """Return all figures."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the figures of the run."""
        status = self._run.status()
        for key, text in SINGLE.items():
            if (value := status.get(key)) is not None:
                yield GaugeMetricFamily(f"onion_{NAMES.get(key, key)}", text, value=value)
        yield CounterMetricFamily("onion_commands", "Commands that took effect.", value=status.get("commands", 0))
        for key, text in (("metrics", "Metrics as they were last reported."), ("log_values", "Readings of items.")):
            family = GaugeMetricFamily(f"onion_{key[:-1]}", text, labels=["name"])
            for name, value in status.get(key, {}).items():
                if value is not None:
                    family.add_metric([name], value)
            yield family
