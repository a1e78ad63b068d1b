"""The owner writes verified answers, and sees which may be out of date."""

import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from envelope.verified import VerifiedAnswer
from gateway.console.access import Assistant, ConsoleRole
from gateway.console.frame import Frame
from gateway.console.verified_pages import VerifiedPages
from gateway.port import CatalogEntry
from records.store import RecordStore, connect_store
from records.verified import VerifiedStore
from tests.support.console import (
    DESK,
    HOSTILE,
    FakeSessions,
    browser_of,
    find_faults,
    make_console,
    open_records,
    owner_of,
    post,
    send_form,
    sign_in,
)
from tests.support.http_server import FakeCatalog
from tests.support.postgres import PostgresServer

PAGE = CatalogEntry("hr/leave", "Leave", "hr/leave.md", "en", 3, content_hash="one")
FIELDS = {"question": "How long is leave?", "answer": "30 days [1].", "page-0": "hr/leave"}


@dataclass
class OwnersAnswers:
    """The owner's browser, the documents, and what the agents have."""

    owner: httpx.AsyncClient
    pages: VerifiedPages
    catalog: FakeCatalog
    published: dict[Assistant, list[VerifiedAnswer]]
    app: FastAPI

    async def save(self, **fields: str) -> httpx.Response:
        return await send_form(
            self.owner, "/console/verified/write", "/console/verified/save", **{**FIELDS, **fields}
        )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with open_records(tmp_path) as opened:
        yield opened


@pytest.fixture
async def answers(store: RecordStore) -> AsyncIterator[OwnersAnswers]:
    published: dict[Assistant, list[VerifiedAnswer]] = {}

    async def publish(assistant: Assistant, given: Sequence[VerifiedAnswer]) -> None:
        published[assistant] = list(given)

    catalog = FakeCatalog()
    catalog.kept[DESK] = {PAGE.id: PAGE}
    pages = VerifiedPages(Frame(store, 90.0), VerifiedStore(store), catalog, publish)
    app = make_console(store, parts=[pages], concerns=[pages.find_concerns])
    async with owner_of(app) as owner:
        yield OwnersAnswers(owner, pages, catalog, published, app)


async def publish_nothing(_assistant: Assistant, _given: Sequence[VerifiedAnswer]) -> None:
    """No agent asks."""


async def test_a_saved_answer_is_given_to_the_agents_with_its_pages(answers: OwnersAnswers) -> None:
    saved = await answers.save()

    assert saved.status_code == 303
    (given,) = answers.published[DESK]
    assert (given.question, given.answer) == ("How long is leave?", "30 days [1].")
    assert [(page.document_id, page.title) for page in given.pages] == [("hr/leave", "Leave")]
    assert "How long is leave?" in (await answers.owner.get("/console/verified")).text


async def test_an_answer_is_changed_and_removed(answers: OwnersAnswers) -> None:
    await answers.save()
    answer_id = answers.published[DESK][0].id

    await answers.save(id=answer_id, answer="31 days.")
    assert [(answer.id, answer.answer) for answer in answers.published[DESK]] == [
        (answer_id, "31 days.")
    ]

    await send_form(answers.owner, "/console/verified", "/console/verified/remove", id=answer_id)
    assert answers.published[DESK] == []


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"page-0": "hr/unknown"}, "A chosen page no longer exists"),
        ({"answer": " "}, "Enter both a question and its answer"),
        ({"answer": "x" * 9_000}, "at most 8000 characters"),
        ({"id": "unknown"}, "The answer was removed in the meantime"),
    ],
)
async def test_an_answer_that_cannot_be_saved_is_refused_with_the_reason(
    answers: OwnersAnswers, fields: dict[str, str], says: str
) -> None:
    refused = await answers.save(**fields)

    assert refused.status_code in (400, 404)
    assert says in refused.text
    assert answers.published == {}


async def test_an_answer_is_stale_once_a_page_changed_or_went_or_others_may_read_it(
    answers: OwnersAnswers,
) -> None:
    await answers.save()
    assert "Out of date" not in (await answers.owner.get("/console/verified")).text

    changed, restricted = replace(PAGE, content_hash="two"), replace(PAGE, groups=("hr",))
    for entries in ({PAGE.id: changed}, {PAGE.id: restricted}, {}):
        answers.catalog.kept[DESK] = entries
        assert "Out of date" in (await answers.owner.get("/console/verified")).text
        assert "Verified answers may be out of date" in (await answers.owner.get("/console")).text


async def test_pages_are_found_by_their_titles_and_what_was_written_stays(
    answers: OwnersAnswers,
) -> None:
    shown = await answers.save(**{"page-0": "", "do": "find", "find": "leave"})

    assert shown.status_code == 200
    assert 'value="hr/leave"> <span><bdi>Leave' in shown.text
    assert "30 days [1]." in shown.text
    assert answers.published == {}


async def test_a_viewer_reads_answers_and_writes_none(answers: OwnersAnswers) -> None:
    await answers.save()
    sessions = FakeSessions()
    app = make_console(
        None, sessions, roles={DESK: {"ada": ConsoleRole.VIEWER}}, parts=[answers.pages]
    )
    async with browser_of(app) as client:
        await sign_in(client, sessions, "ada")
        shown = (await client.get("/console/verified")).text
        refused = await post(
            client, "/console/verified/save", {**FIELDS, "tenant": "acme", "assistant": "desk"}
        )

    assert "How long is leave?" in shown
    assert "<textarea" not in shown
    assert refused.status_code == 403


async def test_hostile_text_stays_text(answers: OwnersAnswers) -> None:
    answers.catalog.kept[DESK] = {PAGE.id: replace(PAGE, title=HOSTILE)}
    await answers.save(question=HOSTILE, answer=HOSTILE)
    answer_id = answers.published[DESK][0].id

    shown = (
        await answers.owner.get(f"/console/verified/write?id={answer_id}&question={HOSTILE}")
    ).text

    assert "<script" not in shown
    assert "<img" not in shown


@pytest.mark.slow
async def test_a_text_that_postgresql_cannot_keep_is_refused(answers: OwnersAnswers) -> None:
    with tempfile.TemporaryDirectory(prefix="rd-pg-") as folder:
        server = PostgresServer(Path(folder))
        server.start()
        store = connect_store(server.url)
        try:
            store.prepare()
            frame = Frame(store, 90.0)
            pages = VerifiedPages(frame, VerifiedStore(store), answers.catalog, publish_nothing)
            async with owner_of(make_console(store, parts=[pages])) as owner:
                for changes in ({"question": "a\0b"}, {"answer": "a\0b"}, {"id": "\0"}):
                    refused = await send_form(
                        owner,
                        "/console/verified/write",
                        "/console/verified/save",
                        **{**FIELDS, **changes},
                    )
                    assert refused.status_code == 400
                for query in ("text=%00", "outcome=%00"):
                    result = await owner.get(f"/console/questions?{query}")
                    assert result.status_code == 400
        finally:
            store.close()
            server.kill()


@pytest.mark.slow
async def test_the_page_is_readable_for_everybody(answers: OwnersAnswers) -> None:
    await answers.save(question="ما مدة الإجازة؟", answer="٣٠ يومًا [1].")
    answers.catalog.kept[DESK] = {}

    faults = await find_faults(answers.app, answers.owner, ["/console/verified"], scheme="dark")
    assert faults == []
