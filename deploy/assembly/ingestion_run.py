"""Runs an ingestion into the index in use, or into one that will replace it.

An index contains the vectors of one embedding model. If a different model, prefix, or vector length
is configured, a second index is written next to the first one, which continues to serve questions.
The second index replaces it once it contains the documents of all sources in the first one.
"""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.ingestion import find_orders, ingest_alone, ingest_by_owner
from deploy.assembly.knowledge import (
    IndexPlace,
    identify_vectors,
    locate_index,
    make_embedder,
    open_collections,
    open_knowledge,
    open_replacement,
)
from deploy.assembly.runtime import connect_runtime, ready_to_take_over, run_maintenance
from deploy.errors import CommandError
from gateway.documents.index_owner import ask_owner
from knowledge.embedding_forms import VectorIdentity
from knowledge.errors import IndexOwned
from knowledge.index.listing import ListedDocument
from knowledge.owner_requests import OwnerRequest, act_on_documents

if TYPE_CHECKING:
    from broker.values import Fields
    from config.settings import Settings
    from knowledge.ingestion_report import IngestionResult, Report
    from knowledge.source_registry import FetchedSource, SourceSpec
    from worker.distributed_ingestion import Orders

_MOST_NAMED = 3
_LISTED = TypeAdapter(list[ListedDocument])


async def run_ingestion(
    settings: "Settings", sources: "Sequence[Path | SourceSpec]", report: "Report"
) -> "IngestionResult":
    """Ingest sources in this process, or in the process that owns the index."""
    # Imported here, because a request about documents does not need a crawler.
    from deploy.assembly.source_opening import fetch_sources

    fetched = await fetch_sources(settings, sources, report)
    wanted = identify_vectors(make_embedder(settings))
    try:
        async with open_knowledge(settings, alone=True) as knowledge:
            if (await knowledge.index.info()).vectors == wanted:
                async with _finding_orders(settings) as orders:
                    return await ingest_alone(settings, knowledge, fetched, report, orders=orders)
    except IndexOwned:
        async with connect_runtime(settings) as runtime, ready_to_take_over(runtime, ()):
            check = OwnerRequest(action="check")
            reply = await ask_owner(runtime.broker, settings.assistant_key, check.encode())
            # A process of an earlier version does not state its model, which it uses to ingest.
            if read_vectors(reply.get("vectors")) in (None, wanted):
                return await ingest_by_owner(
                    runtime.broker, settings.assistant_key, fetched, report
                )
    return await _ingest_replacement(settings, fetched, wanted, report)


async def request_documents(settings: "Settings", request: OwnerRequest) -> "Fields":
    """Execute a request in this process, or in the process that owns the index."""
    try:
        async with open_knowledge(settings, alone=True) as knowledge:
            return await act_on_documents(knowledge.index, request)
    except IndexOwned:
        async with connect_runtime(settings) as runtime, ready_to_take_over(runtime, ()):
            return await ask_owner(runtime.broker, settings.assistant_key, request.encode())


def read_vectors(stored: object) -> VectorIdentity | None:
    """Return the identity of the vectors in a reply of the process that owns the index, or None."""
    if not isinstance(stored, list) or len(stored) != len(VectorIdentity._fields):
        return None
    model, dimensions, forms = map(str, stored)
    return VectorIdentity(model, int(dimensions), forms)


async def find_replacement_notes(settings: "Settings", serving: VectorIdentity) -> list[str]:
    """Return notes for the operator if the configured embedding model differs from the model of the
    index.
    """
    wanted = identify_vectors(make_embedder(settings))
    if serving == wanted:
        return []
    note = f"questions are answered from the index of {_describe(serving)}"
    if not await _has_replacement(locate_index(settings), wanted):
        return [f"{note}; run refdesk ingest for one of {_describe(wanted)}"]
    try:
        async with open_replacement(settings) as knowledge:
            info = await knowledge.index.info()
    except IndexOwned:
        return [f"{note}; the index of {_describe(wanted)} is being written"]
    return [
        f"{note}; the index of {_describe(wanted)} is not complete, with {info.documents} "
        "documents: "
        "repeat refdesk ingest"
    ]


