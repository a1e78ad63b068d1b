"""Who may read what, from the question to the answer: attacks by people without the group."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knowledge.embedding import Embedder
from tests.support.app_harness import AppHarness, ConversationDriver
from tests.support.restricted_documents import AMOUNT, WORD, open_app

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
