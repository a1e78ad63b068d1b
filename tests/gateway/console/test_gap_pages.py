"""The owner sees what the documents lack, works on it, and asks again."""

import csv
import io
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from pydantic import JsonValue

from broker.redis_broker import RedisBroker
from broker.values import Delivery, Fields, Finish
from envelope.envelope import decode
from envelope.outcome import Outcome
from envelope.question import CONSOLE
from gateway.console.again import Again
from gateway.console.frame import Frame
from gateway.console.gap_pages import GapPages
from gateway.desk import Desk
from records.gaps import GapFinder
from records.record import Record
from records.store import RecordStore
from tests.support.broker_harness import ROLES, BrokerHarness
from tests.support.console import (
    DESK,
    HOSTILE,
    find_faults,
    make_console,
    open_records,
    owner_of,
    send_form,
)
from tests.support.empty_redis import play_redis

REFUSED = Record(
    tenant="acme",
    assistant="desk",
    conversation_id="c1",
    message_id="m1",
    accepted_at=1_000.0,
    ended_at=1_002.0,
    channel="http",
    language="en",
    question="Is there parental leave?",
    outcome="refused",
    reason="insufficient_context",
    answer="I found nothing about it.",
    nearest=({"document_id": "hr/leave", "title": "Leave", "crumbs": ["HR", "Leave"]},),
    groups=("staff",),
)
BEFORE = replace(
    REFUSED,
    message_id="m0",
    accepted_at=900.0,
    ended_at=901.0,
    question="What about leave?",
    outcome="answered",
    answer="30 days.",
)
FOREIGN = replace(REFUSED, tenant="other", question="A secret of others?")
QUESTION = "/console/question?tenant=acme&assistant=desk&conversation=c1&message=m1"


async def embed(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0, 0.0] for _ in texts]


@dataclass
class OwnersDesk:
    """The owner's browser, and the broker behind the desk."""

    owner: httpx.AsyncClient
    harness: BrokerHarness
    store: RecordStore
    app: FastAPI

    async def answer(self, text: str) -> Delivery:
        """Answer the next question, as the agents would."""
        taken = await self.harness.take("manager")
        fields: Fields = {"outcome": "answered", "text": text, "language": "en"}
        assert await self.harness.settle(taken, Finish(Outcome.ANSWERED, fields))
        return taken


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with open_records(tmp_path, BEFORE, REFUSED, FOREIGN) as opened:
        yield opened


@pytest.fixture
async def desk(store: RecordStore) -> AsyncIterator[OwnersDesk]:
    client = play_redis().client()
    broker = RedisBroker(client)
    await broker.prepare(ROLES)
    asking = Desk(
        broker.producer,
        broker.replies,
        tenant="acme",
        assistant="desk",
        channel=CONSOLE,
        deadline_seconds=5.0,
        words=lambda key, _language, **_values: key,
    )
    frame = Frame(store, 90.0)
    gaps = GapFinder(store, embed, "equal", ["one", "two"], clock=lambda: 2_000.0)
    pages = GapPages(frame, gaps, Again({DESK: asking}, broker.replies))
    app = make_console(store, parts=[pages])
    async with owner_of(app) as owner:
        yield OwnersDesk(owner, BrokerHarness(broker, client, RedisBroker), store, app)
    await client.aclose()


async def find_gap(desk: OwnersDesk) -> str:
    listed = (await desk.owner.get("/console/gaps.json")).json()["gaps"]
    return f"/console/gap?tenant=acme&assistant=desk&id={listed[0]['id']}"


async def test_a_gap_shows_its_questions_and_the_nearest_pages(desk: OwnersDesk) -> None:
    listed = (await desk.owner.get("/console/gaps")).text
    shown = (await desk.owner.get(await find_gap(desk))).text

    assert "Is there parental leave?" in listed
    assert "A secret of others" not in listed
    assert "HR › Leave" in shown
    assert "message=m1" in shown