async def _ingest_replacement(
    settings: "Settings",
    given: "Sequence[FetchedSource]",
    wanted: VectorIdentity,
    report: "Report",
) -> "IngestionResult":
    """Ingest all sources into the replacement index; switch to it if nothing is missing from it."""
    from deploy.assembly.source_opening import fetch_sources

    roots = {source.spec.root for source in given}
    further = [
        spec
        for spec in open_source_registry(settings.data_place).list_specs()
        if spec.root not in roots
    ]
    sources = [*given, *await fetch_sources(settings, further, report)]
    before = await _list_serving(settings)
    try:
        async with open_replacement(settings) as knowledge:
            result = await ingest_alone(settings, knowledge, sources, report, before)
            written = set(await knowledge.index.versions())
    except IndexOwned as error:
        raise CommandError(
            f"another process is already writing the index of {_describe(wanted)}: wait until it "
            f"has finished"
        ) from error
    serving = await _list_serving(settings)
    left = {document.id: document.root for document in serving if document.id not in written}
    reason = _find_reason(left, [source.spec.root for source in sources], result)
    if not reason:
        return replace(result, replacement=await _switch(locate_index(settings), wanted))
    return replace(
        result,
        replacement=f"the index of {_describe(wanted)} is not used for answers yet: {reason} "
        f"(refdesk documents remove), then repeat refdesk ingest",
    )


@asynccontextmanager
async def _finding_orders(settings: "Settings") -> "AsyncIterator[Orders | None]":
    """Provide access to other processes that read and write documents, if there are any."""
    if settings.qdrant_url is None or settings.redis_url is None:
        yield None
        return
    async with connect_runtime(settings) as runtime, run_maintenance(runtime):
        client = runtime.endpoint.client()
        try:
            yield await find_orders(settings, settings.assistant_key, runtime.broker, client)
        finally:
            await client.aclose()


def _find_reason(left: Mapping[str, str], read: Sequence[str], result: "IngestionResult") -> str:
    """Return the reason why a replacement index is incomplete, or an empty string.

    `left` maps the documents that the index does not contain to their sources. Such a document is
    not missing if its source was read without errors, because it no longer exists in the source.
    """
    known = set(map(os.path.realpath, read))
    unread = sorted({root for root in left.values() if os.path.realpath(root) not in known})
    if unread:
        return f"the sources {_name(unread)} are missing; ingest or remove them"
    if left and result.failed:
        return f"the documents {_name(sorted(left))} are missing; fix their errors, or remove them"
    return ""


async def _switch(place: IndexPlace, wanted: VectorIdentity) -> str:
    if place.url is not None:
        async with open_collections(place) as collections:
            await collections.switch(collections.name_replacement(wanted))
        return (
            f"the index of {_describe(wanted)} is used for answers from now on, also in running "
            "processes; the earlier collection is removed by the next replacement"
        )
    folders = place.folders
    folders.switch(folders.name_replacement(wanted))
    done = f"the index of {_describe(wanted)} is used for answers from now on"
    if folders.remove_replaced():
        return (
            f"{done}; processes that are already running use the earlier index until they "
            "are restarted, after which it is removed"
        )
    return f"{done}; the earlier index was removed"


async def _list_serving(settings: "Settings") -> list[ListedDocument]:
    """Return the documents in the serving index."""
    listed: list[ListedDocument] = []
    while True:
        after = listed[-1].id if listed else ""
        request = OwnerRequest(action="list", after=after)
        entries = (await request_documents(settings, request)).get("documents")
        some = _LISTED.validate_python(entries)
        if not some:
            return listed
        listed += some


async def _has_replacement(place: IndexPlace, wanted: VectorIdentity) -> bool:
    """Return whether an index with these vectors is being written, or was left incomplete."""
    if place.url is None:
        folders = place.folders
        return folders.has(folders.name_replacement(wanted))
    async with open_collections(place) as collections:
        return await collections.has(collections.name_replacement(wanted))


def _describe(vectors: VectorIdentity) -> str:
    forms = f", {vectors.forms}" if vectors.forms else ""
    return f"{vectors.model} ({vectors.dimensions} dimensions{forms})"


def _name(things: Sequence[str]) -> str:
    more = f" and {len(things) - _MOST_NAMED} more" if len(things) > _MOST_NAMED else ""
    return ", ".join(things[:_MOST_NAMED]) + more
