"""Checks while a desk runs: its index is copied by its owner, and its questions are private."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.commands.serve import answering
from config.settings import Settings
from deploy.assembly.check_questions import checking
from deploy.assembly.checks import Proposal, run_check
from deploy.assembly.ingestion import ingest_here
from deploy.assembly.open_records import connect_records
from deploy.assembly.runtime import Runtime, desk
from gateway.desk import Message
from knowledge.checks import CheckQuestion
from knowledge.ingestion_report import PlainReport
from knowledge.source_registry import parse_source
from records.checks import CheckStore
from records.record import Record
from records.store import Selection
from tests.support.app_harness import settings_of
from tests.support.checked_documents import PAGES, change, write_pages
from tests.support.waiting import wait_until

NAME = ("default", "default")
QUIET = PlainReport(lambda _line: None)
QUESTION = CheckQuestion("error", "What does error 4013 mean?", "golden", pages=("api/errors.md",))
ASKED = Message(
    "What does error 4013 mean? I am ann@example.com, call +43 660 1234567.", "c1", "m1"
)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_pages(tmp_path / "docs", PAGES)


@pytest.fixture
async def running(tmp_path: Path, docs: Path) -> AsyncIterator[Runtime]:
    """A desk that answers from the documents, with a record."""
    settings = settings_of(tmp_path / "data")
    async with answering(settings, alone=False, records=True) as runtime:
        assert runtime.knowledge is not None
        await ingest_here(settings, runtime.knowledge, [docs], QUIET)
        reply = await desk(runtime, "cli").ask(ASKED)
        assert reply["outcome"] == "answered"
        await wait_until(lambda: bool(list_recorded(settings)))
        yield runtime


def list_recorded(settings: Settings) -> Sequence[Record]:
    store = connect_records(settings.records_url, settings.refdesk_data)
    try:
        store.prepare()
        return store.find(Selection())
    finally:
        store.close()


@pytest.mark.redis
@pytest.mark.slow
async def test_the_owner_of_the_index_copies_it_and_goes_on_answering(
    running: Runtime, docs: Path
) -> None:
    change(docs)
    proposal = Proposal(parse_source(str(docs)))

    check = await run_check(running.settings, [QUESTION], [proposal], QUIET, with_records=True)

    states = {result.question.origin: result.state for result in check.result.results}
    assert states == {"golden": "broken", "recorded": "broken"}
    (asked,) = [
        result.question for result in check.result.results if result.question.origin == "recorded"
    ]
    assert asked.text == "What does error 4013 mean? I am [email], call [number]."
    assert running.knowledge is not None
    assert "docs/api/errors" in await running.knowledge.index.versions()


@pytest.mark.redis
@pytest.mark.slow
async def test_an_ingestion_leaves_its_check_for_the_console(running: Runtime, docs: Path) -> None:
    settings, knowledge = running.settings, running.knowledge
    assert knowledge is not None
    change(docs)

    async with checking(settings, knowledge, [str(docs)]) as begin_check:
        await ingest_here(settings, knowledge, [docs], QUIET, before_change=begin_check)

    store = connect_records(settings.records_url, settings.refdesk_data)
    (check,) = CheckStore(store).list_checks(NAME).values()
    store.close()
    assert (check.source, check.result.count("broken")) == (str(docs), 1)
    assert "4013" not in repr([result.question.text for result in check.result.results])


async def test_a_check_that_cannot_be_made_leaves_the_ingestion_alone(tmp_path: Path) -> None:
    (tmp_path / "records.sqlite3").write_bytes(b"no database")
    nothing: Any = None

    async with checking(settings_of(tmp_path), nothing, ["docs"]) as begin_check:
        assert begin_check is not None
        await begin_check()
