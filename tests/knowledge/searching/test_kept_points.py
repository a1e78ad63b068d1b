"""What a search keeps is bounded, and never older than the index."""

from knowledge.index.points.layout import chunk_identity
from knowledge.index.port import Index
from knowledge.index.queries import PointId
from knowledge.search.candidates.kept_points import KeptPoints
from tests.knowledge.searching.conftest import document, put


async def list_points(index: Index) -> list[PointId]:
    return [chunk_identity(name, version, 0) for name, version in (await index.versions()).items()]


async def test_chunks_that_were_compared_long_ago_are_read_again(fake_documents: Index) -> None:
    """A search gets every chunk, whether or not there is space to keep it."""
    await put(fake_documents, *[document(f"p{at}", f"subject number {at}") for at in range(9)])
    kept = KeptPoints(most_bytes=3000)
    points = await list_points(fake_documents)

    found = await kept.read_chunks(fake_documents, points)
    again = await kept.read_chunks(fake_documents, points)

    assert set(found) == set(again) == set(points)
    assert 0 < kept.bytes <= 3000


async def test_a_document_is_compared_with_the_index_after_every_change(
    fake_documents: Index,
) -> None:
    kept = KeptPoints()
    await put(fake_documents, document("one", "a route"), document("two", "a password"))
    before = await kept.read_documents(
        fake_documents, await fake_documents.revision(), ["one", "two"]
    )

    await put(fake_documents, document("one", "a flight", content_hash="2"))
    await fake_documents.remove(["two"])
    after = await kept.read_documents(
        fake_documents, await fake_documents.revision(), ["one", "two"]
    )

    assert set(before) == {"one", "two"}
    assert set(after) == {"one"}
    assert after["one"].version == (await fake_documents.versions())["one"]
    assert after["one"].version != before["one"].version
