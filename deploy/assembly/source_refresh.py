"""Reads a source again."""

import asyncio
from dataclasses import replace

import structlog

from broker.errors import BrokerError
from config.settings import Settings
from deploy.assembly.ingestion import fetch, ingest_by_owner
from deploy.assembly.runtime import Runtime
from deploy.assembly.source_registry import RegisteredSource, SourceRegistry
from deploy.assembly.webhooks import announce_failed_source
from deploy.errors import CommandError
from knowledge.errors import KnowledgeError
from knowledge.ingestion_report import PlainReport

log = structlog.get_logger("ingestion")


async def refresh_source(runtime: Runtime, settings: Settings, source: RegisteredSource) -> None:
    """Read a source again, and record the result."""
    registry, spec = SourceRegistry(settings), source.spec
    quiet = PlainReport(lambda _line: None)
    try:
        fetched = await fetch(settings, [spec], quiet)
        result = await ingest_by_owner(runtime.broker, settings, fetched, quiet)
    except (KnowledgeError, BrokerError, CommandError, OSError) as error:
        log.warning("source_not_refreshed", source=spec.root, error=str(error))
        await asyncio.to_thread(registry.record_error, spec, error)
        await announce_failed_source(replace(runtime, settings=settings), spec.root, error)
        return
    await asyncio.to_thread(registry.record, [spec], result)
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
