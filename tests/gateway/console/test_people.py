"""Owners see who asks and with which keys, and forget a person; others do not."""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from envelope.conversation import Preferences
from envelope.question import Question
from gateway.api_keys import make_key
from gateway.console.access import ConsoleRole
from gateway.console.frame import Frame
from gateway.console.people import PeoplePages
from gateway.people import AT_ONCE
from records.record import Record
from records.store import RecordStore
from tests.support.console import (
    DESK,
    OTHER,
    FakeChoices,
    FakeKeys,
    FakeSessions,
    browser_of,
    make_console,
    make_personal_data,
    open_records,
    post,
    read_forgery_token,
    sign_in,
)

NOW = 1_790_000_000.0
FIRST = Record("acme", "desk", "c1", "m1", NOW, NOW, person="p1", rating="down")
RECORDS = (
    FIRST,
    replace(FIRST, message_id="m2", ended_at=NOW + 60, rating=""),
    replace(FIRST, conversation_id="c2", message_id="m3", assistant="hr", rating=""),
    replace(FIRST, conversation_id="c1", message_id="m4", person="p2", rating=""),
    replace(FIRST, conversation_id="c3", message_id="m5", person=""),
    replace(FIRST, tenant="other", person="p3"),
)
ROLES = {
    DESK: {"it": ConsoleRole.OWNER, "desk": ConsoleRole.OWNER},
    OTHER: {"it": ConsoleRole.OWNER},
}


@dataclass
class Owner:
    client: httpx.AsyncClient
    sessions: FakeSessions
    keys: FakeKeys
    store: RecordStore
    forgotten: list[Question]
    choices: FakeChoices


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with open_records(tmp_path, *RECORDS) as opened:
        yield opened


@pytest.fixture
async def owner(store: RecordStore) -> AsyncIterator[Owner]:
    sessions, keys = FakeSessions(), FakeKeys()
    forgotten: list[Question] = []
    german = Preferences(language="de", explicit=True)
    choices = FakeChoices({("hr", "p1"): german, ("desk", "p1"): german, ("hr", "p2"): german})
    people = make_personal_data(store, choices, forgotten)
    parts = [PeoplePages(Frame(store, 90.0), people, keys)]
    app = make_console(store, sessions, parts=parts, roles=ROLES, assistants=(DESK, OTHER))
    async with browser_of(app) as client:
        await sign_in(client, sessions, "it")
        yield Owner(client, sessions, keys, store, forgotten, choices)


async def test_people_are_listed_with_what_they_asked(owner: Owner) -> None:
    page = (await owner.client.get("/console/people")).text

    rows = [row for row in page.split("<tr>") if 'scope="row"><bdi>p' in row]
    assert [row.partition("</bdi>")[0][-2:] for row in rows] == ["p1", "p2"]
    counts = re.findall(r"<td class=\"number\">([0-9 /]+)</td>", rows[0])
    assert counts == ["3", "2", "0", "0", "0", "0", "0 / 1", "0"]
    assert ">2026-09-21" in rows[0]
    assert "p3" not in page


async def test_keys_are_listed_without_their_secrets(owner: Owner) -> None:
    mine, token = make_key(
        "secret", tenant="acme", note="the website", groups=("hr",), person_groups=("sales",)
    )
    gone = make_key("public", tenant="acme", origins=("https://www.acme.com",))[0]
    foreign = make_key("secret", tenant="other", note="of others")[0]
    owner.keys.keys = [mine, gone.model_copy(update={"revoked_at": NOW}), foreign]
    owner.keys.used = {mine.id: NOW}

    page = (await owner.client.get("/console/people")).text

    shown = (
        mine.id, "the website", "ask, feedback, forget, read", "groups: hr",
        "person groups: sales", "2026-09-21", "withdrawn", "https://www.acme.com",
        "refdesk keys create",
    )  # fmt: skip
    for part in shown:
        assert part in page
    for secret in (token, token.split("_", 3)[3], mine.digest, mine.person_secret, "of others"):
        assert secret not in page


async def test_a_person_is_forgotten_after_a_question_that_says_what_goes(owner: Owner) -> None:
    asked = await owner.client.get("/console/people/forget?person=p1")
    assert "2 conversations with 3 messages" in asked.text
    assert not owner.forgotten

    fields = {"csrf": read_forgery_token(asked.text), "person": "p1"}
    done = await post(owner.client, "/console/people/forget", fields)

    assert "2 conversations erased" in done.text
    assert {(question.assistant, question.conversation_id) for question in owner.forgotten} == {
        ("desk", "c1"), ("hr", "c2"),
    }  # fmt: skip
    assert owner.choices.kept.keys() == {("hr", "p2")}
    assert (await owner.client.get("/console/people/forget?person=p1")).status_code == 404
    assert owner.store.get(RECORDS[4].id) is not None
    assert owner.store.get(RECORDS[5].id) is not None


async def test_a_person_with_many_conversations_is_forgotten_in_several_steps(owner: Owner) -> None:
    owner.store.write(
        replace(FIRST, conversation_id=f"x{at}", person="p4") for at in range(AT_ONCE + 1)
    )
    page = (await owner.client.get("/console/people/forget?person=p4")).text
    fields = {"csrf": read_forgery_token(page), "person": "p4"}

    first = await post(owner.client, "/console/people/forget", fields)
    second = await post(owner.client, "/console/people/forget", fields)

    assert "This person has further conversations" in first.text
    assert "The records no longer contain data of this person" in second.text
    assert len(owner.forgotten) == AT_ONCE + 1


@pytest.mark.parametrize("person", ["", "p3", "nobody", "' OR 1=1 --", "%"])
async def test_nobody_is_forgotten_by_a_name_that_is_not_listed(owner: Owner, person: str) -> None:
    page = (await owner.client.get("/console/people")).text
    fields = {"csrf": read_forgery_token(page), "person": person}

    shown = await post(owner.client, "/console/people/forget", fields)

    assert shown.status_code == 404
    assert not owner.forgotten


async def test_an_owner_of_one_assistant_sees_neither_people_nor_keys(owner: Owner) -> None:
    await sign_in(owner.client, owner.sessions, "desk", subject="bob")
    overview = (await owner.client.get("/console")).text
    fields = {"csrf": read_forgery_token(overview), "person": "p1"}

    assert "/console/people" not in overview
    assert (await owner.client.get("/console/people")).status_code == 403
    assert (await post(owner.client, "/console/people/forget", fields)).status_code == 403
    assert not owner.forgotten


async def test_names_of_people_and_notes_of_keys_stay_text(owner: Owner) -> None:
    hostile = "<script>alert(1)</script>&person=x"
    owner.store.write([replace(FIRST, conversation_id="c9", person=hostile)])
    owner.keys.keys = [make_key("secret", tenant="acme", note=hostile)[0]]

    page = (await owner.client.get("/console/people")).text

    assert "<script" not in page
    assert "person=%3Cscript%3Ealert%281%29%3C%2Fscript%3E%26person%3Dx" in page
