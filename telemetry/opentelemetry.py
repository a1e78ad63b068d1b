"""Exports traces and metrics over OTLP/HTTP with the OpenTelemetry SDK.

The trace of a question is built from its journal after it has ended, by one process: a span for the
question, and one for each branch, agent run, model call and tool call, with the attributes of
OpenTelemetry's semantic conventions for generative AI (`gen_ai.*`). The journal contains the end of
a run and the durations of its calls, but not their start times, so the calls of a run are placed
one after the other from its start.

IDs are derived from the identity of the question, so that log lines in all processes refer to the
same trace, and a question that is exported twice after a crash has the same spans.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Histogram as Instrument
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import MeterProvider
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
    PeriodicExportingMetricReader,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from prometheus_client import CollectorRegistry
from prometheus_client import Metric as Family
from prometheus_client.samples import Sample
from pydantic import JsonValue

from broker.values import JournalEntry
from envelope.json_values import read_objects
from records.record import Record
from telemetry.observer import EndedQuestion, find_trace_id, make_span_id

Labels = tuple[tuple[str, str], ...]
SCOPE = "refdesk"
NANOSECONDS = 1_000_000_000
METRICS_SECONDS = 60.0
SEND_SECONDS = 3.0
"""Timeout for sending one batch."""
STOP_SECONDS = 3.0
_OWN_MODELS = frozenset({"offline"})
_EVENTS = frozenset({"retried", "dead_lettered", "budget_exhausted", "memory_failed", "routed"})
_EMBEDDING = "embed"
Attributes = dict[str, str | int | float | bool]


@dataclass(slots=True)
class SpanPlan:
    """A span to export, with its times in Unix seconds."""

    name: str
    start: float
    end: float
    attributes: Attributes
    error: str = ""
    events: list[tuple[str, float, Attributes]] = field(default_factory=list)
    children: list["SpanPlan"] = field(default_factory=list)


class OpenTelemetry:
    """Exports data in threads of the SDK; data that cannot be sent in time is dropped.

    `connect` creates it with OTLP/HTTP exporters. If `metrics` is false, only traces are sent.
    """

    def __init__(
        self,
        spans: SpanExporter,
        metrics: MetricExporter | None,
        *,
        service: str,
        release: str,
        registry: "CollectorRegistry | None" = None,
        content: bool = False,
    ) -> None:

        resource = Resource.create({"service.name": service, "service.version": release})
        self._content = content
        self._ids = _make_ids()
        self._traces = TracerProvider(
            resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        self._traces.add_span_processor(BatchSpanProcessor(spans))
        self._tracer: Tracer = self._traces.get_tracer(SCOPE, release)
        readers = [] if metrics is None else [_make_reader(metrics, registry)]
        self._meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        meter = self._meters.get_meter(SCOPE, release)
        self._tokens: Instrument = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens of a model call."
        )
        self._durations: Instrument = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "Duration of a model call."
        )
        # The SDK only exports if an instrument has a value.
        began = time.monotonic()
        meter.create_observable_gauge(
            "process.uptime", [lambda _: [Observation(time.monotonic() - began)]], "s"
        )

    def measure(self, question: EndedQuestion) -> None:
        """Export the trace of a question, and the metrics of its model calls."""
        trace_id = find_trace_id(question.record.id)
        self._ids.begin(trace_id)
        self._send(plan_spans(question, content=self._content), None)
        for entry in question.entries:
            fields = entry.fields
            is_call = entry.kind == "model_call" and fields.get("model") not in _OWN_MODELS
            if not is_call or fields.get("from_store") or fields.get("from_cache"):
                continue
            attributes = describe_call(fields)
            failed = {"error.type": "model_error"} if fields.get("error") else {}
            self._durations.record(_seconds(fields), {**attributes, **failed})
            for kind in ("input", "output"):
                count = fields.get(f"{kind}_tokens")
                if isinstance(count, int):
                    self._tokens.record(count, {**attributes, "gen_ai.token.type": kind})

    def _send(self, plan: SpanPlan, parent: "Span | None") -> None:

        context = Context() if parent is None else set_span_in_context(parent, Context())
        is_call = plan.attributes.get("gen_ai.operation.name") in {"chat", "embeddings"}
        kind = SpanKind.SERVER if parent is None else SpanKind.INTERNAL
        span = self._tracer.start_span(
            plan.name,
            context,
            SpanKind.CLIENT if is_call else kind,
            plan.attributes,
            start_time=_nanoseconds(plan.start),
        )
        for name, at, attributes in plan.events:
            span.add_event(name, attributes, _nanoseconds(at))
        if plan.error:
            span.set_attribute("error.type", plan.error)
            span.set_status(Status(StatusCode.ERROR))
        for child in plan.children:
            self._send(child, span)
        span.end(_nanoseconds(max(plan.end, plan.start)))

    def close(self) -> None:
        """Send pending data, for at most `STOP_SECONDS` each."""
        milliseconds = int(STOP_SECONDS * 1000)
        self._traces.force_flush(milliseconds)
        self._traces.shutdown()
        self._meters.shutdown(milliseconds)


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
        converted = [
            metric
            for family in self._registry.collect()
            for metric in convert_family(family, self._began, now)
        ]
        added = [
            ResourceMetrics(
                metrics.resource,
                [*metrics.scope_metrics, ScopeMetrics(self._scope, converted, "")],
                metrics.schema_url,
            )
            for metrics in metrics_data.resource_metrics
        ]
        return self._exporter.export(MetricsData(added), timeout_millis)

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        self._exporter.shutdown(timeout_millis)


def convert_family(family: Family, began: int, now: int) -> Iterator[Metric]:
    """Convert a Prometheus metric family to OpenTelemetry; times in nanoseconds."""
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


def plan_spans(question: EndedQuestion, *, content: bool = False) -> SpanPlan:
    """Return the spans of a question; `content` includes the texts of question and answer."""
    record, entries = question.record, question.entries
    attributes = _describe_question(record, content=content)
    root = SpanPlan(f"invoke_workflow {record.way or SCOPE}", record.accepted_at, record.ended_at,
                    attributes)  # fmt: skip
    if record.outcome == "failed":
        root.error = record.reason or "failed"
    branches: dict[str, SpanPlan] = {}
    waiting: defaultdict[str, list[JournalEntry]] = defaultdict(list)
    for entry in entries:
        name = str(entry.fields.get("branch") or "")
        parent = root if not name else _find_branch(root, branches, name, entry)
        if entry.kind == "model_call" and entry.fields.get("model") not in _OWN_MODELS:
            waiting[name].append(entry)
        elif entry.kind == "agent_run":
            parent.children.append(_plan_run(entry, waiting.pop(name, [])))
        elif entry.kind in _EVENTS:
            parent.events.append((entry.kind, entry.at, _pick_scalars(entry.fields)))
    for name, calls in waiting.items():  # of runs that failed and were not repeated
        parent = branches.get(name, root)
        parent.children += _plan_calls(calls, calls[0].at - _sum_seconds(calls))
    for branch in branches.values():
        times = [at for child in branch.children for at in (child.start, child.end)]
        branch.start, branch.end = min([branch.start, *times]), max([branch.end, *times])
    return root


def describe_call(fields: Mapping[str, JsonValue]) -> Attributes:
    """Return the attributes of a model call for traces and metrics."""
    model, _, provider = str(fields.get("model")).partition("@")
    operation = "embeddings" if str(fields.get("task")).startswith(_EMBEDDING) else "chat"
    attributes: Attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.request.model": model,
        "gen_ai.provider.name": provider or SCOPE,
    }
    if fields.get("answered_by"):
        attributes["gen_ai.response.model"] = str(fields["answered_by"])
    return attributes


def _make_points(
    samples: Sequence[Sample], name: str, began: int, now: int
) -> list[NumberDataPoint]:
    return [
        NumberDataPoint(dict(sample.labels), began, now, sample.value)
        for sample in samples
        if sample.name == name
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
                cumulative, [0, *(count for _, count in cumulative[:-1])], strict=True
            )
        ]
        yield HistogramDataPoint(
            dict(labels), began, now, cumulative[-1][1], sums.get(labels, 0.0), counts,
            [bound for bound, _ in cumulative[:-1]],
            None, None,  # type: ignore[arg-type] # Prometheus knows neither; OTLP has both optional
        )  # fmt: skip


def _describe_question(record: Record, *, content: bool) -> Attributes:
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": record.way,
        "gen_ai.conversation.id": record.conversation_id,
        "refdesk.message_id": record.message_id,
        "refdesk.tenant": record.tenant,
        "refdesk.assistant": record.assistant,
        "refdesk.channel": record.channel,
        "refdesk.language": record.language,
        "refdesk.outcome": record.outcome,
        "refdesk.reason": record.reason,
        "refdesk.answered_by": record.answered_by,
        "refdesk.sources": len(record.sources),
        "gen_ai.usage.input_tokens": record.input_tokens,
        "gen_ai.usage.output_tokens": record.output_tokens,
    }
    if record.quality is not None:
        attributes["gen_ai.evaluation.score.value"] = record.quality
    if record.cost_usd is not None:
        attributes["refdesk.cost_usd"] = float(record.cost_usd)
    if content:
        attributes["gen_ai.input.messages"] = _as_message("user", record.question)
        attributes["gen_ai.output.messages"] = _as_message("assistant", record.answer)
    return {name: value for name, value in attributes.items() if value != ""}


def _as_message(role: str, text: str) -> str:
    parts = [{"type": "text", "content": text}]
    return json.dumps([{"role": role, "parts": parts}], ensure_ascii=False)


def _find_branch(
    root: SpanPlan, branches: dict[str, SpanPlan], name: str, entry: JournalEntry
) -> SpanPlan:
    if name not in branches:
        began = entry.at - _seconds(entry.fields)
        branches[name] = SpanPlan(f"branch {name}", began, entry.at, {"refdesk.branch": name})
        root.children.append(branches[name])
    return branches[name]


def _plan_run(entry: JournalEntry, calls: Sequence[JournalEntry]) -> SpanPlan:
    fields = entry.fields
    role, start = str(fields.get("role")), entry.at - _seconds(fields)
    attributes: Attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": role,
        "refdesk.status": str(fields.get("status")),
    }
    gave_up = fields.get("status") == "gave_up"
    span = SpanPlan(f"invoke_agent {role}", start, entry.at, attributes,
                    "gave_up" if gave_up else "")  # fmt: skip
    span.children += _plan_calls(calls, start)
    writes = fields.get("writes")
    tools = writes.get("tool_executions") if isinstance(writes, dict) else None
    span.children += _plan_tools(read_objects(tools), entry.at)
    return span


def _plan_calls(calls: Sequence[JournalEntry], start: float) -> Iterator[SpanPlan]:
    for call in calls:
        took = _seconds(call.fields)
        yield _plan_call(call.fields, start, start + took)
        start += took


def _plan_call(fields: Mapping[str, JsonValue], start: float, end: float) -> SpanPlan:
    attributes = describe_call(fields)
    attributes["refdesk.task"] = str(fields.get("task") or "")
    for name, key in (
        ("gen_ai.usage.input_tokens", "input_tokens"),
        ("gen_ai.usage.output_tokens", "output_tokens"),
        ("gen_ai.usage.cache_read.input_tokens", "cached_input_tokens"),
    ):
        value = fields.get(key)
        if isinstance(value, int):
            attributes[name] = value
    cost = fields.get("cost_usd")
    if cost is not None:
        attributes["refdesk.cost_usd"] = float(str(cost))
    for flag in ("from_store", "from_cache"):
        if fields.get(flag):
            attributes[f"refdesk.{flag}"] = True
    # The text of an error is omitted, because it may contain parts of a prompt.
    error = "model_error" if fields.get("error") else ""
    name = f"{attributes['gen_ai.operation.name']} {attributes['gen_ai.request.model']}"
    return SpanPlan(name, start, end, attributes, error)


def _plan_tools(executions: Sequence[Mapping[str, JsonValue]], end: float) -> Iterator[SpanPlan]:
    for execution in executions:
        took = _number(execution.get("duration_ms")) / 1000
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": str(execution.get("tool_name")),
            "gen_ai.tool.call.id": str(execution.get("call_id")),
        }
        kind = str(execution.get("error_type"))
        error = "" if execution.get("success") else kind
        yield SpanPlan(
            f"execute_tool {execution.get('tool_name')}", end - took, end, attributes, error
        )


def _pick_scalars(fields: Mapping[str, JsonValue]) -> Attributes:
    """Return the slugs and numbers of an event, without texts, which may quote users."""
    names = ("role", "row", "stage", "event", "target", "budget", "limit", "used")
    picked = {name: fields.get(name) for name in names}
    return {name: value for name, value in picked.items() if isinstance(value, str | int | float)}


def _seconds(fields: Mapping[str, JsonValue]) -> float:
    return _number(fields.get("milliseconds")) / 1000


def _sum_seconds(calls: Sequence[JournalEntry]) -> float:
    return sum(_seconds(call.fields) for call in calls)


def _number(value: JsonValue) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def connect(
    endpoint: str,
    headers: Mapping[str, str],
    *,
    service: str,
    release: str,
    registry: "CollectorRegistry | None",
    content: bool,
    metrics: bool = True,
) -> OpenTelemetry:
    """Return an exporter to an OTLP/HTTP endpoint; raises `ImportError` if the extra is not
    installed.
    """

    place, sent = endpoint.rstrip("/"), dict(headers)
    return OpenTelemetry(
        OTLPSpanExporter(f"{place}/v1/traces", headers=sent, timeout=SEND_SECONDS),
        OTLPMetricExporter(f"{place}/v1/metrics", headers=sent, timeout=SEND_SECONDS)
        if metrics
        else None,
        service=service,
        release=release,
        registry=registry,
        content=content,
    )


def _make_reader(
    metrics: MetricExporter, registry: CollectorRegistry | None
) -> PeriodicExportingMetricReader:
    """Return a reader that exports the metrics of the registry together with the metrics of the
    SDK.
    """
    exporter = metrics if registry is None else _BridgeExporter(metrics, registry, SCOPE)
    return PeriodicExportingMetricReader(exporter, export_interval_millis=METRICS_SECONDS * 1000)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * NANOSECONDS)


def _make_ids() -> Any:

    class QuestionIds(IdGenerator):
        """Generates the derived ids of one trace at a time; not thread-safe."""

        def __init__(self) -> None:
            self.begin(1)

        def begin(self, trace_id: int) -> None:
            self._trace_id, self._number = trace_id, 0

        def generate_trace_id(self) -> int:
            return self._trace_id

        def generate_span_id(self) -> int:
            number, self._number = self._number, self._number + 1
            return make_span_id(self._trace_id, number)

    return QuestionIds()
