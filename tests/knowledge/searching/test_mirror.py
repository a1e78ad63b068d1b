import numpy as np

from knowledge.index.port import Index
from knowledge.port import SearchRequest
from knowledge.search.levels import standardise
from knowledge.search.postings import Postings, pack
from knowledge.search.searcher import LevelSearcher
from knowledge.search.spelling import Vocabulary, apply_corrections
from tests.knowledge.searching.conftest import WordEmbedder, document, put


def test_no_spread_is_no_score() -> None:
    assert not standardise(np.full(3, 0.1, dtype=np.float32)).any()
    assert standardise(np.zeros(0, dtype=np.float32)).shape == (0,)


def test_postings_of_nothing_score_nothing() -> None:
    postings = Postings([pack([])])

    assert postings.scores(np.array([1], np.uint32), np.ones(1, np.float32)).shape == (0,)
    assert postings.idf(np.array([1], np.uint32)).shape == (1,)


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


def test_words_that_are_gone_are_no_corrections() -> None:
    words = Vocabulary()
    for _ in range(2):
        words.add(["carrier", "кабинет"])

    known = words.corrections("carier кабинт carrier", lambda _: False)
    for _ in range(2):
        words.remove(["carrier", "кабинет"])

    assert known == {"carier": "carrier", "кабинт": "кабинет"}
    assert words.corrections("carier", lambda _: False) == {}


def test_a_correction_keeps_what_stands_around_the_word() -> None:
    assert apply_corrections('Which "Carier"? carier.', {"carier": "carrier"}) == (
        'Which "carrier"? carrier.'
    )
