"""One contract for both indexes."""

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient

from knowledge.documents.page import PictureFile
from knowledge.errors import IndexMismatch
from knowledge.index.embedded import EdgeEngine, open_embedded
from knowledge.index.engine import Engine
from knowledge.index.points import layout
from knowledge.index.points.layout import Point
from knowledge.index.port import Index
from knowledge.index.server.server_engine import ServerEngine, open_client
from tests.knowledge.searching.conftest import (
    Opening,
    document,
    embed_text,
    identity,
    put,
    vectors_of,
)
from tests.support.waiting import yield_to_tasks


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_an_empty_index_holds_nothing(index: Index) -> None:
    info = await index.info()

    assert (info.documents, info.chunks) == (0, 0)
    assert await index.hashes("library") == {}
    assert await index.versions() == {}
    assert await index.load(["nobody"]) == []
    assert await index.passages([]) == {}


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_document_comes_back_as_it_was_put(index: Index) -> None:
    made = document(
        "routes",
        (("Limits", "Per route"), "A route carries ten messages."),
        "Second 'route' means a way.",
        title="Routing",
        crumbs=("Guide", "Routing"),
        keywords=("route",),
    )
    await put(index, made)

    [stored] = await index.load(["routes"])
    passages = await index.passages([chunk.point for chunk in stored.chunks])

    assert (stored.title, stored.page, stored.language) == ("Routing", "routes", "en")
    assert stored.crumbs == ("Guide", "Routing")
    assert stored.keywords == ("route",)
    assert [chunk.heading_path for chunk in stored.chunks] == [("Limits", "Per route"), ()]
    assert [chunk.defined for chunk in stored.chunks] == [(), ("route",)]
    assert np.allclose(stored.chunks[0].vector, vectors_of(made)[0], atol=1e-3)
    assert len(stored.chunks[0].keywords.terms) == len(stored.chunks[0].keywords.weights) > 0
    passage = passages[stored.chunks[0].point]
    assert passage.chunk == made.chunks[0]
    assert (passage.document_id, passage.source) == ("routes", "routes.md")
    assert passage.url == "https://example.org/routes"


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_hashes_are_those_of_one_root(index: Index) -> None:
    await put(index, document("one", "text", content_hash="a"), root="first")
    await put(index, document("two", "text", content_hash="b"), root="second")

    assert await index.hashes("first") == {"one": "a"}
    assert await index.hashes("second") == {"two": "b"}


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_new_version_replaces_the_old_one_whole(index: Index) -> None:
    await put(index, document("page", "old one", "old two", "old three"))
    [old] = await index.load(["page"])
    await put(index, document("page", "new one", content_hash="2"))

    [new] = await index.load(["page"])

    assert (await index.info()).chunks == 1
    assert await index.hashes("library") == {"page": "2"}
    assert len(new.chunks) == 1
    assert await index.passages([chunk.point for chunk in old.chunks]) == {}
    assert old.version != new.version


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_reader_never_sees_half_a_document(index: Index) -> None:
    """Versions of ten and of twenty chunks alternate; each has its own words throughout."""
    made = [
        document("page", *[f"even {at}" for at in range(10)], title="even", content_hash="0"),
        document("page", *[f"odd {at}" for at in range(20)], title="odd", content_hash="1"),
    ]
    await put(index, made[0])
    seen: set[tuple[str, int]] = set()

    async def read(writer: "asyncio.Task[None]") -> None:
        while not writer.done():
            for stored in await index.load(["page"]):
                seen.add((stored.title, len(stored.chunks)))
            await yield_to_tasks()  # the writer's turn

    async def write() -> None:
        for at in range(20):
            await put(index, made[at % 2])

    async with asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(write())
        tasks.create_task(read(writer))

    assert seen
    assert seen <= {("even", 10), ("odd", 20)}


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_removed_documents_are_gone_and_the_rest_stays(index: Index) -> None:
    await put(index, document("stays", "text"), document("goes", "text", "more"))
    await index.remove(["goes", "never was there"])

    assert set(await index.versions()) == {"stays"}
    assert await index.load(["goes"]) == []
    assert (await index.info()).chunks == 1


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_every_change_changes_the_revision(index: Index) -> None:
    seen = [await index.revision()]
    await put(index, document("page", "text"))
    seen.append(await index.revision())
    seen.append(await index.revision())
    await index.remove(["page"])
    seen.append(await index.revision())

    assert seen[1] == seen[2]
    assert len(set(seen)) == 3


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_tenants_and_assistants_do_not_see_each_other(opening: Opening) -> None:
    mine = await opening(identity("acme", "desk"))
    await put(mine, document("secret", "text"))
    others = [
        await opening(identity("acme", "shop")),
        await opening(identity("acm", "e-desk")),
        await opening(identity("../acme", "desk")),
        await opening(identity("ACME", "desk")),
    ]

    assert [await other.versions() for other in others] == [{}, {}, {}, {}]


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_another_embedding_model_is_refused_by_name(opening: Opening) -> None:
    first = await opening()
    await put(first, document("page", "text"))
    if (await first.info()).location != "memory":
        await first.close()

    with pytest.raises(
        IndexMismatch, match=r"'words' \(64 dimensions, .* alike\), not with 'others'"
    ):
        await opening(identity(embedding="others"))


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_another_form_of_the_embedded_texts_is_refused_by_name(opening: Opening) -> None:
    first = await opening()
    if (await first.info()).location != "memory":
        await first.close()

    with pytest.raises(IndexMismatch, match=r"alike.*, not with .* documents as 'query"):
        await opening(replace(identity(), forms="'query: ' and 'passage: '"))


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_vectors_must_fit_the_chunks(index: Index) -> None:
    made = document("page", "one", "two")

    with pytest.raises(ValueError, match="expected 2 vectors"):
        await index.put(made, [embed_text("one")], "library")
    with pytest.raises(ValueError, match="with 64 dimensions"):
        await index.put(made, [[1.0], [1.0]], "library")
    assert await index.versions() == {}


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_large_document_is_kept_whole(index: Index) -> None:
    await put(index, document("large", *[f"part {at}" for at in range(1200)]))

    [stored] = await index.load(["large"])

    assert [chunk.ordinal for chunk in stored.chunks] == list(range(1200))


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_the_index_counts_its_documents_by_language(index: Index) -> None:
    await put(index, document("a", "text"), document("b", "text"))
    await put(index, document("c", "text", language="de"))

    assert await index.languages() == {"en": 2, "de": 1}


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_picture_is_read_by_those_who_may_read_its_document_and_goes_with_it(
    index: Index,
) -> None:
    first, second = (PictureFile(letter * 32, "image/png", "AAAA") for letter in "ab")
    made = document("routes", "A route.", groups=("board",), files=(first, second))
    await put(index, made)

    assert await index.picture("routes", first.id) == first
    assert await index.visible_to(["board"]).picture("routes", first.id) == first
    assert await index.visible_to(["sales"]).picture("routes", first.id) is None
    assert await index.picture("other", first.id) is None

    await put(index, made.model_copy(update={"files": (second,), "content_hash": "2"}))
    assert await index.picture("routes", first.id) is None
    assert await index.picture("routes", second.id) == second

    await index.remove(["routes"])
    assert await index.picture("routes", second.id) is None
    assert (await index.info()).documents == 0


async def write_earlier_manifest(engine: Engine) -> None:
    payload = {"kind": "manifest", "format": layout.FORMAT - 1}
    await engine.upsert([Point(layout.manifest_identity(layout.FORMAT - 1), payload)])


async def test_a_folder_of_an_earlier_format_is_named_for_removal(tmp_path: Path) -> None:
    own = identity()
    folder = tmp_path / layout.namespace(own.tenant, own.assistant)
    engine = EdgeEngine(folder, own.dimensions)
    await write_earlier_manifest(engine)
    await engine.close()

    with pytest.raises(IndexMismatch, match=f"format 1.*format 2: remove the folder {folder}, "):
        await open_embedded(tmp_path, own)


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_collection_of_an_earlier_format_is_named_for_removal() -> None:
    client = AsyncQdrantClient(":memory:")
    engine = ServerEngine(client, identity(), "memory")
    await engine.prepare()
    await write_earlier_manifest(engine)

    with pytest.raises(IndexMismatch, match=r"remove the collection refdesk-tenant-desk-\w+, then"):
        await open_client(client, identity(), location="memory")
