"""Ingests sources again: one immediately, or all recorded ones periodically."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from uuid import uuid4

import structlog

from broker.errors import BrokerError, BrokerUnavailableError
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.ingestion import ingest_by_owner
from deploy.assembly.runtime import Runtime
from deploy.assembly.webhooks import announce_failed_source
from deploy.errors import CommandError
from knowledge.errors import KnowledgeError, SourceError
from knowledge.ingestion_report import IngestionResult, ProgressReport
from knowledge.source_registry import RegisteredSource, SourceSpec
from memory.errors import MemoryUnavailableError
from memory.presence import RedisDuty

log = structlog.get_logger("ingestion")
LEASE_SECONDS = 60.0
RENEWAL_SECONDS = 15.0
CHECK_SECONDS = 10.0
"""How often a process checks whether a source is due, and whether the process that refreshes the
sources has ended.
"""


async def refresh_source(
    runtime: Runtime, source: RegisteredSource, report: ProgressReport | None = None
) -> None:
    """Ingest a source of the assistant of `runtime` again, and record the result.

    Raises `BrokerUnavailableError` if Redis is unavailable, because this is not a failure of the
    source.
    """
    # Imported here, because only a process that refreshes sources needs a crawler.
    from deploy.assembly.source_opening import fetch_sources

    settings = runtime.settings
    registry, spec = open_source_registry(settings.data_place), source.spec
    report = ProgressReport() if report is None else report
    failure: Exception
    try:
        fetched = await fetch_sources(settings, [spec], report)
        result = await ingest_by_owner(runtime.broker, settings.assistant_key, fetched, report)
    except BrokerUnavailableError:
        raise
    except (KnowledgeError, BrokerError, CommandError, OSError) as error:
        log.warning("source_not_refreshed", source=spec.root, error=str(error))
        failure = error
    except Exception as error:
        # A failure of one source must not stop the others.
        log.error("source_not_refreshed", source=spec.root, error=str(error), exc_info=error)
        failure = error
    else:
        await _record_result(runtime, spec, result)
        return
    await asyncio.to_thread(registry.record_error, spec, failure)
    await announce_failed_source(runtime, spec.root, str(failure))


def find_failure(spec: SourceSpec, result: IngestionResult) -> str:
    """Return the reason why nothing in a source could be read, or an empty string if something was
    read.
    """
    return next((reason for place, reason in result.failed if place == spec.root), "")


@asynccontextmanager
async def refresh(runtime: Runtime, every_seconds: float | None) -> AsyncIterator[None]:
    """Ingest each recorded source on its schedule, and sources without a schedule `every_seconds`
    after their last ingestion.

    If several processes share this data folder, only one of them does this at a time.
    """
    client = runtime.endpoint.client()
    try:
        listed = open_source_registry(runtime.settings.data_place).read()
        duty = RedisDuty(client, "ingestion", f"refresh-{listed.id}", uuid4().hex)
        work = partial(_refresh_repeatedly, runtime, duty, every_seconds)
        async with runtime.jobs.running("source_refresh", work):
            yield
    finally:
        await client.aclose()


async def refresh_due_sources(runtime: Runtime, every_seconds: float | None) -> None:
    """Ingest the sources that are due, one after the other; log and record failures."""
    listed = open_source_registry(runtime.settings.data_place).read()
    served = {assistant.assistant_key: assistant for assistant in runtime.settings.of_assistants()}
    for source in sorted(listed.sources, key=lambda item: item.read_at):
        settings = served.get((source.tenant, source.assistant))
        if source.fault:
            log.warning("source_not_scheduled", source=source.spec.root, error=source.fault)
            continue
        due = source.next_at(every_seconds) if source.read_at or not source.schedule else 0.0
        if settings is not None and due is not None and time.time() >= due:
            await refresh_source(replace(runtime, settings=settings), source)


async def _record_result(runtime: Runtime, spec: SourceSpec, result: IngestionResult) -> None:
    registry = open_source_registry(runtime.settings.data_place)
    await asyncio.to_thread(registry.record, [spec], result)
    if failure := find_failure(spec, result):
        await announce_failed_source(runtime, spec.root, failure)
    for place, reason in result.failed:
        log.warning("document_not_refreshed", source=spec.root, document=place, reason=reason)
    log.info(
        "source_refreshed",
        source=spec.root,
        added=result.added,
        changed=result.changed,
        removed=result.removed,
        failed=len(result.failed),
    )


async def _refresh_repeatedly(
    runtime: Runtime, duty: RedisDuty, every_seconds: float | None
) -> None:
    while True:
        try:
            if await duty.keep(LEASE_SECONDS):
                async with asyncio.TaskGroup() as tasks:
                    renewing = tasks.create_task(_renew(duty))
                    await refresh_due_sources(runtime, every_seconds)
                    renewing.cancel()
        except* MemoryUnavailableError as group:
            log.warning("refresh_lease_unavailable", error=str(group.exceptions[0]))
        except* SourceError as group:
            log.warning("source_list_unreadable", error=str(group.exceptions[0]))
        await asyncio.sleep(min(every_seconds or CHECK_SECONDS, CHECK_SECONDS))


async def _renew(duty: RedisDuty) -> None:
    while True:
        await asyncio.sleep(RENEWAL_SECONDS)
        await duty.keep(LEASE_SECONDS)
