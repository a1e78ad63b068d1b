import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from knowledge.index.port import Index
from knowledge.port import SearchRequest
from knowledge.search.findings_cache import CachedSearcher, FindingsCache
from knowledge.search.searcher import LevelSearcher
from tests.knowledge.searching.conftest import WordEmbedder, document, put
from tests.support.waiting import Clock

QUESTION = "How many messages does a route carry?"
LIBRARY = (
    document("routing", "A route carries ten messages a second; more are queued."),
    document("alarms", "Messages of alarms overtake all others."),
)
OTHER_VALUES: dict[str, Any] = {
    "str": "other",
    "int": 7,
    "bool": True,
    "tuple": ("other",),
    "None": "de",
}


@dataclasses.dataclass
class Lookups:
    """A cache over the searches of one index, with what it counted."""

    searcher: CachedSearcher
    cache: FindingsCache
    clock: Clock
    hits: list[bool]

    async def ask(self, question: str = QUESTION, **more: Any) -> bool:
        """Search and return whether the findings were kept, checked against the count."""
        findings = await self.searcher.search(SearchRequest(question=question, **more))
        assert findings.from_cache is self.hits[-1]
        return findings.from_cache


Open = Callable[..., Awaitable[Lookups]]


@pytest.fixture
async def open_cache(fake_documents: Index, embedder: WordEmbedder) -> Open:
    await put(fake_documents, *LIBRARY)

    async def open_lookups(most_characters: int = 100_000) -> Lookups:
        hits: list[bool] = []
        clock = Clock()
        cache = FindingsCache(
            60,
            most_characters=most_characters,
            on_lookup=lambda _run, is_hit: hits.append(is_hit),
            clock=clock,
        )
        searcher = CachedSearcher(
            LevelSearcher(fake_documents, embedder),
            cache,
            index=("acme", "docs"),
            read_revision=fake_documents.revision,
        )
        return Lookups(searcher, cache, clock, hits)

    return open_lookups


async def test_an_equal_search_is_found_in_the_cache_and_asks_no_embedding_again(
    open_cache: Open, embedder: WordEmbedder
) -> None:
    lookups = await open_cache()

    first = await lookups.searcher.search(SearchRequest(question=QUESTION))
    second = await lookups.searcher.search(SearchRequest(question=QUESTION))

    assert (lookups.hits, len(embedder.asked)) == ([False, True], 1)
    assert second == dataclasses.replace(first, from_cache=True)
    assert second.hits


@pytest.mark.parametrize(
    "name", [field.name for field in dataclasses.fields(SearchRequest) if field.compare]
)
async def test_a_search_that_differs_in_any_parameter_is_another_one(
    open_cache: Open, name: str
) -> None:
    lookups = await open_cache()
    present = getattr(SearchRequest(question=QUESTION), name)
    kind = "None" if present is None else type(present).__name__
    assert kind in OTHER_VALUES, f"add another value of the type of {name} to this test"

    await lookups.ask()

    assert not await lookups.ask(**{"question": QUESTION, name: OTHER_VALUES[kind]})


async def test_a_change_of_the_documents_is_seen_by_the_next_search(
    open_cache: Open, fake_documents: Index
) -> None:
    lookups = await open_cache()
    await lookups.ask()

    await put(fake_documents, document("more", "Another route carries a hundred messages."))

    assert not await lookups.ask()
    assert await lookups.ask()


async def test_assistants_share_a_cache_and_no_findings(
    open_cache: Open, fake_documents: Index, embedder: WordEmbedder
) -> None:
    lookups = await open_cache()
    await lookups.ask()
    neighbour = CachedSearcher(
        LevelSearcher(fake_documents, embedder),
        lookups.cache,
        index=("acme", "legal"),
        read_revision=fake_documents.revision,
    )

    assert not (await neighbour.search(SearchRequest(question=QUESTION))).from_cache


async def test_findings_are_kept_for_their_time(open_cache: Open) -> None:
    lookups = await open_cache()
    await lookups.ask()

    lookups.clock.now += 59.9
    assert await lookups.ask()
    lookups.clock.now += 0.1
    assert not await lookups.ask()


async def test_the_least_used_findings_make_room_for_new_ones(open_cache: Open) -> None:
    lookups = await open_cache(most_characters=3000)
    await lookups.ask("a route?")
    await lookups.ask("messages?")
    assert await lookups.ask("a route?")

    await lookups.ask("a second?")

    assert await lookups.ask("a route?")
    assert not await lookups.ask("messages?")


async def test_a_search_without_its_vectors_is_not_kept(
    open_cache: Open, embedder: WordEmbedder
) -> None:
    lookups = await open_cache()
    embedder.fails = True
    await lookups.ask()

    embedder.fails = False

    assert not await lookups.ask()


async def test_nothing_of_a_question_is_kept(open_cache: Open) -> None:
    lookups = await open_cache()
    misspelt = "How many mesages does a route carry?"
    results = await lookups.searcher.search(SearchRequest(question=misspelt))
    assert results.corrected is not None
    await lookups.ask("Does Alexandra Winterbottom carry messages?")

    assert not await lookups.ask(misspelt)
    assert "Winterbottom" not in repr(vars(lookups.cache))
    assert "routing" in repr(vars(lookups.cache))
