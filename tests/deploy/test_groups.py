"""Who may read what, from the question to the answer: attacks by people without the group."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.assembly.knowledge import make_searcher, open_index
from knowledge.embedding import Embedder
from knowledge.library.library import Library
from tests.support.app_harness import AppHarness, ConversationDriver, settings_of
from tests.support.restricted_documents import AMOUNT, WORD, ingest_pages, open_app
from tools.graph_walk import GraphWalker, Walk
from tools.passages import LINKED

QUESTIONS = (
    "What is the bonus of a manager?",
    f"How high is the {WORD} bonus?",
    "What is Project Falcon?",
    "How many days of leave does an employee have?",
    "Which train tickets does the company pay?",
    "And when is it paid?",
    "What can you do?",
    "Falcon",
)
VOLATILE = frozenset({"milliseconds", "processing_seconds", "total_processing_time", "at"})


@pytest.fixture
async def with_hidden(restricted: Path, embedder: Embedder) -> AsyncIterator[AppHarness]:
    async with open_app(restricted, embedder) as app:
        yield app


async def ask(driver: ConversationDriver, text: str, *groups: str) -> dict[str, Any]:
    message = replace(driver.message(text), groups=tuple(sorted(groups)))
    return dict(await driver.desk.ask(message))


def remove_volatile(value: object) -> object:
    if isinstance(value, dict):
        return {name: remove_volatile(one) for name, one in value.items() if name not in VOLATILE}
    return [remove_volatile(one) for one in value] if isinstance(value, list) else value


async def record(app: AppHarness, questions: Sequence[str], *groups: str) -> list[str]:
    """Return everything that is said and journaled about these questions of one conversation."""
    driver = replace(app.driver(), conversation_id="c-1")
    found: list[str] = []
    for text in questions:
        reply = await ask(driver, text, *groups)
        journal = [
            (entry.kind, remove_volatile(dict(entry.fields)))
            for entry in await driver.journal(reply)
        ]
        found.append(json.dumps([remove_volatile(reply), journal], sort_keys=True))
    return found


@pytest.mark.parametrize("groups", [(), ("sales",)])
async def test_no_byte_of_an_answer_shows_that_a_hidden_document_exists(
    with_hidden: AppHarness, unrestricted: Path, embedder: Embedder, groups: tuple[str, ...]
) -> None:
    hidden = await record(with_hidden, QUESTIONS, *groups)

    async with open_app(unrestricted, embedder) as app:
        alone = await record(app, QUESTIONS, *groups)

    for question, one, other in zip(QUESTIONS, hidden, alone, strict=True):
        assert one == other, question
        assert AMOUNT not in one
        assert "Lyon" not in one


async def test_a_person_of_the_group_gets_the_answer_and_its_source(
    with_hidden: AppHarness,
) -> None:
    reply = await ask(with_hidden.driver(), "What is the bonus of a manager?", "hr")

    assert reply["outcome"] == "answered"
    assert AMOUNT in reply["text"]
    assert [source["title"] for source in reply["sources"]] == ["Bonus of managers"]


async def test_who_loses_a_group_gets_nothing_of_the_earlier_conversation(
    with_hidden: AppHarness,
) -> None:
    driver = with_hidden.driver()
    assert AMOUNT in (await ask(driver, "What is the bonus of a manager?", "hr"))["text"]

    for text in ("Shorter, please", "And when is it paid?", "Why?", "Repeat your last answer"):
        reply = await ask(driver, text)

        shown = json.dumps([reply, [str(entry.fields) for entry in await driver.journal(reply)]])
        assert AMOUNT not in shown, text
        assert WORD not in shown, text
    assert AMOUNT in (await ask(driver, "What is the bonus of a manager?", "hr"))["text"]


async def test_an_answer_for_one_group_answers_nobody_else_from_a_cache(
    with_hidden: AppHarness,
) -> None:
    question = "What is the bonus of a manager?"

    first = await ask(with_hidden.driver(), question, "hr")
    other = await ask(with_hidden.driver(), question)
    again = await ask(with_hidden.driver(), question, "board")

    assert [AMOUNT in str(reply) for reply in (first, other, again)] == [True, False, True]


CONNECTED_PAGES = {
    "freight.md": "# Freight\n\nA carrier has the licence, see Project Falcon and Article 6. The "
    "contract was signed by Lorenzo Costa in Mantua.\n",
    "licence.md": "# The licence\n\nThe licence is given for two years. See Freight.\n",
    "signers.md": "# Signers\n\nLorenzo Costa signs for the harbour, Paola Riva for the depot.\n",
    "depot.md": "# The depot\n\nThe depot in Genoa opens at six. Paola Riva has the keys.\n",
}
CONNECTED_HIDDEN = {
    "falcon.md": "---\ngroups: [board]\n---\n# Project Falcon\n\nLorenzo Costa closes the depot. "
    "See Freight, the licence and the depot.\n",
    "article.md": "---\ngroups: [board, hr]\n---\n# Article 6 Lawfulness\n\nPaola Riva and "
    f"Lorenzo Costa share the {WORD}. See Signers.\n",
    "longer.md": "---\ngroups: [board]\n---\n# The licence, see Project\n\nThe depot in Genoa is "
    "sold by Lorenzo Costa.\n",
}
WALKS = tuple(
    Walk(query, start)
    for query in ("Who has the licence?", "Project Falcon", "Article 6", "Lorenzo Costa", WORD)
    for start in ((), ("freight#0",), ("signers#0", "licence#0"), ("falcon#0", "article#0"))
)


async def walk_all(
    data: Path, pages: Mapping[str, str], embedder: Embedder, *groups: str
) -> list[str]:
    """Return what `graph_search` returns for each walk, as text."""
    settings = settings_of(await ingest_pages(data, dict(pages)))
    index = await open_index(settings, embedder)
    try:
        ids = {one.id.rpartition("/")[2]: one.id for one in await index.list_documents()}
        assert "freight" in ids
        walker = GraphWalker(make_searcher(settings, index, embedder), Library(index))
        found: list[str] = []
        for walk in WALKS:
            start = tuple(
                f"{ids.get(name, name)}#{ordinal}"
                for name, _, ordinal in (one.partition("#") for one in walk.start)
            )
            passages = await walker.walk(replace(walk, start=start, groups=groups))
            found.append("\n".join(repr(one) for one in passages))
        return found
    finally:
        await index.close()


@pytest.mark.parametrize("groups", [(), ("sales",)])
async def test_hidden_documents_change_no_byte_of_what_graph_search_returns(
    tmp_path: Path, embedder: Embedder, groups: tuple[str, ...]
) -> None:
    every = {**CONNECTED_HIDDEN, **CONNECTED_PAGES}

    with_hidden = await walk_all(tmp_path / "a", every, embedder, *groups)
    alone = await walk_all(tmp_path / "b", CONNECTED_PAGES, embedder, *groups)
    for_board = await walk_all(tmp_path / "c", every, embedder, "board")

    assert any(LINKED in one for one in alone)
    for walk, one, other in zip(WALKS, with_hidden, alone, strict=True):
        assert one == other, walk
        assert WORD not in one
    assert any(WORD in one for one in for_board)
