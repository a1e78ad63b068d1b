"""The terms of documents that a search keeps are bounded, and those of the present version."""

from knowledge.index.port import Index
from knowledge.search.candidates.kept_points import FoundDocument, KeptPoints
from knowledge.search.evidence.vocabularies import Vocabularies
from tests.knowledge.searching.conftest import document, put


async def find_documents(index: Index) -> list[FoundDocument]:
    found = await KeptPoints().read_documents(index, await index.revision(), await index.versions())
    return list(found.values())


async def test_the_terms_of_a_document_are_those_of_its_present_version(
    fake_documents: Index,
) -> None:
    kept = Vocabularies()
    await put(fake_documents, document("one", "a route"))
    before = await kept.read(fake_documents, await find_documents(fake_documents))

    await put(fake_documents, document("one", "a flight", content_hash="2"))
    after = await kept.read(fake_documents, await find_documents(fake_documents))

    assert len(before["one"])
    assert set(before["one"].tolist()) != set(after["one"].tolist())


async def test_a_document_that_is_gone_has_no_terms(fake_documents: Index) -> None:
    await put(fake_documents, document("one", "a route"))
    found = await find_documents(fake_documents)
    await fake_documents.remove(["one"])

    assert not len((await Vocabularies().read(fake_documents, found))["one"])


async def test_terms_that_were_compared_long_ago_are_read_again(fake_documents: Index) -> None:
    await put(fake_documents, *[document(f"p{at}", f"subject number {at}") for at in range(9)])
    documents = await find_documents(fake_documents)
    kept = Vocabularies(most_bytes=1500)

    found = await kept.read(fake_documents, documents)
    again = await kept.read(fake_documents, documents)

    assert all(len(found[name]) and len(again[name]) for name in found)
    assert len(found) == 9
    assert 0 < kept.bytes <= 1500
