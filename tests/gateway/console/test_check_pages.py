"""The owner sees what a change of the documents broke, and marks questions as tests."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from gateway.console.access import ConsoleRole
from gateway.console.check_pages import CheckPages
from gateway.console.frame import Frame
from knowledge.checks import CheckQuestion, CheckResult, Citation, QuestionResult, SectionChange
from records.checks import CheckStore
from records.record import Record
from records.store import RecordStore, Selection
from tests.support.console import (
    DESK,
    HOSTILE,
    OTHER,
    FakeSessions,
    browser_of,
    find_faults,
    make_console,
    open_records,
    owner_of,
    send_form,
    sign_in,
)

ASKED = Record(
    tenant="acme", assistant="desk", conversation_id="c1", message_id="m1", accepted_at=1.0,
    ended_at=2_000_000_000.0, language="en", question=f"How long is leave? {HOSTILE}",
    outcome="answered", answer="30 days [1].",
    sources=(
        {"number": 1, "chunk_id": "hr/leave#2", "title": "Leave", "path": "hr/leave.md",
         "heading_path": ["Leave", "Length"], "anchor": "length"},
    ),
)  # fmt: skip
SOURCE = "/srv/handbook"
BROKEN = QuestionResult(
    CheckQuestion('["acme", "desk", "c1", "m1"]', ASKED.question, "recorded"),
    "broken",
    lost=("30 days",),
    sections=(SectionChange("Leave", "hr/leave.md", "/srv/handbook/hr/leave.md", "deleted"),),
)
CHECK = "/console/check?tenant=acme&assistant=desk&source=%2Fsrv%2Fhandbook"
QUESTION = "/console/question?tenant=acme&assistant=desk&conversation=c1&message=m1"
IDS = {"conversation": "c1", "message": "m1"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with open_records(tmp_path, ASKED) as opened:
        CheckStore(opened).save(DESK, [SOURCE], CheckResult((BROKEN,), removed=1))
        yield opened


@pytest.fixture
def app(store: RecordStore) -> FastAPI:
    pages = CheckPages(Frame(store, 90.0))
    return make_console(store, parts=[pages], concerns=[pages.find_concerns])


@pytest.fixture
async def owner(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with owner_of(app) as client:
        yield client


async def test_the_last_check_of_a_source_names_the_broken_questions(
    owner: httpx.AsyncClient,
) -> None:
    listed = (await owner.get("/console/checks")).text
    shown = (await owner.get(CHECK)).text
    overview = (await owner.get("/console")).text

    assert "1 broken" in listed
    assert "How long is leave?" in shown
    assert "<script>alert" not in shown
    assert "no longer in the context: “30 days”" in shown
    assert "A change of the documents broke questions" in overview


async def test_a_stored_check_keeps_no_text_of_a_question_that_is_erased(
    owner: httpx.AsyncClient, store: RecordStore
) -> None:
    (stored,) = CheckStore(store).list_checks(DESK).values()
    store.forget(ASKED.id)

    assert stored.result.results[0].question.text == ""
    assert "(a question that was erased)" in (await owner.get(CHECK)).text


async def test_a_marked_question_keeps_its_facts_and_citations_and_is_exported(
    owner: httpx.AsyncClient, store: RecordStore
) -> None:
    fields = {"question": "How long is leave?", "facts": "30 days\n\nfull pay\n", **IDS}
    saved = await send_form(owner, QUESTION, "/console/checks/mark", **fields)
    await send_form(owner, QUESTION, "/console/checks/mark", **fields)

    (marked,) = CheckStore(store).list_marked(DESK)
    exported = await owner.get("/console/checks.json?tenant=acme&assistant=desk")
    assert saved.status_code == 303
    assert marked.facts == (("30 days",), ("full pay",))
    assert marked.citations == (Citation("hr/leave", ("Leave", "Length"), "length"),)
    assert json.loads(exported.text)["questions"] == [
        {"question": "How long is leave?", "language": "en", "pages": ["hr/leave.md"],
         "facts": [["30 days"], ["full pay"]]}
    ]  # fmt: skip
    await send_form(owner, "/console/checks", "/console/checks/remove", id=marked.id)
    assert CheckStore(store).list_marked(DESK) == []


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"question": " ", **IDS}, "Enter a question"),
        ({"question": "Q?", "facts": "x\n" * 21, **IDS}, "at most 20 facts"),
        ({"question": "Q?", "conversation": "c1", "message": "m9"}, "was erased"),
    ],
)
async def test_a_question_that_cannot_be_marked_is_refused_with_the_reason(
    owner: httpx.AsyncClient, fields: dict[str, str], says: str
) -> None:
    refused = await send_form(owner, QUESTION, "/console/checks/mark", **fields)

    assert says in refused.text


async def test_checks_of_other_assistants_are_not_shown(store: RecordStore) -> None:
    sessions = FakeSessions()
    roles = {OTHER: {"ada": ConsoleRole.EDITOR}}
    parts = [CheckPages(Frame(store, 90.0))]
    app = make_console(store, sessions, roles=roles, assistants=(DESK, OTHER), parts=parts)
    async with browser_of(app, "http://desk.local") as client:
        await sign_in(client, sessions, "ada")

        assert (await client.get(CHECK)).status_code == 404
        assert SOURCE not in (await client.get("/console/checks")).text
        exported = await client.get("/console/checks.json?tenant=acme&assistant=desk")
        assert exported.status_code == 404


def test_answers_are_counted_by_the_documents_that_they_cite(store: RecordStore) -> None:
    store.write([
        replace(ASKED, message_id="m2"),
        replace(ASKED, message_id="m3", sources=({"chunk_id": "hr/leave-of-absence#1"},)),
        replace(ASKED, message_id="m4", outcome="refused"),
    ])  # fmt: skip
    answered = Selection(assistants=(DESK,), outcome="answered")

    assert store.count_cited(answered) == {"hr/leave": 2, "hr/leave-of-absence": 1}
    findings = store.find(replace(answered, document="hr/leave"))
    assert {record.message_id for record in findings} == {"m1", "m2"}


@pytest.mark.slow
async def test_the_pages_are_readable_for_everybody(app: FastAPI, owner: httpx.AsyncClient) -> None:
    fields = {"question": "ما مدة الإجازة؟", "facts": "٣٠ يومًا", **IDS}
    await send_form(owner, QUESTION, "/console/checks/mark", **fields)

    faults = await find_faults(app, owner, ["/console/checks", CHECK], scheme="dark")
    assert faults == []
