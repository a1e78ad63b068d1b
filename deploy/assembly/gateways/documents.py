"""Assembles the channels' access to the documents of assistants, for reading and changing them."""

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import structlog

from broker.ports import Broker
from config.settings import Settings
from deploy.assembly.agent_factory import open_own_index
from deploy.assembly.languages import language_of, make_detector
from deploy.assembly.runtime import Runtime
from gateway.documents.catalog import OwnedCatalog, OwnedLibrary
from gateway.documents.index_owner import Name, ask_owner
from gateway.documents.indexed_documents import IndexedDocuments
from gateway.documents.uploads import Uploads
from gateway.http.review_documents import StoredAttachments
from knowledge.errors import IndexUnavailable
from knowledge.index.port import Index
from memory.work_store import MOST_ATTACHMENTS, RedisAttachments

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from broker.values import Fields
    from knowledge.isolation.reader_process import ReaderProcess
    from knowledge.open_index import OpenIndex

log = structlog.get_logger("gateway")


def documents_of(runtime: Runtime) -> IndexedDocuments | None:
    """Return the documents in the opened index or in an index on a server, or None."""
    settings = runtime.settings
    opened: dict[Name, Index] = {}
    if runtime.knowledge is not None:
        known = {settings.assistant_key: runtime.knowledge, **runtime.knowledge.others}
        opened = {name: index.index for name, index in known.items()}
    elif settings.qdrant_url is None:
        # An embedded index has one owner, which is another process here.
        return None
    openers = {
        assistant.assistant_key: partial(open_own_index, assistant)
        for assistant in settings.of_assistants()
    }
    return IndexedDocuments(openers, opened)


def make_attachments(
    settings: Settings, client: "Redis", *, most_documents: int = MOST_ATTACHMENTS
) -> StoredAttachments:
    """Return the store for conversation documents, which are parsed in the same way as during
    ingestion.
    """

    def make_reader(stack: ExitStack) -> "ReaderProcess":
        from knowledge.isolation.messages import ReadingLimits
        from knowledge.isolation.reader_process import ReaderProcess

        return stack.enter_context(
            ReaderProcess(
                ReadingLimits(
                    seconds=settings.ingestion_file_seconds,
                    memory_mb=settings.ingestion_file_memory_mb,
                )
            )
        )

    store = RedisAttachments(
        client,
        shards=settings.shards,
        ttl_of=settings.find_memory_seconds,
        most_documents=most_documents,
    )
    return StoredAttachments(
        store,
        make_reader,
        lambda: language_of(make_detector(settings.refdesk_data), settings.default_language),
    )


def make_catalog(
    settings: Settings,
    broker: Broker,
    opened: IndexedDocuments | None,
    **changes: float,
) -> OwnedCatalog:
    """Return the catalog of the assistants; `opened` contains the indexes that this process can
    read.
    """
    uploads = {
        assistant.assistant_key: Uploads(*assistant.data_place)
        for assistant in settings.of_assistants()
    }
    return OwnedCatalog(uploads, partial(_ask, broker), opened, **changes)


def make_library(runtime: Runtime) -> OwnedLibrary:
    """Return the library through which programs read the assistants' documents."""
    own = runtime.settings.assistant_key

    def find_own(name: Name) -> "OpenIndex | None":
        knowledge = runtime.knowledge
        return None if knowledge is None else knowledge.of(*name, own=own)

    return OwnedLibrary(find_own, partial(_ask, runtime.broker))


async def _ask(broker: Broker, name: Name, request: "Fields", seconds: float) -> "Fields":
    """Return the reply of the process that owns the index; raises `IndexUnavailable`."""
    try:
        return await ask_owner(broker, name, request, seconds=seconds)
    except IndexUnavailable as error:
        log.warning("index_owner_failed", reason=str(error))
        raise
