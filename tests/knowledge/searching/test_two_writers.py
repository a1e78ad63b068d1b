"""Two processes that change one document of a shared index at once leave it whole."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient

from knowledge.index.points import layout
from knowledge.index.points.layout import Point
from knowledge.index.port import Index
from knowledge.index.qdrant import QdrantIndex
from knowledge.index.server.server_engine import ServerEngine, open_client
from tests.knowledge.searching.conftest import document, identity, vectors_of

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect")
CALLS = ("upsert", "exchange", "delete_matching", "set_fields", "retrieve", "scroll")
OLD = document("page", "old", "older", "oldest", content_hash="old")
OURS = document("page", "ours", "our second", content_hash="ours")
THEIRS = document("page", "theirs", "their second", "their third", content_hash="theirs")
MOST_CALLS = 9
Interrupt = Callable[[], Awaitable[None]]


class InterruptedEngine(ServerEngine):
    """Lets another process work before its call of this number."""

    calls_left = -1
    interrupt: Interrupt

    def __getattribute__(self, name: str) -> Any:
        result = super().__getattribute__(name)
        return self._watch(result) if name in CALLS else result

    def _watch(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def watched(*args: Any, **options: Any) -> Any:
            self.calls_left -= 1
            if self.calls_left == -1:
                await self.interrupt()
            return await call(*args, **options)

        return watched


@pytest.fixture
async def client() -> AsyncIterator[AsyncQdrantClient]:
    client = AsyncQdrantClient(":memory:")
    yield client
    await client.close()


async def open_both(client: AsyncQdrantClient) -> tuple[InterruptedEngine, QdrantIndex, Index]:
    theirs = await open_client(client, identity(), location="memory")
    await theirs.put(OLD, vectors_of(OLD), "library")
    engine = InterruptedEngine(client, identity(), "memory")
    await engine.prepare()
    return engine, QdrantIndex(engine, identity()), theirs


async def count_parts(client: AsyncQdrantClient) -> tuple[int | None, int]:
    """Return how many parts the document states, and how many of its version there are."""
    engine = ServerEngine(client, identity(), "memory")
    await engine.prepare()
    own = await engine.scroll({"kind": "document", "document": "page"})
    parts = await engine.scroll({"kind": "chunk", "document": "page"}, fields=["version"])
    if not own:
        return None, len(parts)
    versions = [part.payload["version"] for part in parts]
    assert len(versions) == versions.count(own[0].payload["version"])
    return own[0].payload["chunks"], len(parts)


@pytest.mark.parametrize("call", range(MOST_CALLS))
async def test_two_writers_of_one_document_leave_one_whole_version(
    call: int, client: AsyncQdrantClient
) -> None:
    engine, ours, theirs = await open_both(client)

    async def write() -> None:
        await theirs.put(THEIRS, vectors_of(THEIRS), "library")

    engine.interrupt, engine.calls_left = write, call
    await ours.put(OURS, vectors_of(OURS), "library")

    stated, present = await count_parts(client)
    assert stated == present


@pytest.mark.parametrize("call", range(MOST_CALLS))
async def test_a_document_that_is_removed_while_it_is_written_is_whole_or_gone(
    call: int, client: AsyncQdrantClient
) -> None:
    engine, ours, theirs = await open_both(client)

    async def write() -> None:
        await theirs.put(THEIRS, vectors_of(THEIRS), "library")

    engine.interrupt, engine.calls_left = write, call
    await ours.remove(["page"])

    stated, present = await count_parts(client)
    assert present == (stated or 0)


@pytest.mark.parametrize("call", range(MOST_CALLS))
async def test_a_document_that_is_written_while_it_is_removed_is_whole(
    call: int, client: AsyncQdrantClient
) -> None:
    engine, ours, theirs = await open_both(client)

    async def remove() -> None:
        await theirs.remove(["page"])

    engine.interrupt, engine.calls_left = remove, call
    await ours.put(OURS, vectors_of(OURS), "library")

    stated, present = await count_parts(client)
    assert present == (stated or 0)


@pytest.mark.parametrize("call", range(MOST_CALLS))
async def test_groups_that_are_chosen_while_a_document_is_written_hold_for_all_its_parts(
    call: int, client: AsyncQdrantClient
) -> None:
    engine, ours, theirs = await open_both(client)

    async def choose() -> None:
        await theirs.choose_groups(["page"], ["staff"])

    engine.interrupt, engine.calls_left = choose, call
    await ours.put(OURS, vectors_of(OURS), "library")
    if engine.calls_left >= 0:
        await choose()

    parts = await engine.scroll({"document": "page"}, fields=["groups"])
    assert all(part.payload["groups"] == ["staff"] for part in parts)
    assert await count_parts(client) == (len(OURS.chunks), len(OURS.chunks))


@pytest.mark.parametrize("call", range(MOST_CALLS))
async def test_a_document_that_is_written_while_its_groups_are_chosen_has_them_in_all_its_parts(
    call: int, client: AsyncQdrantClient
) -> None:
    engine, ours, theirs = await open_both(client)

    async def write() -> None:
        await theirs.put(THEIRS, vectors_of(THEIRS), "library")

    engine.interrupt, engine.calls_left = write, call
    await ours.choose_groups(["page"], ["staff"])

    result = await engine.scroll({"document": "page"}, fields=["groups"])
    assert {tuple(point.payload.get("groups", ())) for point in result} == {("staff",)}


async def test_remains_of_a_killed_writer_are_removed_when_no_writer_can_be_active(
    client: AsyncQdrantClient,
) -> None:
    engine, ours, _ = await open_both(client)
    kept = await engine.scroll({"kind": "chunk"}, fields=None, vectors=True)
    made = layout.make_version()
    left = [
        Point(
            layout.chunk_identity("page", version, 0),
            {**kept[0].payload, "version": version},
            kept[0].dense,
        )
        for version in (made, f"{0:x}-killed", "of an earlier release")
    ]
    await engine.upsert(left)

    await ours.connect()

    present = await engine.scroll({"kind": "chunk"}, fields=["version"])
    versions = {point.payload["version"] for point in present}
    assert versions == {made, kept[0].payload["version"]}
