"""Counts the deliveries and refusals of a chat channel, in Prometheus' form.

| metric                        | labels          | meaning                                      |
|-------------------------------|-----------------|----------------------------------------------|
| refdesk_chat_deliveries_total | channel, result | replies that were shown, by their outcome;   |
|                               |                 | `delivery_failed`: it will be retried;       |
|                               |                 | `delivery_abandoned`: it is never shown;     |
|                               |                 | `background_task_failed`: another task of    |
|                               |                 | the channel failed                           |
| refdesk_chat_declined_total   | channel, reason | messages that were not accepted:             |
|                               |                 | `limited_minute`, `limited_day`: of one      |
|                               |                 | person; `not_allowed`: not on the lists      |
| refdesk_chat_feedback_total   | channel, rating | ratings of answers: `up`, `down`             |
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from gateway.chat.ports import Tally


class _Counts(Collector):
    def __init__(self, channel: str, tally: Tally, *, name: str, what: str, label: str) -> None:
        self._channel = channel
        self._tally = tally
        self._name = name
        self._what = what
        self._label = label

    def collect(self) -> Iterator[CounterMetricFamily]:
        family = CounterMetricFamily(
            self._name,
            self._what,
            labels=["channel", self._label],
        )
        for result, count in sorted(self._tally.counts.items()):
            family.add_metric([self._channel, result], count)
        yield family


def push_metrics(
    channel: str,
    tally: Tally,
    refusals: Tally,
    ratings: Tally,
    *,
    registry: CollectorRegistry | None = None,
) -> CollectorRegistry:
    """Return a registry, by default a new one, that reads the counts of a channel at a scrape."""
    registry = CollectorRegistry() if registry is None else registry
    what = "Deliveries of replies, by result."
    name = "refdesk_chat_deliveries"
    registry.register(_Counts(channel, tally, name=name, what=what, label="result"))
    what, name = "Messages that were not accepted.", "refdesk_chat_declined"
    registry.register(_Counts(channel, refusals, name=name, what=what, label="reason"))
    what, name = "Ratings of answers.", "refdesk_chat_feedback"
    registry.register(_Counts(channel, ratings, name=name, what=what, label="rating"))
    return registry
