"""The documents of a real index over HTTP, by the process that owns it and by another one."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import httpx
import pytest
from structlog.testing import capture_logs

from broker.background_jobs import cancel_until_done
from broker.errors import BrokerUnavailableError
from broker.ports import Broker
from cli.printing import list_operator_notes
from deploy.assembly.agent_factory import open_own_index
from deploy.assembly.gateways.documents import make_catalog
from deploy.assembly.gateways.http_gateway import open_http_app
from deploy.assembly.ingestion import ingest_by_owner
from deploy.assembly.knowledge import make_embedder
from deploy.assembly.runtime import ROLES, Runtime, connect_runtime, run_workers
from gateway.documents.index_owner import ask_owner
from gateway.documents.indexed_documents import IndexedDocuments
from gateway.documents.uploads import Uploads
from gateway.port import CatalogSelection
from knowledge.embedding import Embedder
from knowledge.errors import IndexMismatch, IndexUnavailable
from knowledge.index.embedded import EdgeEngine
from knowledge.index.points import layout
from knowledge.ingestion_report import ProgressReport
from knowledge.owner_requests import SOURCES
from knowledge.source_registry import FetchedSource, parse_source
from tests.knowledge.searching.test_index_contract import write_earlier_manifest
from tests.support.app_harness import open_knowledge_with, settings_of
from tests.support.embedders import UniformEmbedder, Vectors
from tests.support.empty_redis import play_redis
from tests.support.restricted_documents import HIDDEN, PAGES, ingest_pages

OpenClient = Callable[[Runtime], AbstractAsyncContextManager[httpx.AsyncClient]]
DOCUMENTS = "/v1/documents"
ALL = ["docs/bonus", "docs/falcon", "docs/leave", "docs/rooms", "docs/travel"]


class HeldEmbedder(UniformEmbedder):
    """Embeds documents when it is released."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dimensions, self.forms = embedder.name, embedder.dimensions, embedder.forms
        self.reached, self.released = asyncio.Event(), asyncio.Event()
        self.stopped = asyncio.Event()
        self._embedder = embedder

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.reached.set()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return await self._embedder.embed_documents(texts)


@pytest.fixture
async def owner(tmp_path: Path, embedder: Embedder) -> AsyncIterator[Runtime]:
    """A process that owns an index with pages of all and of groups; it serves nothing yet."""
    settings = settings_of(await ingest_pages(tmp_path, {**PAGES, **HIDDEN}))
    async with (
        open_knowledge_with(settings, embedder) as knowledge,
        connect_runtime(settings, endpoint=play_redis()) as runtime,
    ):
        yield replace(runtime, knowledge=knowledge)


@asynccontextmanager
async def open_client(runtime: Runtime) -> AsyncIterator[httpx.AsyncClient]:
    async with open_http_app(runtime, asyncio.Event(), keyless=True) as app:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            yield client


@asynccontextmanager
async def open_other_process(owner: Runtime) -> AsyncIterator[httpx.AsyncClient]:
    """A gateway that cannot read the index, and the owner's workers."""
    async with (
        run_workers(owner, (), owner.knowledge),
        open_client(replace(owner, knowledge=None)) as client,
    ):
        yield client


async def list_ids(client: httpx.AsyncClient, *patterns: str) -> list[str]:
    answer = await client.get(DOCUMENTS, params={"pattern": list(patterns)})
    assert answer.status_code == 200, answer.text
    return [document["id"] for document in answer.json()["documents"]]


async def check_documents(client: httpx.AsyncClient, folder: Path) -> None:
    """Check what a client with all permissions sees, and remove all but one document."""
    assert await list_ids(client) == ALL
    assert await list_ids(client, "docs/b*", "travel.md") == ["docs/bonus", "docs/travel"]
    assert await list_ids(client, "docs") == ALL
    assert await list_ids(client, str(folder / "leave.md"), f"{folder.parent}/*") == []
    assert await list_ids(client, "[", "[!", "docs/[z-a]*", "%", "../docs", "*e" * 250) == []
    bonus = (await client.get(f"{DOCUMENTS}/docs%2Fbonus")).json()
    assert (bonus["groups"], bonus["source"]) == (["board", "hr"], "bonus.md")
    assert str(folder.parent) not in (await client.get(DOCUMENTS)).text

    assert (await client.delete(f"{DOCUMENTS}/docs/*")).status_code == 204
    assert await list_ids(client) == ALL
    codes = [(await client.delete(f"{DOCUMENTS}/docs/bonus")).status_code for _ in range(2)]
    removed = await client.delete(DOCUMENTS, params={"pattern": ["docs/[flr]*", "falcon.md"]})

    assert codes == [204, 204]
    assert removed.json() == {"removed": 3}
    assert await list_ids(client) == ["docs/travel"]


