"""The HTTP server on a real socket, before a desk whose agents follow a script."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx
from fastapi import APIRouter
from starlette.routing import BaseRoute

from broker.values import Fields
from gateway.api_keys import StoredKeys, make_key
from gateway.chat.people import PersonDigests
from gateway.connections.server import listening, serving
from gateway.conversations import Conversations
from gateway.desk import Desk
from gateway.http.access import AllowedHosts, Guard
from gateway.http.app import make_app
from gateway.http.context import HttpChannel, HttpMeter, Release
from gateway.http.links import Name, SourceLinks
from gateway.http.routes.catalog import Catalog
from gateway.http.routes.documents import reader_router
from gateway.http.routes.reviews import ReviewParts
from gateway.http.visitors import VisitorLimits, Visitors
from gateway.mcp.endpoint import make_endpoint
from gateway.person_tokens import PersonTokens
from gateway.port import (
    CatalogEntry,
    CatalogSelection,
    CatalogUpload,
    Documents,
    HandOver,
    ReadableDocument,
    ReadableSection,
    SearchableLibrary,
    StoredPicture,
)
from knowledge.library.shown import LibraryDocument, LibraryFindings, LibraryPassage
from manager.flows import NEWEST
from memory.errors import MemoryUnavailableError
from memory.http_state import RedisRates
from tests.support.waiting import within
from tests.support.worker_harness import WorkerHarness

WEBSITE = "https://www.acme.test"
SECRET = b"signs the links of tests"
STORES = (MemoryUnavailableError,)
"""Errors of stores that do not answer."""
ASSISTANTS = (("acme", "docs"), ("acme", "api"), ("other", "docs"))


DOCUMENT = ReadableDocument(
    title="Routing rules",
    crumbs=("Routing", "Routing rules"),
    language="en",
    sections=(
        ReadableSection((), "routing-rules", "Rules say which way a message takes."),
        ReadableSection(("Create a rule",), "create-a-rule", "Choose `New rule`.", cited=True),
    ),
)


class FakeDocuments:
    """Documents by assistant and chunk; remembers for whose groups they were read."""

    def __init__(self, *kept: tuple[str, str, str, ReadableDocument]) -> None:
        self.kept = {
            (tenant, assistant, chunk): document for tenant, assistant, chunk, document in kept
        }
        self.pictures: dict[str, StoredPicture] = {}
        self.readers: list[tuple[str, ...]] = []

    async def citing(
        self, tenant: str, assistant: str, chunk_id: str, groups: tuple[str, ...]
    ) -> ReadableDocument | None:
        self.readers.append(groups)
        return self.kept.get((tenant, assistant, chunk_id))

    async def picture(
        self, tenant: str, assistant: str, chunk_id: str, picture: str, groups: tuple[str, ...]
    ) -> StoredPicture | None:
        document = await self.citing(tenant, assistant, chunk_id, groups)
        named = (
            () if document is None else (one for s in document.sections for one, _ in s.pictures)
        )
        return self.pictures.get(picture) if picture in named else None


class FakeCatalog:
    """Documents of operators by tenant and assistant."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], dict[str, CatalogEntry]] = {}

    def put(self, tenant: str, assistant: str, *ids: str) -> None:
        for id_ in ids:
            entry = CatalogEntry(id_, f"Title of {id_}", f"{id_}.md", "en", 1)
            self.kept.setdefault((tenant, assistant), {})[id_] = entry

    async def find(
        self,
        tenant: str,
        assistant: str,
        selection: CatalogSelection,
        *,
        after: str = "",
        limit: int,
    ) -> tuple[Sequence[CatalogEntry], int]:
        result = self._select(tenant, assistant, selection)
        return [entry for entry in result if entry.id > after][:limit], len(result)

    async def remove(self, tenant: str, assistant: str, selection: CatalogSelection) -> int:
        result = self._select(tenant, assistant, selection)
        for entry in result:
            del self.kept[tenant, assistant][entry.id]
        return len(result)

    async def write(self, tenant: str, assistant: str, name: str, data: bytes) -> CatalogUpload:
        if ".." in name:
            return CatalogUpload(refused="expected a file name")
        return CatalogUpload(written=1)

    def _select(
        self, tenant: str, assistant: str, selection: CatalogSelection
    ) -> list[CatalogEntry]:
        kept = self.kept.get((tenant, assistant), {})
        wanted = [*(selection.ids or ()), *(selection.patterns or ())]
        text = selection.text.casefold()
        is_all = selection == CatalogSelection()
        return [
            kept[id_]
            for id_ in sorted(kept)
            if is_all or id_ in wanted or (text and text in kept[id_].title.casefold())
        ]


