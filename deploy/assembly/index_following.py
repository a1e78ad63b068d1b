"""Switches running processes to another index of a Qdrant server, without a restart."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from uuid import uuid4

import structlog

from config.settings import Settings
from knowledge.errors import KnowledgeError
from manager.evidence import INDEX_READERS, name_index_version
from worker.agent_handler import Assistant, ReadIndexVersion

if TYPE_CHECKING:
    from knowledge.index.server.server_collections import ServerCollections


CHECK_SECONDS = 2.0
"""How long a process may answer from an index that was replaced."""
log = structlog.get_logger("knowledge")

Opened = TypeVar("Opened")
Adopted = TypeVar("Adopted", contravariant=True)


class AdoptingKnowledge(Protocol[Adopted]):
    """Answers from an index, until it adopts another one."""

    def adopt(self, opened: Adopted) -> None: ...


class ServerFollower(Generic[Opened]):
    """Asks the server at most every `CHECK_SECONDS` which collection answers.

    `serving` is the collection that answered when the index was opened, `open_serving` opens the
    one that answers now. Searches that run when it
    is replaced end in the earlier collection, which is there until the next replacement.
    """

    def __init__(
        self,
        collections: "ServerCollections",
        serving: str,
        open_serving: Callable[[], Awaitable[Opened]],
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._collections = collections
        self._serving = serving
        self._open_serving = open_serving
        self._clock = clock
        self._due = clock() + CHECK_SECONDS
        self._following = asyncio.Lock()

    async def __call__(self, knowledge: AdoptingKnowledge[Opened]) -> None:
        """Make `knowledge` use the index that answers now; raises `KnowledgeError`."""
        if self._clock() < self._due:
            return
        async with self._following:
            if self._clock() < self._due:
                return
            serving = await self._collections.find_serving()
            if serving != self._serving:
                knowledge.adopt(await self._open_serving())
                self._serving = serving
                log.info("index_replaced", collection=serving)
            self._due = self._clock() + CHECK_SECONDS


@asynccontextmanager
async def open_collections(settings: Settings) -> "AsyncIterator[ServerCollections]":
    """Open the collections of the assistant on `QDRANT_URL`."""
    from knowledge.index.server.server_collections import ServerCollections
    from knowledge.index.server.server_engine import connect_server

    url, key = settings.qdrant_url, settings.qdrant_api_key
    if url is None:
        raise ValueError("expected QDRANT_URL, found none")
    client = connect_server(url, api_key=None if key is None else key.get_secret_value())
    try:
        yield ServerCollections(client, settings.tenant, settings.assistant, url)
    finally:
        await client.close()


_PROCESS = uuid4().hex[:8]
"""An index in the process counts its own changes: other processes count others."""


class RevisedIndex(Protocol):
    """An index that counts its changes; `follow_server` is None for one of this process."""

    @property
    def follow_server(self) -> object: ...

    async def read_revision(self) -> str:
        """Return the revision that answers now; raises `KnowledgeError` if it cannot be read."""
        ...


class IndexUser(Protocol):
    """What the agents of an assistant share; `knowledge` is None where they have no index."""

    @property
    def knowledge(self) -> RevisedIndex | None: ...


def make_version_reader(role: str, users: Mapping[Assistant, IndexUser]) -> ReadIndexVersion | None:
    """Return a function from an assistant to the version of its index; "" if it cannot be read.

    None for a role whose index version is no evidence.
    """
    if role not in INDEX_READERS:
        return None

    async def read(assistant: Assistant) -> str:
        user = users.get(assistant)
        knowledge = None if user is None else user.knowledge
        if knowledge is None:
            return ""
        try:
            revision = await knowledge.read_revision()
        except KnowledgeError:
            # The hop itself reads the index next, and reports the fault.
            return ""
        is_own = knowledge.follow_server is None
        return name_index_version(revision, counted_by=_PROCESS if is_own else "")

    return read
