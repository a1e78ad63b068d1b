"""Prometheus metrics of a worker process, and of the queues in Redis.

| metric                       | labels               | meaning                               |
|------------------------------|----------------------|---------------------------------------|
| refdesk_handled_total        | role, outcome        | settled hops                          |
| refdesk_handling_seconds     | role                 | from delivery to settlement           |
| refdesk_running              | role                 | entries that this process runs        |
| refdesk_slots                | role                 | entries it can run at the same time   |
| refdesk_leases_lost_total    | role                 | entries whose lease was lost          |
| refdesk_redelivered_total    | role                 | entries taken over                    |
| refdesk_failures_total       | role, reason         | bad frames, failed runs               |
| refdesk_fallbacks_total      | role, reason         | missing search levels and models      |
| refdesk_model_calls_total    | role, model, outcome | without stored answers                |
| refdesk_model_cost_usd_total | role, model          | if the price is known              |
| refdesk_model_unpriced_total | role, model          | calls whose price is unknown          |
| refdesk_model_cache_hits_total | role, model        | answers reused from another question |
| refdesk_model_saved_usd_total | role, model         | cost of the reused answers, if known  |
| refdesk_decisions_total      | role, by             | by rules, combined_call or own_call   |
| refdesk_searches_total       | role, source         | from the index or the cache           |
| refdesk_quality_score        | role                 | scores of judged answers, 0-1         |
| refdesk_tool_calls_total     | role, tool, error_type | success, or the kind of the error   |
| refdesk_specialist_errors_total | role, severity    | errors that specialists of a review wrote |
| refdesk_evidence_faults_total | role, kind          | faults in the evidence of answers     |
| refdesk_routed_total         | role, event          | transitions of the flow               |

| metric                 | labels | meaning                                         |
|------------------------|--------|-------------------------------------------------|
| refdesk_depth          | role   | waiting and running entries of all processes    |
| refdesk_in_flight      | role   | those that a worker has taken                   |
| refdesk_oldest_seconds | role   | age of the oldest entry                         |
| refdesk_dead_letters   | role   | dead letters in the stream                      |
| refdesk_consumers      | role   | workers of the role in all processes            |
| refdesk_broker_up      |        | 0 if Redis did not respond; the others are missing |
| refdesk_accepting      |        | 0 if Redis refuses writes, so no question is accepted |

Every process reports the same queue values of a role: use the maximum in charts, not the sum.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from decimal import Decimal

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from broker.errors import BrokerError
from broker.ports import Admin
from broker.values import RoleStatus

SCORE_BUCKETS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
FRESH_SECONDS = 1.0
"""How long a read is cached, so that concurrent scrapes share one read."""
PATIENCE_SECONDS = 1.0
"""How long a scrape waits for Redis; Prometheus times out after ten seconds by default."""

SHOWN = {
    "depth": ("refdesk_depth", "Entries that wait or run."),
    "in_flight": ("refdesk_in_flight", "Entries taken by a worker."),
    "oldest_seconds": ("refdesk_oldest_seconds", "Age of the oldest entry."),
    "dead": ("refdesk_dead_letters", "Envelopes that became dead letters."),
    "consumers": ("refdesk_consumers", "Workers of the role."),
}
UP = ("refdesk_broker_up", "Whether Redis responded to the last scrape.")
ACCEPTING = ("refdesk_accepting", "Whether Redis can store new questions.")

log = structlog.get_logger("worker")


class PrometheusMeter:
    """The metrics of a process, in a separate Prometheus registry."""

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        ProcessCollector(registry=own)

        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(f"refdesk_{name}", meaning, ["role", *labels], registry=own)

        self._handled = counter("handled", "Settled hops.", "outcome")
        self._seconds = Histogram(
            "refdesk_handling_seconds",
            "Seconds from taking to settling.",
            ["role"],
            registry=own,
            buckets=BUCKETS,
        )
        self._running = Gauge(
            "refdesk_running", "Entries this process works on.", ["role"], registry=own
        )
        self._slots = Gauge(
            "refdesk_slots", "Entries it can work on at once.", ["role"], registry=own
        )
        self._lost = counter("leases_lost", "Entries lost to others.")
        self._redelivered = counter("redelivered", "Entries taken over.")
        self._failures = counter("failures", "Failed runs and bad frames.", "reason")
        self._fallbacks = counter("fallbacks", "Hops that used a fallback.", "reason")
        self._calls = counter("model_calls", "Model calls.", "model", "outcome")
        self._cost = counter("model_cost_usd", "Cost of model calls in USD.", "model")
        self._unpriced = counter("model_unpriced", "Calls of unknown price.", "model")
        self._cache_hits = counter(
            "model_cache_hits", "Model answers reused from another question.", "model"
        )
        self._decisions = counter("decisions", "Decisions of a stage, by origin.", "by")
        self._searches = counter("searches", "Searches of the documents.", "source")
        self._routed = counter("routed", "Decisions of the manager, by stage.", "event")
        self._faults = counter("evidence_faults", "Faults in the work behind answers.", "kind")
        self._tool_calls = counter("tool_calls", "Calls of tools.", "tool", "error_type")
        self._errors = counter("specialist_errors", "Errors in reviews.", "severity")
        self._scores = Histogram(
            "refdesk_quality_score",
            "Scores of judged answers.",
            ["role"],
            registry=own,
            buckets=SCORE_BUCKETS,
        )
        self._saved = counter("model_saved_usd", "Cost in USD saved by cache hits.", "model")

    def register_role(self, role: str, *, slots: int, running: Callable[[], int]) -> None:
        """Register the gauges of a role: its slots and its running entries."""
        self._slots.labels(role).set(slots)
        self._running.labels(role).set_function(running)
        # `rate()` needs an initial value, so counters are exported as 0 before their first event.
        for counter in (self._lost, self._redelivered, self._seconds):
            counter.labels(role)

    def count_hop(self, role: str, outcome: str, seconds: float) -> None:
        """Count a settled hop."""
        self._handled.labels(role, outcome).inc()
        self._seconds.labels(role).observe(seconds)

    def count_lost(self, role: str) -> None:
        """Count an entry whose lease was lost."""
        self._lost.labels(role).inc()

    def count_redelivery(self, role: str) -> None:
        """Count an entry that was taken over from another worker."""
        self._redelivered.labels(role).inc()

    def count_failure(self, role: str, reason: str) -> None:
        """Count a failure; `reason` is a slug."""
        self._failures.labels(role, reason).inc()

    def count_fallback(self, role: str, reason: str) -> None:
        """Count a fallback; `reason` is a slug."""
        self._fallbacks.labels(role, reason).inc()

    def count_decision(self, role: str, by: str) -> None:
        """Count how a stage was decided: `rules`, `combined_call` or `own_call`."""
        self._decisions.labels(role, by).inc()

    def count_search(self, role: str, source: str) -> None:
        """Count a search; `source` is `index` or `cache`."""
        self._searches.labels(role, source).inc()

    def count_tool_call(self, role: str, tool: str, error_type: str) -> None:
        """Count a tool call; tool names invented by a model are counted as `other`."""
        self._tool_calls.labels(role, tool, error_type).inc()

    def count_specialist_error(self, role: str, severity: str) -> None:
        """Count an error that a specialist wrote."""
        self._errors.labels(role, severity).inc()

    def count_fault(self, kind: str) -> None:
        """Count an evidence fault that the manager found at the end of a question."""
        self._faults.labels("manager", kind).inc()

    def count_routing(self, stage: str, event: str) -> None:
        """Count a routing decision of the manager after `stage`, with `event`."""
        self._routed.labels(stage, event).inc()

    def observe_score(self, role: str, score: float) -> None:
        """Record the score of a judged answer, 0 to 1."""
        self._scores.labels(role).observe(score)

    def count_model_call(
        self, role: str, model: str, *, failed: bool, cost_usd: Decimal | None
    ) -> None:
        """Count a model call that was made for a role."""
        self._calls.labels(role, model, "failed" if failed else "answered").inc()
        if cost_usd is not None:
            self._cost.labels(role, model).inc(float(cost_usd))
        elif not failed:
            self._unpriced.labels(role, model).inc()

    def count_cache_hit(self, role: str, model: str, *, saved_usd: Decimal | None) -> None:
        """Count an answer that was cached for another question; `saved_usd` is None if unknown."""
        self._cache_hits.labels(role, model).inc()
        if saved_usd is not None:
            self._saved.labels(role, model).inc(float(saved_usd))


@dataclass(frozen=True, slots=True)
class BrokerState:
    """The state of the queues in Redis; `write_fault` is the reason why Redis rejects writes, or
    empty.
    """

    roles: Sequence[RoleStatus]
    write_fault: str


class Depths(Collector):
    """Collects the queue metrics: `collect` runs in the scrape thread, `run` in the event loop."""

    def __init__(self, admin: Admin, roles: Sequence[str]) -> None:
        self._admin = admin
        self._roles = roles
        self._lock = threading.Lock()
        self._asked = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awaited: Future[BrokerState | None] | None = None
        self._read: tuple[float, BrokerState] | None = None
        self._known = True

    async def run(self) -> None:
        """Read the queue state whenever a scrape requests it, until cancelled."""
        self._loop = asyncio.get_running_loop()
        try:
            while True:
                await self._asked.wait()
                self._asked.clear()
                self._publish(await self._read_state())
        finally:
            self._loop = None
            self._publish(None)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges; gauges per role are included only if Redis responded."""
        state = self._ask()
        yield GaugeMetricFamily(*UP, value=state is not None)
        accepting = state is not None and not state.write_fault
        yield GaugeMetricFamily(*ACCEPTING, value=accepting)
        if state is None:
            return
        for name, (metric, meaning) in SHOWN.items():
            family = GaugeMetricFamily(metric, meaning, labels=["role"])
            for role in state.roles:
                family.add_metric([role.role], getattr(role, name))
            yield family

    def describe(self) -> list[GaugeMetricFamily]:
        """Return the gauges without values, for the registration."""
        return [GaugeMetricFamily(*gauge) for gauge in (UP, ACCEPTING, *SHOWN.values())]

    def _ask(self) -> BrokerState | None:
        with self._lock:
            if self._read is not None and time.monotonic() - self._read[0] < FRESH_SECONDS:
                return self._read[1]
            loop = self._loop
            if loop is None:
                return None
            if self._awaited is None:
                self._awaited = Future()
                loop.call_soon_threadsafe(self._asked.set)
            awaited = self._awaited
        try:
            return awaited.result(PATIENCE_SECONDS)
        except TimeoutError:
            return None  # the loop is busy, or Redis is slow

    async def _read_state(self) -> BrokerState | None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                roles = await self._admin.read_status(self._roles)
                write_fault = await self._admin.find_write_fault()
        except (BrokerError, TimeoutError) as error:
            if self._known:
                log.warning(
                    "queue_depths_unavailable", error=str(error) or "Redis did not respond in time"
                )
            self._known = False
            return None
        self._known = True
        return BrokerState(roles, write_fault)

    def _publish(self, state: BrokerState | None) -> None:
        with self._lock:
            if state is not None:
                self._read = (time.monotonic(), state)
            awaited, self._awaited = self._awaited, None
        if awaited is not None:
            awaited.set_result(state)
