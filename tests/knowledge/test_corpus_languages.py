"""The languages of the documents, as the agents of one process read them."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, cast

from agents.question.lang import LangAgent, Reads
from envelope.outcome import Wrote
from knowledge.errors import IndexUnavailable
from knowledge.index.embedded import open_embedded
from knowledge.language.corpus_languages import FRESH_SECONDS, CorpusLanguages
from knowledge.language.detector import ScriptAndNgramDetector
from tests.knowledge.searching.conftest import document, identity, put


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
    return CorpusLanguages(cast("Any", index), clock=clock)


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


async def detect_for(index: Any, text: str, *groups: str) -> tuple[str, float]:
    """The language of a text without a conversation, and the confidence in it."""
    languages = CorpusLanguages(index, clock=Clock())
    agent = LangAgent(detector=ScriptAndNgramDetector(), read_languages=languages.read)
    outcome = await agent.work(Reads(text=text, groups=groups))
    assert isinstance(outcome, Wrote)
    return outcome.writes.language, outcome.writes.confidence


async def test_hidden_documents_do_not_change_the_language_of_a_short_query(tmp_path: Path) -> None:
    queries = ("validation", "Bonus", "SEPA", "Passwort vergessen", "import csv", "refund policy")
    index = await open_embedded(tmp_path, identity())
    try:
        await put(index, document("guide", "How to begin."))
        before = [await detect_for(index, query, "guests") for query in queries]
        hidden = [
            document(f"bonus-{number}", "Der Bonus der Leitung.", language="de", groups=("board",))
            for number in range(9)
        ]
        await put(index, *hidden)

        assert [await detect_for(index, query, "guests") for query in queries] == before
        assert [await detect_for(index, query) for query in queries] == before
        assert (await detect_for(index, "SEPA", "board"))[0] == "de"
    finally:
        await index.close()
