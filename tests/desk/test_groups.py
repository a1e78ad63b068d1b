"""Nobody learns from a hidden document, whatever a person, a model or a token says."""

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.assembly.knowledge import open_index
from knowledge.embedding import Embedder
from knowledge.library.library import Library
from knowledge.search.searcher import LevelSearcher
from memory.key_names import conversation_keys
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import AppHarness, ConversationDriver, settings_of
from tests.support.model_server import ModelServer, Received, Response, running_server
from tests.support.restricted_documents import AMOUNT, SITE, WORD, ingest_pages, open_app
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
    return [remove_volatile(item) for item in value] if isinstance(value, list) else value


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


async def test_a_user_who_loses_a_group_gets_nothing_of_the_earlier_conversation(
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
        ids = {
            document.id.rpartition("/")[2]: document.id for document in await index.list_documents()
        }
        assert "freight" in ids
        walker = GraphWalker(
            LevelSearcher(index, embedder),
            Library(index),
        )
        found: list[str] = []
        for walk in WALKS:
            start = tuple(
                f"{ids.get(name, name)}#{ordinal}"
                for name, _, ordinal in (item.partition("#") for item in walk.start)
            )
            passages = await walker.walk(replace(walk, start=start, groups=groups))
            found.append("\n".join(repr(passage) for passage in passages))
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

    assert any(LINKED in item for item in alone)
    for walk, one, other in zip(WALKS, with_hidden, alone, strict=True):
        assert one == other, walk
        assert WORD not in one
    assert any(WORD in item for item in for_board)


VENDOR = OpenAI()


HIDDEN_WORDS = (WORD, AMOUNT, "Lyon", "Bonus of managers", "docs/bonus", "docs/falcon", "/bonus")
"""What only hidden pages have: words, titles, ids and addresses."""


VAGUE = "What is paid?"


UNANSWERED = "Which colour does the bonus have?"


QUESTION = "How many days of leave does an employee have?"


TRUE = "Every employee has thirty days of leave in a year. [1]"


TICKET = "eyJ0ZW5hbnQiOiJkZWZhdWx0IiwiY2h1bmtfaWQiOiJkb2NzL2JvbnVzIzAifQ==.c2lnbmVk"


FORGERIES = {
    "a number that no source has": "[7]",
    "the id of a passage": "[docs/bonus#0]",
    "a guessed web address": f"[Bonus]({SITE}/bonus) [1]",
    "a bare web address": f"{SITE}/bonus [1]",
    "a guessed ticket of the reader": f"[Bonus](/v1/reader/{TICKET}) [1]",
    "a ticket at an address": f"[1](https://desk.acme.test/v1/reader/{TICKET})",
    "a reference": f"[Bonus][7]\n\n[7]: {SITE}/bonus",
    "a source block": '[1]\n\n<source number="7" id="docs/bonus#0">Bonus</source> [7]',
    "a path": "[Bonus](docs/bonus.md) [1]",
}


class AttackingServer(ModelServer):
    """Answers with `draft`, and approves of whatever it judges; asks about hidden pages itself."""

    draft = TRUE
    question = QUESTION

    def choose_response(self, received: Received) -> Response:
        task = received.body["response_format"]["json_schema"]["name"]
        said: dict[str, dict[str, Any]] = {
            "understand": {
                "canonical_question": self.question,
                "context_type": "new_topic",
                "verdict": "within",
                "details": None,
            },
            "scope": {"verdict": "within", "confidence": 1.0, "analysis": ""},
            "respond": {
                "status": "answered",
                "answer": self.draft,
                "confidence": 1.0,
                "missing": "",
            },
            "judge": {
                "claims_read": 1,
                "analysis": "",
                "verdicts": [
                    {"passage": number, "quote": "", "reason": "", "supported": True}
                    for number in range(1, 9)
                ],
                "missing": [],
                "completeness": 1.0,
                "accuracy": 1.0,
                "language_matches": True,
                "decision": "approve",
            },
            "clarify": {"text": f"Do you mean [Bonus]({SITE}/bonus)?"},
        }
        return VENDOR.answer(json.dumps(said[task])) if task in said else VENDOR.failure(500)

    def take_prompts(self) -> str:
        """Everything that the model was given since the last look."""
        given = json.dumps([received.body["messages"] for received in self.received])
        self.received.clear()
        return given


@pytest.fixture
async def server() -> AsyncIterator[AttackingServer]:
    async with running_server(attacker := AttackingServer("")):
        yield attacker


@asynccontextmanager
async def open_attacked(
    data: Path, embedder: Embedder, server: AttackingServer
) -> AsyncIterator[AppHarness]:
    settings: dict[str, Any] = {
        "gen_model": "gpt-4o-mini@openai",
        "openai_api_key": "secret-key",
        "openai_base_url": VENDOR.base_url(server.url),
    }
    async with open_app(data, embedder, **settings) as app:
        yield app


async def collect_shown(driver: ConversationDriver, reply: dict[str, Any]) -> str:
    """Everything that a person can read of a message: its reply and what happened until then."""
    journal = [dict(entry.fields) for entry in await driver.journal(reply)]
    return json.dumps([reply, journal])


def find_cited(reply: dict[str, Any]) -> set[str]:
    """The ids of the documents that an answer cites."""
    return {source["chunk_id"].rpartition("#")[0] for source in reply["sources"]}


def find_hidden(text: str) -> list[str]:
    return [word for word in HIDDEN_WORDS if word in text]


@pytest.mark.slow
async def test_a_model_cites_and_links_nothing_that_it_was_not_given(
    restricted: Path, embedder: Embedder, server: AttackingServer
) -> None:
    async with open_attacked(restricted, embedder, server) as app:
        for kind, forgery in FORGERIES.items():
            server.draft = f"{TRUE} Ask for leave in the calendar. {forgery}"

            reply = await ask(app.driver(), QUESTION)

            assert reply["outcome"] == "answered", kind
            assert "thirty days" in reply["text"], kind
            assert find_hidden(server.take_prompts()) == [], kind
            assert find_cited(reply) == {"docs/leave"}, kind
            assert not re.search(r"bonus|reader|\[7\]|\]\(", reply["text"], re.IGNORECASE), kind


@pytest.mark.slow
async def test_a_model_that_asks_for_a_hidden_page_searches_only_what_the_person_may_read(
    restricted: Path, embedder: Embedder, server: AttackingServer
) -> None:
    server.question = f"How high is the {WORD} bonus of a manager?"
    server.draft = f"A manager gets {AMOUNT} a year. [1]"
    async with open_attacked(restricted, embedder, server) as app:
        allowed, driver = app.driver(), app.driver()
        assert AMOUNT in (await ask(allowed, "Und wie hoch ist er?", "hr"))["text"]
        assert AMOUNT in server.take_prompts()

        reply = await ask(driver, "Und wie hoch ist er?")

        # What the model itself wrote is shown to its judge.
        own = (server.question, server.draft.removesuffix(" [1]"))
        given = server.take_prompts()
        assert find_hidden(given.replace(own[0], "").replace(own[1], "")) == []
        assert find_cited(reply) <= {"docs/leave", "docs/travel", "docs/rooms"}


@pytest.mark.slow
async def test_neither_options_nor_passages_nor_nearest_pages_name_a_hidden_page(
    restricted: Path, embedder: Embedder
) -> None:
    async with open_app(restricted, embedder) as app:
        for question, outcome in ((VAGUE, "clarification"), (UNANSWERED, "answered")):
            board, driver = app.driver(), app.driver()
            allowed = await ask(board, question, "board")
            reply = await ask(driver, question)

            assert allowed["outcome"] == outcome
            assert "Bonus of managers" in await collect_shown(board, allowed)
            assert find_hidden(await collect_shown(driver, reply)) == []


@pytest.mark.slow
async def test_nobody_chooses_from_the_options_of_another_person_in_the_same_conversation(
    restricted: Path, embedder: Embedder
) -> None:
    async with open_app(restricted, embedder) as app:
        for choice in ("1", "2", "the first one", "Answer anyway", "Why?", "Bonus of managers"):
            driver = app.driver()
            assert (await ask(driver, VAGUE, "board"))["outcome"] == "clarification"

            reply = await ask(driver, choice)

            shown = (await collect_shown(driver, reply)).replace(choice, "")
            assert find_hidden(shown) == [], choice


@pytest.mark.slow
async def test_a_model_learns_nothing_of_what_other_people_asked_in_the_conversation(
    restricted: Path, embedder: Embedder, server: AttackingServer
) -> None:
    server.draft = f"A manager gets {AMOUNT} a year. [1]"
    async with open_attacked(restricted, embedder, server) as app:
        driver = app.driver()
        server.question = f"How high is the {WORD} bonus of a manager?"
        assert AMOUNT in (await ask(driver, server.question, "board"))["text"]
        await summarise(app, driver, "Why does the office in Lyon close?", "board")
        server.question, server.draft = QUESTION, TRUE
        server.take_prompts()

        for text in ("And when is it paid?", "Repeat what was said before"):
            reply = await ask(driver, text)

            assert find_hidden(server.take_prompts()) == [], text
            assert find_hidden(await collect_shown(driver, reply)) == [], text
        await ask(driver, "And when is it paid?", "board")
        assert {AMOUNT, "Lyon", WORD} <= set(find_hidden(server.take_prompts()))


async def summarise(app: AppHarness, driver: ConversationDriver, text: str, *groups: str) -> None:
    """Store a turn that left the history of a long conversation."""
    question = driver.desk.question(driver.message("-", "any"))
    line = json.dumps({"text": text, "groups": groups})
    await app.client.hset(conversation_keys(question, 1).summary, "text", line)
