from collections.abc import Mapping, Sequence

from knowledge.index.port import Index
from knowledge.port import SearchRequest
from knowledge.search.corpus import Corpora
from knowledge.search.searcher import LevelSearcher
from knowledge.search.spelling import find_corrections, replace_words
from tests.knowledge.searching.conftest import WordEmbedder, document, put


async def test_words_that_are_asked_for_in_groups_are_counted_each(fake_documents: Index) -> None:
    await put(fake_documents, document("one", "a route"), document("two", "the route home"))
    view, _ = await Corpora(fake_documents).read(())
    missing = [f"missing{at}" for at in range(100)]

    counts = await view.count_documents([*missing, "route", "home"])

    assert (counts["route"], counts["home"]) == (2, 1)
    assert not any(counts[word] for word in missing)


async def test_a_numbered_heading_is_found_by_its_words_alone(
    fake_documents: Index, embedder: WordEmbedder
) -> None:
    await put(
        fake_documents,
        document("a4", "Text of one kind.", title="Article 4 Scope"),
        document("a5", "The scope of this text, its scope and scope.", title="Article 5 Duties"),
        document("b", "Another text."),
    )

    findings = await LevelSearcher(fake_documents, embedder).search(SearchRequest(question="Scope"))

    assert findings.hits[0].page == "a4"


async def test_a_document_without_chunks_is_kept_and_never_found(
    fake_documents: Index, embedder: WordEmbedder
) -> None:
    await put(fake_documents, document("empty"), document("full", "some text"))

    findings = await LevelSearcher(fake_documents, embedder).search(
        SearchRequest(question="text empty")
    )

    assert [hit.page for hit in findings.hits] == ["full"]


async def test_a_word_of_one_document_is_no_correction() -> None:
    documents = {"carrier": 2, "carriers": 1, "кабинет": 2}

    async def count(words: Sequence[str]) -> Mapping[str, int]:
        return {word: documents.get(word, 0) for word in words}

    assert await find_corrections(["carier", "кабинт", "carrier"], count, "абеинкт") == {
        "carier": "carrier",
        "кабинт": "кабинет",
    }
    assert await find_corrections(["carrierss"], count, "") == {}


async def test_words_that_are_gone_are_no_corrections(
    fake_documents: Index, embedder: WordEmbedder
) -> None:
    await put(fake_documents, *[document(name, "the carrier") for name in ("a", "b", "c")])
    searcher = LevelSearcher(fake_documents, embedder)
    before = await searcher.search(SearchRequest(question="which carier"))

    await fake_documents.remove(["a", "b"])
    after = await searcher.search(SearchRequest(question="which carier"))

    assert (before.corrected, after.corrected) == ("which carrier", None)


def test_a_correction_keeps_what_stands_around_the_word() -> None:
    assert replace_words('Which "Carier"? carier.', {"carier": "carrier"}) == (
        'Which "carrier"? carrier.'
    )
