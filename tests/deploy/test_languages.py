"""The languages of the documents, as the agents of one process read them."""

from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any, cast

from config.settings import Settings
from deploy.assembly.knowledge import Knowledge
from deploy.assembly.languages import FRESH_SECONDS, CorpusLanguages
from knowledge.errors import IndexUnavailable


class CountedIndex:
    """An index that knows its languages, and counts how often it is asked for them."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {"en": 3}
        self.changes = 0
        self.reads = 0
        self.answers = True

    async def revision(self) -> str:
        if not self.answers:
            raise IndexUnavailable("the index does not answer")
        return str(self.changes)

    async def groups(self) -> frozenset[str]:
        return frozenset()

    def visible_to(self, _groups: Collection[str], **_options: bool) -> "CountedIndex":
        return self

    async def languages(self) -> Mapping[str, int]:
        self.reads += 1
        return dict(self.counts)


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def make(index: CountedIndex, clock: Clock) -> CorpusLanguages:
    knowledge = cast("Knowledge", SimpleNamespace(index=cast("Any", index)))
    return CorpusLanguages(Settings(), knowledge, AsyncExitStack(), clock=clock)


async def test_the_languages_are_counted_once_until_the_documents_change() -> None:
    index, clock = CountedIndex(), Clock()
    languages = make(index, clock)

    assert await languages.read() == {"en": 3}
    clock.seconds += FRESH_SECONDS + 1
    assert await languages.read() == {"en": 3}
    assert index.reads == 1

    index.counts["de"] = 1
    index.changes += 1
    assert await languages.read() == {"en": 3}
    clock.seconds += FRESH_SECONDS + 1
    assert await languages.read() == {"en": 3, "de": 1}


async def test_an_index_that_does_not_answer_leaves_the_last_known_languages() -> None:
    index, clock = CountedIndex(), Clock()
    languages = make(index, clock)
    await languages.read()

    index.answers = False
    clock.seconds += FRESH_SECONDS + 1

    assert await languages.read() == {"en": 3}


async def test_a_process_without_an_index_knows_no_languages() -> None:
    async with AsyncExitStack() as stack:
        assert await CorpusLanguages(Settings(), None, stack).read() == {}