@pytest.mark.parametrize("opening", [open_client, open_other_process])
async def test_the_owner_of_the_index_serves_its_documents_and_another_process_has_it_do_so(
    owner: Runtime, tmp_path: Path, opening: OpenClient
) -> None:
    async with opening(owner) as client:
        await check_documents(client, tmp_path / "docs")


async def test_access_to_a_document_is_set_through_its_owner(owner: Runtime) -> None:
    async with open_other_process(owner) as client:
        catalog = make_catalog(owner.settings, owner.broker, None)
        name = (owner.settings.tenant, owner.settings.assistant)
        known = [await catalog.choose_groups(*name, text, ["hr"]) for text in ("docs/leave", "x")]
        restricted = (await client.get(f"{DOCUMENTS}/docs/leave")).json()
        await catalog.choose_groups(*name, "docs/bonus", [])
        opened = (await client.get(f"{DOCUMENTS}/docs/bonus")).json()

    assert known == [True, False]
    assert (restricted["groups"], opened["groups"]) == (["hr"], [])


async def test_documents_are_listed_and_removed_while_an_ingestion_runs(
    owner: Runtime, tmp_path: Path, embedder: Embedder
) -> None:
    held = HeldEmbedder(embedder)
    assert owner.knowledge is not None
    (tmp_path / "docs" / "new.md").write_text("# Parking\n\nCars park behind the building.\n")
    source = FetchedSource(spec=parse_source(str(tmp_path / "docs"))).model_dump(mode="json")
    working = replace(owner, knowledge=replace(owner.knowledge, embedder=held))

    async with open_other_process(working) as client, asyncio.TaskGroup() as tasks:
        ingestion = tasks.create_task(
            ask_owner(
                owner.broker, (owner.settings.tenant, owner.settings.assistant), {SOURCES: [source]}
            )
        )
        await held.reached.wait()
        assert await list_ids(client) == ALL
        assert (await client.delete(f"{DOCUMENTS}/docs/rooms")).status_code == 204
        assert not ingestion.done()
        held.released.set()

    assert (ingestion.result()["added"], ingestion.result()["failed"]) == (1, [])
    async with open_client(owner) as client:
        assert await list_ids(client) == sorted({*ALL, "docs/new"} - {"docs/rooms"})


@pytest.mark.slow
async def test_the_owner_tells_how_far_an_ingestion_has_come(
    owner: Runtime, tmp_path: Path, embedder: Embedder
) -> None:
    held = HeldEmbedder(embedder)
    assert owner.knowledge is not None
    (tmp_path / "docs" / "new.md").write_text("# Parking\n\nCars park behind the building.\n")
    source = FetchedSource(spec=parse_source(str(tmp_path / "docs")))
    working = replace(owner, knowledge=replace(owner.knowledge, embedder=held))
    told: list[tuple[int, int]] = []

    class ReleasingReport(ProgressReport):
        def advance(self, files: int, documents: int, chunks: int) -> None:
            super().advance(files, documents, chunks)
            total, *_ = self.counts
            told.append((files, total))
            if files == total:
                held.released.set()

    async with open_other_process(working):
        name = (owner.settings.tenant, owner.settings.assistant)
        result = await ingest_by_owner(owner.broker, name, [source], ReleasingReport())

    files = len(ALL) + 1
    assert told[-1] == (files, files)
    assert result.added == 1


@pytest.mark.slow
async def test_an_ingestion_for_which_nobody_waits_any_more_is_stopped_and_the_next_goes_on(
    owner: Runtime, tmp_path: Path, embedder: Embedder
) -> None:
    held = HeldEmbedder(embedder)
    assert owner.knowledge is not None
    (tmp_path / "docs" / "new.md").write_text("# Parking\n\nCars park behind the building.\n")
    source = FetchedSource(spec=parse_source(str(tmp_path / "docs")))
    working = replace(owner, knowledge=replace(owner.knowledge, embedder=held))
    name = (owner.settings.tenant, owner.settings.assistant)

    async with open_other_process(working), asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(ingest_by_owner(owner.broker, name, [source], ProgressReport()))
        await held.reached.wait()
        await cancel_until_done([asking])
        await held.stopped.wait()
        held.released.set()
        result = await ingest_by_owner(owner.broker, name, [source], ProgressReport())

    assert (result.added, result.unchanged, result.failed) == (1, len(ALL), ())


async def test_without_the_owner_the_documents_are_unavailable(owner: Runtime) -> None:
    catalog = make_catalog(owner.settings, owner.broker, None, wait_seconds=0.1)
    name = (owner.settings.tenant, owner.settings.assistant)

    with pytest.raises(IndexUnavailable, match="did not finish within"):
        await catalog.find(*name, CatalogSelection(), limit=1)


