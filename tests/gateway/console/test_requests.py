"""Requests for a person: shown with their conversation, and answered in the console."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.console.access import ConsoleRole
from records.record import PERSON, Record
from records.store import RecordStore
from tests.support.console import (
    DESK,
    FakeSessions,
    browser_of,
    make_console,
    open_records,
    owner_of,
    post,
    read_forgery_token,
    sign_in,
)
from tests.support.fake_handover import FakeHandOver

NOW = time.time()
ASKED = Record(
    "acme", "desk", "c1", "m1", NOW - 90, NOW - 80, question="Do you take Monero?",
    outcome="refused", answer="Nothing in the passages answers this.", way="search", language="en",
)  # fmt: skip
REQUEST = Record(
    "acme", "desk", "c1", "m2", NOW - 60, NOW - 59, question="Please, a person.",
    outcome="answered", reason=PERSON, answer="It was sent.", way="command", language="en",
)  # fmt: skip
PAGE = "/console/question?tenant=acme&assistant=desk&conversation=c1&message=m2"
FORM = {"tenant": "acme", "assistant": "desk", "conversation": "c1", "message": "m2"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with open_records(tmp_path, ASKED, REQUEST) as opened:
        yield opened


async def test_a_request_shows_its_conversation_and_address_and_is_answered_there(
    store: RecordStore,
) -> None:
    people = FakeHandOver(addresses=["ada@example.com"])
    async with owner_of(make_console(store, handover=people)) as owner:
        overview = (await owner.get("/console")).text
        page = (await owner.get(PAGE)).text
        form = {**FORM, "csrf": read_forgery_token(page), "text": "Yes: https://acme.test/monero"}
        sent = await post(owner, "/console/question/answer", form)

    assert "Waiting for a person" in overview
    assert all(text in page for text in ("Do you take Monero?", "ada@example.com", "not confirmed"))
    assert sent.headers["location"].endswith("&said=answered")
    assert people.replies == [("Yes: https://acme.test/monero", "")]


async def test_an_answer_that_was_not_sent_is_kept_in_its_form(store: RecordStore) -> None:
    people = FakeHandOver(accepts=False)
    async with owner_of(make_console(store, handover=people)) as owner:
        token = read_forgery_token((await owner.get(PAGE)).text)
        form = {**FORM, "csrf": token, "text": "We take it from January."}
        refused = await post(owner, "/console/question/answer", form)

    assert refused.status_code == 409
    assert "We take it from January.</textarea>" in refused.text


async def test_only_an_editor_answers_in_the_console(store: RecordStore) -> None:
    people, sessions = FakeHandOver(), FakeSessions()
    roles = {DESK: {"viewer@acme.test": ConsoleRole.VIEWER}}
    async with browser_of(make_console(store, sessions, roles=roles, handover=people)) as viewer:
        await sign_in(viewer, sessions, "viewer@acme.test")
        page = (await viewer.get(PAGE)).text
        form = {**FORM, "csrf": read_forgery_token(page), "text": "Evil"}
        refused = await post(viewer, "/console/question/answer", form)

    assert "Answer the person" not in page
    assert refused.status_code == 403
    assert people.replies == []
