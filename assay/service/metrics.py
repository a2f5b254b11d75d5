"""Metrics of a server, for Prometheus."""

from __future__ import annotations

import logging
import os
import time

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from ..verifiers import Status
from .limits import Refused

_log = logging.getLogger("assay.service")
_SUMMED = "PROMETHEUS_MULTIPROC_DIR" in os.environ  # as prometheus_client decides
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_GAUGES = {
    "connections": "HTTP requests under way.",
    "sockets": "WebSockets that are open.",
    "episodes": "Episodes in memory.",
    "held_bytes": "Text of episodes, at 4 bytes a character.",
    "under_way_bytes": "Bytes of requests that were not answered yet.",
    "queue": "Replies that wait, or are worked on.",
}


class Metrics:
    """Requests, latencies, verdicts by status, refusals by reason, and gauges of memory."""

    def __init__(self) -> None:
        self.registry = to = CollectorRegistry()
        if not _SUMMED:
            ProcessCollector(registry=to)
        about = "Answers, by route and status."
        self._requests = Counter("assay_requests", about, ["route", "status"], registry=to)
        self._seconds = Histogram(
            "assay_request_seconds", "Time to answer.", ["route"], buckets=_SECONDS, registry=to
        )
        about = "Requests that were refused, by reason."
        self._refused = Counter("assay_refused", about, ["code"], registry=to)
        self._verdicts = Counter("assay_verdicts", "Verdicts, by status.", ["status"], registry=to)
        for status in Status:
            self._verdicts.labels(status.value)
        self.gauges = {
            name: Gauge(f"assay_{name}", text, registry=to, multiprocess_mode="livesum")
            for name, text in _GAUGES.items()
        }
        self._logged: dict[str, float] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count one answer. ``route`` is one of few: never what a client made up."""
        self._requests.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def judged(self, status: Status) -> None:
        """Count a verdict."""
        self._verdicts.labels(status.value).inc()

    def refused(self, refused: Refused) -> None:
        """Count a refusal; one for want of room is logged, too, once a minute for each reason."""
        self._refused.labels(refused.code).inc()
        now = time.monotonic()
        if refused.status == 503 and now - self._logged.get(refused.code, -60.0) >= 60.0:
            self._logged[refused.code] = now
            _log.warning("%s (at most once a minute; see assay_refused_total)", refused)

    def page(self) -> bytes:
        """Return all metrics, summed over all workers, in Prometheus's text format."""
        if not _SUMMED:
            return generate_latest(self.registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