async def test_a_gap_that_is_done_leaves_the_list_until_it_is_looked_for(desk: OwnersDesk) -> None:
    place = await find_gap(desk)
    saved = await send_form(
        desk.owner, place, "/console/gap/state", id=place.partition("id=")[2], state="done"
    )

    assert saved.status_code == 303
    assert "parental" not in (await desk.owner.get("/console/gaps")).text
    assert "parental" in (await desk.owner.get("/console/gaps?state=done")).text


async def test_a_question_is_asked_again_as_its_person_asked_it(desk: OwnersDesk) -> None:
    sent = await send_form(
        desk.owner, QUESTION, "/console/question/again", conversation="c1", message="m1"
    )
    taken = await desk.answer("Yes, 12 weeks.")
    both = await desk.owner.get(sent.headers["location"])

    envelope = decode(taken.frame)
    assert envelope.payload["text"] == "Is there parental leave?"
    assert [turn["text"] for turn in envelope.payload["history"]] == [  # type: ignore[index, union-attr, call-overload]
        "What about leave?", "30 days.",
    ]  # fmt: skip
    assert envelope.groups == ("staff",)
    assert envelope.conversation_id == "console/c1"
    assert "I found nothing about it." in both.text
    assert "Yes, 12 weeks." in both.text


async def test_the_questions_of_a_gap_are_asked_again_together(desk: OwnersDesk) -> None:
    place = await find_gap(desk)
    sent = await send_form(desk.owner, place, "/console/gap/again", id=place.partition("id=")[2])
    again = decode((await desk.answer("Yes.")).frame)
    desk.store.write(
        [
            replace(
                REFUSED,
                conversation_id=again.conversation_id,
                message_id=again.message_id,
                channel=CONSOLE,
                outcome="answered",
                reason="",
            )
        ]
    )

    shown = (await desk.owner.get(sent.headers["location"])).text

    assert "are being asked again" in shown
    assert "Asked again" in shown
    assert "Answered" in shown.split("Asked again")[1]


@pytest.mark.parametrize("formula", ["=HYPERLINK(1)", "\t=1", " ＋1", "-1+1", "@SUM(1)"])
async def test_exported_texts_run_no_formula_in_a_spreadsheet(
    desk: OwnersDesk, store: RecordStore, formula: str
) -> None:
    store.write([replace(REFUSED, question=formula, canonical=formula)])

    [row] = csv.DictReader(io.StringIO((await desk.owner.get("/console/gaps.csv")).text))

    assert row["title"].strip().startswith("'")
    assert row["examples"].strip().startswith("'")


async def test_exported_texts_begin_no_cell_where_semicolons_divide(
    desk: OwnersDesk, store: RecordStore
) -> None:
    store.write([replace(REFUSED, question="a;=HYPERLINK(1)", canonical="a;=HYPERLINK(1)")])

    text = (await desk.owner.get("/console/gaps.csv")).text

    cells = list(csv.reader(io.StringIO(text), delimiter=";"))
    assert not [cell for row in cells for cell in row if cell.startswith("=")]


async def test_hostile_text_stays_text(desk: OwnersDesk, store: RecordStore) -> None:
    place: dict[str, JsonValue] = {
        "document_id": "d",
        "title": HOSTILE,
        "crumbs": [HOSTILE],
        "path": HOSTILE,
    }
    store.write([replace(REFUSED, question=HOSTILE, channel=HOSTILE, nearest=(place,))])

    for path in ("/console/gaps", await find_gap(desk), QUESTION):
        shown = await desk.owner.get(path)

        assert shown.status_code == 200
        assert "<script" not in shown.text
        assert "<img" not in shown.text


@pytest.mark.slow
async def test_the_pages_are_readable_for_everybody(desk: OwnersDesk) -> None:
    place = await find_gap(desk)
    sent = await send_form(
        desk.owner, QUESTION, "/console/question/again", conversation="c1", message="m1"
    )
    await desk.answer("Yes, 12 weeks.")
    paths = ["/console/gaps", place, QUESTION, sent.headers["location"]]

    assert await find_faults(desk.app, desk.owner, paths, scheme="dark") == []
