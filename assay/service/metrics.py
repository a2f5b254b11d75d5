"""What a server counts, for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..verifiers import Status

if TYPE_CHECKING:
    from .service import EnvironmentService

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics(Collector):
    """Requests, latencies, verdicts by status, refusals by reason, and what is held now.

    Attributes:
        requests: by route and HTTP status; a WebSocket's messages by their op.
        refused: by the code that the client was told.
        verdicts: by status.
        sockets: WebSockets that are open.
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.refused: Counter[str] = Counter()
        self.verdicts: Counter[Status] = Counter()
        self.sockets = 0
        self._service: EnvironmentService | None = None
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._seconds = Histogram(
            "assay_request_seconds",
            "Time to answer, by route.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._by_route: dict[str, Histogram] = {}
        self.registry.register(self)

    def watch(self, service: EnvironmentService) -> None:
        """Tell what a service holds, too."""
        self._service = service

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count one answer. ``route`` is one of few: never what a client made up."""
        self.requests[route, status] += 1
        found = self._by_route.get(route)
        if found is None:
            found = self._by_route[route] = self._seconds.labels(route)
        found.observe(seconds)

    def closed(self, code: str) -> None:
        """Count a WebSocket that was closed because there was no room for what it sent."""
        if code:
            self.refused[code] += 1

    def collect(self) -> Iterator[Metric]:
        """Prometheus's question."""
        requests = CounterMetricFamily(
            "assay_requests", "Answers, by route and status.", labels=["route", "status"]
        )
        for (route, status), times in sorted(self.requests.items()):
            requests.add_metric([route, str(status)], times)
        yield requests
        refused = CounterMetricFamily(
            "assay_refused", "Requests that were refused, by reason.", labels=["code"]
        )
        for code, times in sorted(self.refused.items()):
            refused.add_metric([code], times)
        yield refused
        verdicts = CounterMetricFamily("assay_verdicts", "Verdicts, by status.", labels=["status"])
        for status_ in Status:
            verdicts.add_metric([status_.value], self.verdicts[status_])
        yield verdicts
        yield GaugeMetricFamily("assay_sockets", "WebSockets that are open.", value=self.sockets)
        if self._service is not None:
            budget = self._service.budget
            for name, what, value in (
                ("episodes", "Episodes that are held.", budget.episodes),
                ("held_bytes", "Text of episodes, at 4 bytes a character.", 4 * budget.chars),
                ("under_way_bytes", "Requests not answered yet.", self._service.under_way.bytes),
                ("queue", "Replies that wait, or are worked on.", self._service.queue.waiting),
            ):
                yield GaugeMetricFamily(f"assay_{name}", what, value=value)

    def page(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)
