"""Counts what a worker does, in Prometheus' form.

| metric                       | labels        | what                     |
|------------------------------|---------------|--------------------------|
| refdesk_handled_total        | role, outcome | settled hops             |
| refdesk_handling_seconds     | role          | from taking to settling  |
| refdesk_leases_lost_total    | role          | entries no longer ours   |
| refdesk_redelivered_total    | role          | entries taken over       |
| refdesk_failures_total       | role, what    | bad frames, failed runs  |
| refdesk_depth                | role          | entries on the streams   |
| refdesk_in_flight            | role          | of these, taken          |
| refdesk_oldest_seconds       | role          | age of the oldest entry  |
| refdesk_dead_letters         | role          | frames given up          |
| refdesk_fallbacks_total      | role, what    | levels, models missed    |
| refdesk_model_calls_total    | model, task   | stored answers left out  |
| refdesk_model_cost_usd_total | model         | where the price is known |
"""

from collections.abc import Sequence
from decimal import Decimal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from broker.port import RoleStatus

BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class PrometheusMeter:
    """A meter with a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        self._handled = Counter(
            "refdesk_handled", "Settled hops.", ["role", "outcome"], registry=own
        )
        self._seconds = Histogram(
            "refdesk_handling_seconds",
            "Seconds a hop took.",
            ["role"],
            registry=own,
            buckets=BUCKETS,
        )
        self._lost = Counter("refdesk_leases_lost", "Entries lost.", ["role"], registry=own)
        self._redelivered = Counter(
            "refdesk_redelivered", "Entries taken over.", ["role"], registry=own
        )
        self._failures = Counter(
            "refdesk_failures", "Failed runs and bad frames.", ["role", "what"], registry=own
        )
        self._fallbacks = Counter(
            "refdesk_fallbacks", "What was done without.", ["role", "what"], registry=own
        )
        self._calls = Counter(
            "refdesk_model_calls", "Model calls.", ["model", "task"], registry=own
        )
        self._cost = Counter("refdesk_model_cost_usd", "Cost in USD.", ["model"], registry=own)
        self._gauges = {
            "depth": Gauge("refdesk_depth", "Entries waiting or running.", ["role"], registry=own),
            "in_flight": Gauge("refdesk_in_flight", "Entries running.", ["role"], registry=own),
            "oldest_seconds": Gauge(
                "refdesk_oldest_seconds", "Age of the oldest.", ["role"], registry=own
            ),
            "dead": Gauge("refdesk_dead_letters", "Given up.", ["role"], registry=own),
        }

    def handled(self, role: str, outcome: str, seconds: float) -> None:
        """Count a settled hop."""
        self._handled.labels(role, outcome).inc()
        self._seconds.labels(role).observe(seconds)

    def lost(self, role: str) -> None:
        """Count a lost entry."""
        self._lost.labels(role).inc()

    def redelivered(self, role: str) -> None:
        """Count an entry taken over."""
        self._redelivered.labels(role).inc()

    def failed(self, role: str, error: str) -> None:
        """Count a failure."""
        self._failures.labels(role, error).inc()

    def fell_back(self, role: str, what: str) -> None:
        """Count a fallback."""
        self._fallbacks.labels(role, what).inc()

    def called(self, model: str, task: str, cost_usd: Decimal | None) -> None:
        """Count a model call."""
        self._calls.labels(model, task).inc()
        if cost_usd is not None:
            self._cost.labels(model).inc(float(cost_usd))

    def depths(self, status: Sequence[RoleStatus]) -> None:
        """Show what Redis says about the roles."""
        for role in status:
            for name, gauge in self._gauges.items():
                gauge.labels(role.role).set(getattr(role, name))
