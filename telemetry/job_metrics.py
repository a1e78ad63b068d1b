"""Metrics of the background jobs of a process, for Prometheus.

| metric                     | meaning                                                     |
|----------------------------|-------------------------------------------------------------|
| refdesk_job_failures_total | failures of a background job since the process started      |
| refdesk_job_paused         | 1 while a background job that failed waits for its restart  |
"""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from broker.background_jobs import BackgroundJobs


class JobMetrics(Collector):
    """Reads the states of the jobs at each scrape."""

    def __init__(self, jobs: BackgroundJobs) -> None:
        self._jobs = jobs

    def describe(self) -> list[CounterMetricFamily | GaugeMetricFamily]:
        """Return the metrics without values."""
        return [
            CounterMetricFamily(
                "refdesk_job_failures", "Failures of a background job.", labels=["job"]
            ),
            GaugeMetricFamily(
                "refdesk_job_paused", "Whether a background job waits for its restart.",
                labels=["job"],
            ),
        ]  # fmt: skip

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield the failures and the pauses of each job."""
        failures, paused = self.describe()
        for state in self._jobs.states:
            failures.add_metric([state.name], state.failures)
            paused.add_metric([state.name], float(state.is_paused))
        yield failures
        yield paused
