"""Attacks on documents of groups: a model that lies and obeys, and people who guess."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from knowledge.embedding import Embedder
from memory.key_names import conversation_keys
from tests.deploy.test_groups import ask
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import AppHarness, ConversationDriver
from tests.support.model_server import ModelServer, Received, Response, running_server
from tests.support.restricted_documents import AMOUNT, SITE, WORD, open_app

pytestmark = pytest.mark.slow
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
        given = json.dumps([one.body["messages"] for one in self.received])
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

        given = server.take_prompts().replace(server.question, "")
        assert find_hidden(given.replace(server.draft, "")) == []
        assert find_cited(reply) <= {"docs/leave", "docs/travel", "docs/rooms"}


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