class FakeLibrary:
    """Documents by tenant and assistant, with the groups that may read them; all match a query."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], list[tuple[LibraryDocument, frozenset[str]]]] = {}
        self.queries: list[str] = []

    def put(self, tenant: str, assistant: str, *groups: str, **fields: Any) -> None:
        document = LibraryDocument(**{"title": f"Title of {fields['id']}", **fields})
        kept = self.kept.setdefault((tenant, assistant), [])
        kept.append((document, frozenset(groups)))

    def _visible(self, tenant: str, assistant: str, groups: Sequence[str]) -> list[LibraryDocument]:
        kept = self.kept.get((tenant, assistant), [])
        seen = [document for document, needed in kept if not needed or needed & set(groups)]
        return sorted(seen, key=lambda item: item.id)

    async def search(
        self, tenant: str, assistant: str, query: str, *, groups: Sequence[str], limit: int
    ) -> LibraryFindings:
        self.queries.append(query)
        results = [
            LibraryPassage(
                chunk_id=f"{document.id}#{number}",
                document_id=document.id,
                title=document.title,
                text=f"Passage {number} of {document.id}",
                url=document.url,
                path=document.source,
                score=1.0 / number,
            )
            for document in self._visible(tenant, assistant, groups)
            for number in (1, 2)
        ]
        return LibraryFindings(passages=tuple(results[:limit]), quality="good", total=len(results))

    async def read(
        self, tenant: str, assistant: str, document_id: str, *, groups: Sequence[str]
    ) -> LibraryDocument | None:
        seen = self._visible(tenant, assistant, groups)
        return next((document for document in seen if document.id == document_id), None)

    async def browse(
        self, tenant: str, assistant: str, *, groups: Sequence[str], after: str, limit: int
    ) -> Sequence[LibraryDocument]:
        return [
            document for document in self._visible(tenant, assistant, groups) if document.id > after
        ][:limit]


@dataclass
class RecordedRequests:
    """One event as a client gets it."""

    id: str
    name: str
    data: Fields


@dataclass
class HttpServerFixture:
    """An open server: `url`, its keys, and its parts."""

    harness: WorkerHarness
    url: str
    keys: StoredKeys
    stopping: asyncio.Event
    meter: HttpMeter
    channel: HttpChannel
    routes: Sequence[BaseRoute]
    catalog: FakeCatalog
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    def client(self, token: str = "", **headers: str) -> httpx.AsyncClient:
        """A client with this key."""
        authorization = {"Authorization": f"Bearer {token}"} if token else {}
        made = httpx.AsyncClient(
            base_url=self.url, headers={**authorization, **headers}, timeout=None
        )
        self.clients.append(made)
        return made

    async def key(self, tenant: str = "acme", **fields: object) -> str:
        """Make a secret key."""
        key, token = make_key("secret", tenant=tenant, **fields)
        await self.keys.put(key)
        return token

    async def secret(self, tenant: str = "acme", **fields: object) -> httpx.AsyncClient:
        """A client with a new secret key."""
        return self.client(await self.key(tenant, **fields))

    async def public(self, **fields: object) -> str:
        """Make a public key of the website."""
        made: dict[str, Any] = {"tenant": "acme", "origins": (WEBSITE,), **fields}
        key, token = make_key("public", **made)
        await self.keys.put(key)
        return token

    async def visitor(self, token: str) -> "VisitorClient":
        """A visitor of the website who opened a conversation."""
        client = self.client(token, Origin=WEBSITE)
        opened = await client.post("/v1/conversations")
        assert opened.status_code == 201, opened.text
        body = opened.json()
        client.headers["X-Conversation-Token"] = body["token"]
        return VisitorClient(client, body["conversation_id"])


@dataclass
class VisitorClient:
    """Somebody who looks at the website."""

    client: httpx.AsyncClient
    conversation_id: str

    @property
    def path(self) -> str:
        return f"/v1/conversations/{self.conversation_id}"


@asynccontextmanager
async def open_http_server(
    harness: WorkerHarness,
    *,
    open_tenant: str | None = "acme",
    deadline_seconds: float = 20.0,
    patience_seconds: float = 30.0,
    port: int = 0,
    others: Sequence[APIRouter] = (),
    documents: Documents | None = None,
    documentation: Mapping[Name, str] | None = None,
    trusted_proxies: Sequence[str] = (),
    heartbeat_seconds: float = 10.0,
    hosts: AllowedHosts | None = None,
    limits: VisitorLimits | None = None,
    release: Release | None = None,
    reviews: ReviewParts | None = None,
    job_seconds: float | None = None,
    persons: PersonTokens | None = None,
    library: SearchableLibrary | None = None,
    handover: HandOver | None = None,
    **broker_options: Any,
) -> AsyncIterator[HttpServerFixture]:
    """Open a server while inside; several may share one system."""
    keys, stopping, meter = StoredKeys(harness.client), asyncio.Event(), HttpMeter()
    broker = harness.make_broker(**broker_options)
    channel = HttpChannel(
        replies=broker.replies,
        eraser=broker.eraser,
        find_write_fault=broker.admin.find_write_fault,
        desks={
            (tenant, assistant): Desk(
                broker.producer,
                broker.replies,
                tenant=tenant,
                assistant=assistant,
                channel="http",
                deadline_seconds=deadline_seconds,
                words=lambda key, language: f"{key}/{language}",
                grace_seconds=0.2,
                ways={**NEWEST, "specialists": NEWEST["search"]},
            )
            for tenant, assistant in ASSISTANTS
        },
        guard=Guard(
            keys,
            RedisRates(harness.client),
            digests=PersonDigests(SECRET),
            visitors=Visitors(SECRET, limits),
            open_tenant=open_tenant,
            hosts=hosts,
            persons=persons,
        ),
        conversations=Conversations(harness.client, shards=1, ttl_seconds=3600),
        words=lambda key, language: f"{key}/{language}",
        meter=meter,
        links=SourceLinks(documentation, secret=None if documents is None else SECRET),
        heartbeat_seconds=heartbeat_seconds,
        release=release,
        job_seconds=job_seconds,
        handover=handover,
    )
    catalog = FakeCatalog()
    others = (*others, Catalog(channel, catalog).router())
    if documents is not None:
        # As in a real server, the routes of tickets come first.
        others = (reader_router(channel, documents, unavailable=STORES), *others)
    made = make_app(
        channel,
        registry=meter.registry,
        patience_seconds=patience_seconds,
        stopping=stopping,
        unavailable=STORES,
        others=others,
        reviews=reviews,
        library=library,
        mcp=None
        if library is None
        else partial(make_endpoint, channel, library, stopping, "1", STORES),
    )
    listener = listening("127.0.0.1", port)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    http_server = HttpServerFixture(
        harness, url, keys, stopping, meter, channel, made.routes, catalog
    )
    try:
        async with (
            made.running(),
            serving(made.app, listener, stopping, trusted_proxies=trusted_proxies),
        ):
            yield http_server
            for client in http_server.clients:
                await client.aclose()
    finally:
        listener.close()
        await broker.close()


async def read_events(answer: httpx.Response) -> AsyncIterator[RecordedRequests]:
    """Yield the events of a stream, as they come."""
    assert answer.status_code == 200, await answer.aread()
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        if "event" in fields:
            yield RecordedRequests(
                fields.get("id", ""), fields["event"], json.loads(fields["data"])
            )
        fields = {}


async def events(
    client: httpx.AsyncClient, method: str, path: str, **options: Any
) -> list[RecordedRequests]:
    """Return all events of a stream."""
    headers = {"Accept": "text/event-stream", **options.pop("headers", {})}
    async with within(), client.stream(method, path, headers=headers, **options) as answer:
        return [event async for event in read_events(answer)]


def text_of(seen: list[RecordedRequests]) -> str:
    """Put the pieces of an answer together."""
    return "".join(str(event.data["text"]) for event in seen if event.name == "text")
