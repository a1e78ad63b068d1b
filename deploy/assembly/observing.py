"""Assembles the measurement of finished questions, for processes with metrics or telemetry."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from importlib.metadata import version
from typing import TYPE_CHECKING

from pydantic import SecretStr
from structlog.typing import EventDict, WrappedLogger

from broker.background_jobs import BackgroundJobs
from broker.errors import BrokerUnavailableError
from broker.ports import Broker
from config.settings import Settings
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.role_slots import INSTANCES
from deploy.errors import CommandError
from deploy.logging_setup import forwarding, processing
from envelope.question import Question
from envelope.role import INGESTING
from worker.log_context import PRESENT

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from telemetry.error_tracking import ErrorTracker
    from telemetry.observer import QuestionSink
    from telemetry.opentelemetry import OpenTelemetry

DRAIN_SECONDS = 2.0
MISSING = "{setting} requires a package: pip install '.[{extra}]' in the checkout"


def needs_meter(otlp_endpoint: str | None, port: int) -> bool:
    """Return whether metrics of a process can be read at this port or are sent to an endpoint."""
    return port > 0 or otlp_endpoint is not None


@asynccontextmanager
async def observing(
    broker: Broker,
    settings: Settings,
    registry: "CollectorRegistry | None",
    jobs: BackgroundJobs,
) -> AsyncIterator[None]:
    """Measure finished questions, send telemetry and report errors according to the settings.

    Does nothing without a `registry` and without such a setting.
    """
    async with AsyncExitStack() as stack:
        sender = connect_telemetry(
            settings.otel_exporter_otlp_endpoint,
            registry,
            headers=settings.otlp_headers(),
            service=settings.otel_service_name,
            content=settings.telemetry_content,
            metrics=settings.otel_metrics_exporter == "otlp",
        )
        tracker = connect_tracker(settings.sentry_dsn)
        if tracker is not None:
            stack.enter_context(_reporting(tracker))
        if sender is None and registry is None:
            yield
            return
        if registry is not None:
            from knowledge.source_metrics import SourceMetrics
            from telemetry.job_metrics import JobMetrics

            registry.register(SourceMetrics(open_source_registry(settings.data_place)))
            registry.register(JobMetrics(jobs))
            await stack.enter_async_context(_measure_queues(broker, registry, jobs))
        async with _measuring(broker, sender, registry, jobs):
            if sender is not None:
                stack.enter_context(processing(add_trace_id))
            yield
            await stack.aclose()
        if sender is not None:
            await asyncio.to_thread(sender.close)


def connect_telemetry(
    endpoint: str | None,
    registry: "CollectorRegistry | None",
    *,
    headers: Mapping[str, str],
    service: str,
    content: bool,
    metrics: bool = True,
) -> "OpenTelemetry | None":
    """Return the sender of telemetry, or None. Raises `CommandError` if the required extra is not
    installed.
    """
    if endpoint is None:
        return None
    try:
        from telemetry.opentelemetry import connect

        return connect(
            endpoint,
            headers,
            service=service,
            release=version("refdesk"),
            registry=registry,
            content=content,
            metrics=metrics,
        )
    except ImportError as error:
        names = {"setting": "OTEL_EXPORTER_OTLP_ENDPOINT", "extra": "opentelemetry"}
        raise CommandError(MISSING.format(**names)) from error


def connect_tracker(dsn: SecretStr | None) -> "ErrorTracker | None":
    """Return the error reporter, or None. Raises `CommandError` if the required extra is not
    installed.
    """
    if dsn is None:
        return None
    from telemetry.error_tracking import ErrorTracker

    try:
        return ErrorTracker(dsn.get_secret_value(), release=version("refdesk"))
    except ImportError as error:
        raise CommandError(MISSING.format(setting="SENTRY_DSN", extra="sentry")) from error
    except ValueError as error:
        expected = "an address such as https://KEY@sentry.acme.com/1"
        raise CommandError(f"SENTRY_DSN: expected {expected}: {error}") from error


def add_trace_id(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Add the trace id of the current question to a log line."""
    from telemetry.observer import find_root_id, find_trace_id

    delivery = PRESENT.get()
    if delivery is not None:
        trace_id = find_trace_id(delivery.question)
        event["trace_id"] = f"{trace_id:032x}"
        event["span_id"] = f"{find_root_id(trace_id):016x}"
    return event


@asynccontextmanager
async def _measure_queues(
    broker: Broker, registry: "CollectorRegistry", jobs: BackgroundJobs
) -> AsyncIterator[None]:
    """Show the queues of all roles, including those that this process does not run.

    If all workers of a role have died, only other processes can report its queue.
    """
    from worker.metrics import Depths

    depths = Depths(broker.admin, [*INSTANCES, *sorted(INGESTING)])
    registry.register(depths)
    try:
        async with jobs.running("queue_depths", depths.run):
            yield
    finally:
        registry.unregister(depths)


@asynccontextmanager
async def _measuring(
    broker: Broker,
    sender: "OpenTelemetry | None",
    registry: "CollectorRegistry | None",
    jobs: BackgroundJobs,
) -> AsyncIterator[None]:
    from telemetry.observer import QuestionObserver

    wanted = asyncio.Event()
    sinks: list[QuestionSink] = []
    if registry is not None:
        from telemetry.question_metrics import QuestionMetrics

        metrics = QuestionMetrics(wanted)
        registry.register(metrics)
        sinks.append(metrics)
    if sender is not None:
        sinks.append(sender)
        wanted.set()
    observer = QuestionObserver(broker.observed, broker.replies, sinks, wanted=wanted)
    async with jobs.running("telemetry", observer.run) as running:
        try:
            yield
        finally:
            await observer.end(running)
    with suppress(BrokerUnavailableError, TimeoutError):
        # A command that asked one question ends before the next check.
        async with asyncio.timeout(DRAIN_SECONDS):
            await observer.drain()


@contextmanager
def _reporting(tracker: "ErrorTracker") -> Iterator[None]:
    from telemetry.observer import find_trace_id

    def report(event: EventDict, question: Question | None) -> None:
        tracker.report(event, None if question is None else find_trace_id(question))

    with forwarding(report):
        yield
    tracker.close()
