"""Tells what a push door did, in Prometheus' form.

| metric                        | labels          | what                                         |
|-------------------------------|-----------------|----------------------------------------------|
| refdesk_push_deliveries_total | channel, result | replies that were shown, by their outcome;   |
|                               |                 | `failed`: tried, to be tried again;          |
|                               |                 | `given_up`: the platform will not show it    |
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from gateway.pushing.port import Tally


class _Deliveries(Collector):
    def __init__(self, channel: str, tally: Tally) -> None:
        self._channel = channel
        self._tally = tally

    def collect(self) -> Iterator[CounterMetricFamily]:
        told = CounterMetricFamily(
            "refdesk_push_deliveries",
            "Replies that were shown, or tried.",
            labels=["channel", "result"],
        )
        for result, count in sorted(self._tally.counts.items()):
            told.add_metric([self._channel, result], count)
        yield told


def push_metrics(channel: str, tally: Tally) -> CollectorRegistry:
    """Return what tells the counts of a door as they are when it is asked."""
    registry = CollectorRegistry()
    registry.register(_Deliveries(channel, tally))
    return registry
