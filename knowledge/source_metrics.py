"""Exports the state of the ingested sources in a data folder as Prometheus metrics.

| metric                          | meaning                                               |
|---------------------------------|-------------------------------------------------------|
| refdesk_sources                 | sources ingested into this data folder                |
| refdesk_source_failed_documents | documents that the last ingestion could not read      |
| refdesk_source_oldest_seconds   | time since the oldest ingestion of a source           |

Only a process with access to the data folder knows these values, so use the maximum in charts.
Labels do not contain the names of sources, because these may be paths.
"""

import time
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from knowledge.source_registry import SourceRegistry

_GAUGES = (
    ("refdesk_sources", "Sources that were read."),
    ("refdesk_source_failed_documents", "Documents that could not be read."),
    ("refdesk_source_oldest_seconds", "Age of the oldest completed run of a source."),
)


class SourceMetrics(Collector):
    """Reads the list of sources at each scrape."""

    def __init__(self, registry: SourceRegistry) -> None:
        self._registry = registry

    def describe(self) -> list[GaugeMetricFamily]:
        """Return the gauges without values, for the registration."""
        return [GaugeMetricFamily(name, about) for name, about in _GAUGES]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges, or none if no source was ingested."""
        # A source that was only added has no time of an ingestion.
        sources = [source for source in self._registry.read().sources if source.read_at]
        if not sources:
            return
        oldest = max(0.0, time.time() - min(source.read_at for source in sources))
        values = (len(sources), sum(source.failed for source in sources), oldest)
        for (name, about), value in zip(_GAUGES, values, strict=True):
            yield GaugeMetricFamily(name, about, value=value)