async def test_an_empty_desk_names_its_folder_to_operators_and_to_no_visitor(
    owner: Runtime, tmp_path: Path
) -> None:
    with capture_logs() as logged:
        async with run_workers(owner, ROLES, owner.knowledge), open_client(owner) as client:
            await client.delete(DOCUMENTS, params={"pattern": "*"})
            asked = {"text": "How many days of leave does an employee have?"}
            answer = await client.post("/v1/conversations/c1/messages", json=asked)
            read = await client.get("/v1/conversations/c1")

    places = [line["location"] for line in logged if line["event"] == "index_empty"]
    assert places
    assert all(place.startswith(str(tmp_path)) for place in places)
    assert answer.json()["outcome"] == "refused"
    assert answer.json()["clarification_reason"] == "no_documents"
    for shown in (answer, read):
        assert str(tmp_path) not in shown.text
        assert tmp_path.name not in shown.text
    [note] = list_operator_notes(answer.json(), owner.settings.index_location)
    assert str(owner.settings.refdesk_data.resolve()) in note
    assert list_operator_notes({"outcome": "answered"}, owner.settings.index_location) == []


async def test_a_written_file_is_indexed_replaced_and_removed_for_good(owner: Runtime) -> None:
    async with open_other_process(owner) as client:
        for text in ("There are five lamps in the hall.", "There are six lamps in the hall."):
            answer = await client.post(
                DOCUMENTS, params={"name": "people/lamps.md"}, content=f"# Lamps\n\n{text}\n"
            )
            assert (answer.status_code, answer.json()["written"]) == (201, 1), answer.text
        assert "uploads/people/lamps" in await list_ids(client)

        await client.delete(f"{DOCUMENTS}/uploads/people/lamps")
        await client.post(
            DOCUMENTS,
            params={"name": "desks.md"},
            content="# Desks\n\nThere are two desks in the room.\n",
        )

        ids = await list_ids(client)
        assert ("uploads/desks" in ids, "uploads/people/lamps" in ids) == (True, False)
        assert set(ALL) <= set(ids)


@pytest.mark.parametrize(
    "name",
    [
        "../a.md", "/etc/a.md", ".ssh/a.md", "a//b.md", "a.exe", "a\n.md", "refdesk.toml", "a\0.md",
        f"{'a' * 250}.md", "\u8aad" * 100 + ".md", f"{('a' * 200 + '/') * 10}a.md",
        f"{'a/' * 20}a.md",
    ],
)  # fmt: skip
async def test_a_file_whose_name_leads_elsewhere_or_has_no_reader_is_refused(
    owner: Runtime, name: str
) -> None:
    async with open_client(owner) as client:
        answer = await client.post(DOCUMENTS, params={"name": name}, content=b"x")

    assert answer.status_code in (400, 422), answer.text
    assert not list(owner.settings.refdesk_data.glob("uploads/*"))


def test_a_file_takes_no_name_of_a_folder_and_no_name_below_a_file(tmp_path: Path) -> None:
    uploads = Uploads(*settings_of(tmp_path).data_place)
    for name in ("a.md", "b.md/c.md"):
        assert uploads.find_fault(name) == ""
        uploads.keep(name, b"x")

    assert "the name of a folder" in uploads.find_fault("a.md/b.md")
    assert "the name of a folder" in uploads.find_fault("b.md")
    assert uploads.find_fault("a.md") == ""


async def test_a_file_that_cannot_be_read_is_named_with_the_reason(owner: Runtime) -> None:
    async with open_other_process(owner) as client:
        answer = await client.post(DOCUMENTS, params={"name": "a.pdf"}, content=b"no pdf")

    assert answer.json()["written"] == 0
    assert answer.json()["failed"][0]["source"] == "a.pdf"


async def test_the_log_says_why_an_index_cannot_be_opened_for_http(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    name = (settings.tenant, settings.assistant)
    folder = settings.refdesk_data / "index" / layout.namespace(*name)
    engine = EdgeEngine(folder, make_embedder(settings).dimensions)
    await write_earlier_manifest(engine)
    await engine.close()

    with capture_logs() as logged, pytest.raises(IndexMismatch):
        await IndexedDocuments({name: partial(open_own_index, settings)}, {}).index(name)

    [line] = [line for line in logged if line["event"] == "index_not_opened"]
    assert f"remove the folder {folder}, then ingest" in line["reason"]


async def test_whoever_stops_waiting_for_an_ingestion_ends_also_while_redis_is_away() -> None:
    waits = asyncio.Event()

    class AwayRedis:
        async def submit(self, _submission: object) -> None: ...

        async def cancel(self, _question: object) -> None:
            raise BrokerUnavailableError("Redis does not answer")

        async def read_journal(self, *_: object, **_named: object) -> None:
            waits.set()
            await asyncio.Event().wait()

    broker = cast("Broker", SimpleNamespace(producer=AwayRedis(), replies=AwayRedis()))
    with capture_logs() as logs:
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(ask_owner(broker, ("acme", "desk"), {SOURCES: []}))
            await waits.wait()
            asking.cancel()

    assert asking.cancelled()
    assert [entry["event"] for entry in logs] == ["ingestion_not_stopped"]
