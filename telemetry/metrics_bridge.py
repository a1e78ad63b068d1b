"""Adds the metrics of a Prometheus registry to what OpenTelemetry's SDK exports."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry
from prometheus_client import Metric as Family
from prometheus_client.samples import Sample

Labels = tuple[tuple[str, str], ...]


class _BridgeExporter(MetricExporter):
    def __init__(self, exporter: MetricExporter, registry: CollectorRegistry, scope: str) -> None:
        super().__init__()
        self._exporter = exporter
        self._registry = registry
        self._scope = InstrumentationScope(scope)
        self._began = time.time_ns()

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object
    ) -> MetricExportResult:
        now = time.time_ns()
        found = [
            metric
            for family in self._registry.collect()
            for metric in convert_family(family, self._began, now)
        ]
        added = [
            ResourceMetrics(
                one.resource,
                [*one.scope_metrics, ScopeMetrics(self._scope, found, "")],
                one.schema_url,
            )
            for one in metrics_data.resource_metrics
        ]
        return self._exporter.export(MetricsData(added), timeout_millis)

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        self._exporter.shutdown(timeout_millis)


def with_prometheus(
    exporter: MetricExporter, registry: CollectorRegistry, scope: str
) -> MetricExporter:
    """Return an exporter that sends the metrics of the registry beside the SDK's own."""
    return _BridgeExporter(exporter, registry, scope)


def convert_family(family: Family, began: int, now: int) -> Iterator[Metric]:
    """Yield the metric of a family in OpenTelemetry's form; times in nanoseconds."""
    match family.type:
        case "counter":
            points = _make_points(family.samples, f"{family.name}_total", began, now)
            data: Sum | Gauge | Histogram = Sum(points, AggregationTemporality.CUMULATIVE, True)
        case "gauge":
            data = Gauge(_make_points(family.samples, family.name, began, now))
        case "histogram":
            points_of = list(_make_histograms(family, began, now))
            data = Histogram(points_of, AggregationTemporality.CUMULATIVE)
        case _:
            return
    if data.data_points:
        yield Metric(family.name, family.documentation, family.unit, data)


def _make_points(
    samples: Sequence[Sample], name: str, began: int, now: int
) -> list[NumberDataPoint]:
    return [
        NumberDataPoint(dict(one.labels), began, now, one.value)
        for one in samples
        if one.name == name
    ]


def _make_histograms(family: Family, began: int, now: int) -> Iterator[HistogramDataPoint]:
    bounds: defaultdict[Labels, list[tuple[float, int]]] = defaultdict(list)
    sums: dict[Labels, float] = {}
    for sample in family.samples:
        labels = tuple((name, value) for name, value in sample.labels.items() if name != "le")
        if sample.name == f"{family.name}_bucket":
            bounds[labels].append((float(sample.labels["le"]), int(sample.value)))
        elif sample.name == f"{family.name}_sum":
            sums[labels] = sample.value
    for labels, cumulative in bounds.items():
        counts = [
            count - before
            for (_, count), before in zip(
                cumulative, [0, *(one for _, one in cumulative[:-1])], strict=True
            )
        ]
        yield HistogramDataPoint(
            dict(labels), began, now, cumulative[-1][1], sums.get(labels, 0.0), counts,
            [bound for bound, _ in cumulative[:-1]],
            None, None,  # type: ignore[arg-type] # Prometheus knows neither; OTLP has both optional
        )  # fmt: skip
