"""Counts the requests of the HTTP channel, as Prometheus metrics.

| metric                       | labels        | meaning                             |
|------------------------------|---------------|-------------------------------------|
| refdesk_http_requests_total  | route, status | requests that were answered         |
| refdesk_http_seconds         | route         | until the answer's last byte        |
| refdesk_http_streams         |               | event streams that are open         |
| refdesk_http_outcomes_total  | outcome       | answers that were shown             |
| refdesk_feedback_total       | rating        | ratings of answers: `up`, `down`    |
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

BUCKETS = (0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class PrometheusHttpMeter:
    """Counts into a registry, by default one of its own."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry = CollectorRegistry() if registry is None else registry
        self._requests = Counter(
            "refdesk_http_requests", "Answered requests.", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "refdesk_http_seconds",
            "Seconds to answer.",
            ["route"],
            registry=registry,
            buckets=BUCKETS,
        )
        self._streams = Gauge("refdesk_http_streams", "Open event streams.", registry=registry)
        self._outcomes = Counter(
            "refdesk_http_outcomes",
            "Outcomes that were returned to clients.",
            ["outcome"],
            registry=registry,
        )
        self._feedback = Counter(
            "refdesk_feedback", "Ratings of answers.", ["rating"], registry=registry
        )

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count one request; the route of an unknown address is the empty string."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def change_streams(self, change: int) -> None:
        """Count a stream that opens (1) or ends (-1)."""
        self._streams.inc(change)

    def count_outcome(self, outcome: str) -> None:
        """Count an outcome that was shown."""
        self._outcomes.labels(outcome).inc()

    def count_feedback(self, rating: str) -> None:
        """Count feedback."""
        self._feedback.labels(rating).inc()
