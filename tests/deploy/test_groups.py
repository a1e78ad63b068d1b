"""Who may read what, from the question to the answer: attacks by people without the group."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeServer

from broker.embedded.endpoint import Endpoint
from deploy.assembly.knowledge import Knowledge, make_searcher, open_index
from deploy.assembly.runtime import run_ingestion
from knowledge.embedding import Embedder
from knowledge.ingestion_report import PlainReport
from llm.port import Model
from tests.support.app_harness import AppHarness, ConversationDriver, run_app, settings_of

WORD = "xylophone"
"""What only the hidden pages say."""
PAGES = {
    "leave.md": "# Annual leave\n\nEvery employee has thirty days of leave in a year. Ask for "
    "leave in the calendar, two weeks before it begins.\n",
    "travel.md": "# Travel costs\n\nThe company pays train tickets of the second class. Hand the "
    "receipts in within thirty days.\n",
    "rooms.md": "# Meeting rooms\n\nRooms are booked in the calendar. A room holds ten people.\n",
}
HIDDEN = {
    "bonus.md": f"---\ngroups: [board, hr]\n---\n# Bonus of managers\n\nThe {WORD} bonus of a "
    "manager is 9000 a year. It is paid in May, after the leave of the board.\n",
    "falcon.md": f"---\ngroups: [board]\n---\n# Project Falcon\n\nProject Falcon closes the "
    f"{WORD} office in Lyon. Travel costs of Falcon are paid in May.\n",
}
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


def write_pages(folder: Path, pages: dict[str, str]) -> Path:
    folder.mkdir(parents=True)
    for name, text in pages.items():
        (folder / name).write_text(text)
    return folder


async def ingest_pages(data: Path, pages: dict[str, str]) -> Path:
    """Return a data folder with these pages; the folder that they come from is named alike."""
    quiet = PlainReport(lambda _line: None)
    folder = write_pages(data / "docs", pages)
    result = await asyncio.to_thread(asyncio.run, run_ingestion(settings_of(data), [folder], quiet))
    assert (result.failed, result.added) == ((), len(pages))
    return data


@asynccontextmanager
async def open_app(
    data: Path, embedder: Embedder, model: Model | None = None
) -> AsyncIterator[AppHarness]:
    settings = settings_of(data)
    index = await open_index(settings, embedder)
    known = Knowledge(index, embedder, make_searcher(settings, index, embedder))
    try:
        endpoint = Endpoint(url="", durable=False, played=FakeServer())
        async with run_app(settings, endpoint, known, model) as app:
            yield app
    finally:
        await index.close()


@pytest.fixture
async def with_hidden(tmp_path: Path, embedder: Embedder) -> AsyncIterator[AppHarness]:
    data = await ingest_pages(tmp_path / "with", {**PAGES, **HIDDEN})
    async with open_app(data, embedder) as app:
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
    with_hidden: AppHarness, tmp_path: Path, embedder: Embedder, groups: tuple[str, ...]
) -> None:
    data = await ingest_pages(tmp_path / "without", PAGES)
    hidden = await record(with_hidden, QUESTIONS, *groups)

    async with open_app(data, embedder) as app:
        alone = await record(app, QUESTIONS, *groups)

    for question, one, other in zip(QUESTIONS, hidden, alone, strict=True):
        assert one == other, question
        assert "9000" not in one
        assert "Lyon" not in one


async def test_a_person_of_the_group_gets_the_answer_and_its_source(
    with_hidden: AppHarness,
) -> None:
    reply = await ask(with_hidden.driver(), "What is the bonus of a manager?", "hr")

    assert reply["outcome"] == "answered"
    assert "9000" in reply["text"]
    assert [source["title"] for source in reply["sources"]] == ["Bonus of managers"]


async def test_who_loses_a_group_gets_nothing_of_the_earlier_conversation(
    with_hidden: AppHarness,
) -> None:
    driver = with_hidden.driver()
    assert "9000" in (await ask(driver, "What is the bonus of a manager?", "hr"))["text"]

    for text in ("Shorter, please", "And when is it paid?", "Why?", "Repeat your last answer"):
        reply = await ask(driver, text)

        shown = json.dumps([reply, [str(entry.fields) for entry in await driver.journal(reply)]])
        assert "9000" not in shown, text
        assert WORD not in shown, text
    assert "9000" in (await ask(driver, "What is the bonus of a manager?", "hr"))["text"]


async def test_an_answer_for_one_group_answers_nobody_else_from_a_cache(
    with_hidden: AppHarness,
) -> None:
    question = "What is the bonus of a manager?"

    first = await ask(with_hidden.driver(), question, "hr")
    other = await ask(with_hidden.driver(), question)
    again = await ask(with_hidden.driver(), question, "board")

    assert ["9000" in str(reply) for reply in (first, other, again)] == [True, False, True]
