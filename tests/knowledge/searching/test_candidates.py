"""One contract for searches in both indexes: the engine finds, the search fuses its lists."""

import asyncio

import pytest

from knowledge.index.port import Index
from knowledge.port import SearchRequest
from knowledge.search.ranking import MOST_CHUNKS
from knowledge.search.searcher import LevelSearcher
from tests.knowledge.searching.conftest import WordEmbedder, document, put
from tests.support.waiting import yield_to_tasks

pytestmark = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning"),
    pytest.mark.filterwarnings("ignore:Local mode performs exact:UserWarning"),
]


async def search(index: Index, question: str, embedder: WordEmbedder, **more: object) -> list[str]:
    request = SearchRequest(question=question, **more)  # type: ignore[arg-type]
    findings = await LevelSearcher(index, embedder).search(request)
    return list(dict.fromkeys(hit.page for hit in findings.hits))


async def test_a_rare_word_finds_its_page_among_many_of_the_same_subject(
    index: Index, embedder: WordEmbedder
) -> None:
    """More chunks contain the subject than the engine returns for it."""
    many = [f"routing of messages, part {at}" for at in range(2 * MOST_CHUNKS)]
    await put(index, document("handbook", *many), document("rare", "routing by zeppelin"))

    assert (await search(index, "routing zeppelin", embedder))[0] == "rare"


async def test_a_page_is_shown_in_the_language_of_the_question(
    index: Index, embedder: WordEmbedder
) -> None:
    """The version in that language shares no word with the question and is far from it."""
    others = [document(f"other{at}", f"subject number {at}") for at in range(3)]
    await put(
        index,
        *others,
        document("limits", "the routing limits", page="limits"),
        document("limits@de", "die Grenzen der the", page="limits", language="de"),
    )

    findings = await LevelSearcher(index, embedder).search(
        SearchRequest(question="the routing limits", language="de")
    )

    assert findings.hits[0].document_id == "limits@de"


async def test_a_misspelled_word_is_corrected_by_words_of_the_documents(
    index: Index, embedder: WordEmbedder
) -> None:
    await put(index, *[document(name, "the carrier decides") for name in ("a", "b")])

    findings = await LevelSearcher(index, embedder).search(SearchRequest(question="which carier"))

    assert findings.corrected == "which carrier"


async def test_of_two_pages_that_fit_alike_the_one_with_further_chunks_that_fit_comes_first(
    index: Index, embedder: WordEmbedder
) -> None:
    said = "a route needs a carrier"
    await put(index, document("alone", said), document("more", said, "a route has a carrier"))
    await put(index, *[document(f"p{at}", f"subject number {at}") for at in range(5)])

    assert await search(index, "route and carrier", embedder) == ["more", "alone"]


async def test_a_changed_document_is_found_by_the_next_search(
    index: Index, embedder: WordEmbedder
) -> None:
    searcher = LevelSearcher(index, embedder)
    await put(index, *[document(f"p{at}", f"subject number {at}") for at in range(100)])
    before = await searcher.search(SearchRequest(question="zeppelin"))

    await put(index, document("p7", "all about the zeppelin", content_hash="2"))
    after = await searcher.search(SearchRequest(question="zeppelin"))

    assert before.features["bm"] == 0
    assert after.hits[0].page == "p7"
    assert after.features["bm"] > 0


async def test_chunks_of_a_version_that_is_being_written_are_left_out(
    fake_documents: Index, embedder: WordEmbedder
) -> None:
    """Searches run while a document changes: each finds a whole version or, when the document was
    replaced at each of its attempts, none."""
    versions = [
        document("page", *[f"zeppelin {word} {at}" for at in range(count)])
        for word, count in (("old", 3), ("new", 40))
    ]
    await put(fake_documents, versions[0], document("other", "something else"))
    searcher = LevelSearcher(fake_documents, embedder)
    seen: set[frozenset[str]] = set()

    async def change() -> None:
        for at in range(12):
            await put(fake_documents, versions[(at + 1) % 2])

    async def ask(writer: "asyncio.Task[None]") -> None:
        while not writer.done():
            findings = await searcher.search(SearchRequest(question="zeppelin", limit=5))
            results = [hit.text.split()[1] for hit in findings.hits if hit.page == "page"]
            seen.add(frozenset(results))
            await yield_to_tasks()  # a search that reads few chunks lets nobody else run

    async with asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(change())
        tasks.create_task(ask(writer))

    assert seen
    assert seen <= {frozenset({"old"}), frozenset({"new"}), frozenset()}
    assert await search(fake_documents, "zeppelin", embedder) == ["page"]


async def test_a_second_search_of_a_question_reuses_the_first_until_a_change(
    index: Index, embedder: WordEmbedder
) -> None:
    """Guardrails asks for few hits without a context, then search for more with one."""
    await put(index, document("one", "a route"), document("two", "a password"))
    searcher = LevelSearcher(index, embedder)
    few = await searcher.search(SearchRequest(question="route", limit=1))
    many = await searcher.search(SearchRequest(question="route", limit=10, context_tokens=500))
    asked_before = len(embedder.asked)

    await put(index, document("one", "nothing of it", content_hash="2"))
    after = await searcher.search(SearchRequest(question="route", limit=1))

    assert (asked_before, len(embedder.asked)) == (1, 2)
    assert (len(few.hits), many.context[0].best.page) == (1, "one")
    assert after.features["bm"] == 0
