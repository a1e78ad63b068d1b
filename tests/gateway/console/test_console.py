"""Only the owner sees the console, and it shows what the records say, as text."""

import asyncio
import re
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser

from gateway.connections.server import listening, serving
from gateway.console.attention import find_steps
from gateway.console.frame import Frame
from gateway.console.people import PeoplePages
from records.record import Record
from records.store import RecordStore
from tests.support.browser import chromium, open_context, violations
from tests.support.console import (
    FakeKeys,
    browser_of,
    make_console,
    make_personal_data,
    open_records,
    post,
    read_forgery_token,
)

NOW = time.time()
RECORD = Record(
    tenant="acme",
    assistant="desk",
    conversation_id="c1",
    message_id="m1",
    accepted_at=NOW - 62,
    ended_at=NOW - 60,
    channel="slack",
    person="p1",
    way="search",
    language="en",
    question="How many days of leave do I have?",
    canonical="Number of days of leave",
    outcome="answered",
    answer="You have **30 days** [1].\n\n```\nleave --days\n```",
    sources=({"number": 1, "title": "Leave", "path": "leave.md"},),
    quality=0.9,
    judge="small@house",
    models=("small@house",),
    model_calls=2,
    input_tokens=1200,
    output_tokens=80,
    cost_usd=Decimal("0.0042"),
    seconds=2.0,
    steps=(
        {"kind": "agent_run", "role": "response", "at": 1.8, "seconds": 1.5, "status": "completed"},
        {"kind": "model_call", "task": "response", "model": "small@house", "at": 1.7,
         "seconds": 1.4, "tokens": 900, "cost_usd": "0.0042"},
        {"kind": "model_call", "task": "judge", "model": "own@house", "at": 1.9, "tokens": 7},
        {"kind": "not_done", "role": "risk_verifier", "at": 2.0, "text": "the model refused"},
    ),
)  # fmt: skip
REFUSED = replace(
    RECORD,
    message_id="m2",
    question="Who won the cup?",
    outcome="refused",
    reason="out_of_scope",
    answer="That is not about our company.",
    quality=None,
)
FOREIGN = replace(RECORD, tenant="other", message_id="m3", question="A secret of others?")
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:alert(1))"
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerk" * 4
ARABIC = "كيف يمكنني إعداد قواعد توجيه الرسائل؟"
BROAD = replace(
    RECORD,
    message_id="m4",
    question=f"{ARABIC} API {LONG}",
    answer=f"{ARABIC} [1]\n\n| a | b |\n|---|---|\n| {LONG} | {ARABIC} |\n",
    rating="down",
    rating_reason=f"{ARABIC} {LONG}",
    person_name=LONG[:100],
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with open_records(tmp_path, RECORD, REFUSED, FOREIGN) as opened:
        opened.rate(REFUSED.id, "down", f"wrong {HOSTILE}")
        yield opened


@pytest.fixture
async def owner(store: RecordStore) -> AsyncIterator[httpx.AsyncClient]:
    async with browser_of(make_console(store)) as client:
        assert (await client.get("/console/login?code=code")).status_code == 303
        yield client


QUESTION = "/console/question?tenant=acme&assistant=desk&conversation=c1&message=m1"


@pytest.mark.parametrize("path", ["/console", "/console/questions", QUESTION])
async def test_nobody_sees_anything_without_a_session(store: RecordStore, path: str) -> None:
    async with browser_of(make_console(store)) as client:
        for headers in ({}, {"cookie": "refdesk_console=guessed"}):
            shown = await client.get(path, headers=headers)

            assert shown.status_code == 401
            assert "refdesk console" in shown.text
            assert "leave" not in shown.text


async def test_a_link_opens_the_console_once(store: RecordStore) -> None:
    async with browser_of(make_console(store)) as client:
        first = await client.get("/console/login?code=code")
        second = await client.get("/console/login?code=code")

    cookie = first.headers["set-cookie"].lower()
    assert all(part in cookie for part in ("httponly", "samesite=strict", "path=/console"))
    assert second.status_code == 403
    assert "Create a new one with: refdesk console" in second.text


async def test_a_session_ends_when_its_owner_signs_out(owner: httpx.AsyncClient) -> None:
    token = owner.cookies["refdesk_console"]
    page = (await owner.get("/console")).text
    await post(owner, "/console/logout", {"csrf": read_forgery_token(page)})

    headers = {"cookie": f"refdesk_console={token}"}
    assert (await owner.get("/console", headers=headers)).status_code == 401


async def test_the_overview_counts_what_happened_and_names_what_needs_attention(
    owner: httpx.AsyncClient,
) -> None:
    page = (await owner.get("/console?days=7")).text

    figures = dict(re.findall(r'<dt><a href="[^"]*">([^<]*)</a></dt><dd>([^\n<]*)', page))
    assert (figures["Questions"], figures["Not answered"]) == ("2", "50 %")
    assert "outside the topic" in page
    assert "Who won the cup?" in page.split("<h2>Needs you")[1]


async def test_a_request_for_a_person_stands_first_until_a_person_answered_or_cared(
    owner: httpx.AsyncClient, store: RecordStore
) -> None:
    asking = replace(RECORD, way="courtesy", reason="person", question="A human, please?")
    other = replace(asking, conversation_id="c8", message_id="m8", question="Anybody?")
    reply = replace(RECORD, conversation_id="c8", message_id="m9", answered_by="person",
                    way="command", ended_at=NOW)  # fmt: skip
    store.write([asking, other])
    first = (await owner.get("/console")).text
    store.write([reply])
    answered = (await owner.get("/console")).text
    form = {"tenant": "acme", "assistant": "desk", "conversation": "c1", "message": "m1"}

    await post(owner, "/console/question/done", {**form, "csrf": read_forgery_token(answered)})

    waiting = first.split("<h2>Waiting for a person")[1].split("<h2>Needs you")[0]
    assert "A human, please?" in waiting
    assert "Anybody?" in waiting
    assert "Anybody?" not in answered
    assert "Waiting for a person" not in (await owner.get("/console")).text


async def test_a_new_desk_shows_one_next_step(store: RecordStore) -> None:
    async def count(_: object) -> int:
        return 1

    async def has_keys() -> bool:
        return False

    for has_model, action in ((False, "See the settings"), (True, "Create a key")):
        steps = find_steps(count, has_keys, has_model=has_model)
        async with browser_of(make_console(store, find_setup=steps)) as client:
            await client.get("/console/login?code=code")
            page = (await client.get("/console")).text.split("Get started")[-1]

        assert page.partition('class="button"')[2].partition(">")[2].startswith(action)


async def test_questions_are_found_by_words_and_filters(owner: httpx.AsyncClient) -> None:
    by_words = (await owner.get("/console/questions?text=days+of+leave")).text
    refused = (await owner.get("/console/questions?outcome=refused")).text

    assert "How many days" in by_words
    assert "Who won" not in by_words
    assert "Who won" in refused
    assert "How many days" not in refused


async def test_one_question_is_shown_whole(owner: httpx.AsyncClient) -> None:
    page = (await owner.get(QUESTION)).text

    for part in (
        "Number of days of leave", "<strong>30 days</strong>", "leave --days", "leave.md",
        "1200 + 80 tokens", "$0.0042", "response · small@house", "Who won the cup?",
        "What was not done", "risk verifier", "the model refused", "7 tokens, price unknown",
    ):  # fmt: skip
        assert part in page


async def test_questions_of_another_tenant_are_not_shown(owner: httpx.AsyncClient) -> None:
    pages = [
        await owner.get("/console?days=30"),
        await owner.get("/console/questions?text=secret"),
        await owner.get(QUESTION.replace("acme", "other").replace("m1", "m3")),
    ]

    assert [page.status_code for page in pages] == [200, 200, 404]
    assert not any("A secret of others" in page.text for page in pages)


@pytest.mark.parametrize(
    "name", ["question", "canonical", "answer", "reason", "channel", "way", "judge"]
)
async def test_text_from_users_and_models_is_never_rendered_as_markup(
    owner: httpx.AsyncClient, store: RecordStore, name: str
) -> None:
    store.write([replace(RECORD, **{name: HOSTILE})])  # type: ignore[arg-type]

    for path in ("/console", f"/console/questions?{name}={HOSTILE}", QUESTION):
        shown = await owner.get(path)

        assert shown.status_code == 200
        for tag in ("<script", "<img", 'href="javascript'):
            assert tag not in shown.text
        assert "default-src 'none'" in shown.headers["content-security-policy"]


async def test_a_database_that_is_away_is_named_as_such(
    owner: httpx.AsyncClient, store: RecordStore, tmp_path: Path
) -> None:
    store.close()
    await asyncio.to_thread(shutil.rmtree, tmp_path)

    shown = await owner.get("/console")

    assert shown.status_code == 503
    assert "The database of the records does not respond" in shown.text


async def test_an_owner_who_keeps_no_records_is_told_how_to(store: RecordStore) -> None:
    async with browser_of(make_console(None)) as client:
        await client.get("/console/login?code=code")

        assert "RECORDS_DAYS" in (await client.get("/console")).text


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (1200, "light")])
async def test_every_page_is_readable_for_everybody(
    store: RecordStore, width: int, scheme: str
) -> None:
    store.write([BROAD])
    listener, people = (
        listening("127.0.0.1", 0),
        PeoplePages(Frame(store, 90.0), make_personal_data(store), FakeKeys()),
    )
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with (
        serving(make_console(store, parts=[people]), listener, asyncio.Event()),
        chromium() as browser,
    ):
        await look_at_pages(browser, url, width, scheme)


async def look_at_pages(browser: Browser, url: str, width: int, scheme: str) -> None:
    context = await open_context(
        browser, viewport={"width": width, "height": 800}, color_scheme=scheme
    )
    page = await context.new_page()
    await page.goto(f"{url}/console")
    assert await violations(page) == []
    await page.goto(f"{url}/console/login?code=code")
    for path in ("/console", "/console/questions", QUESTION, QUESTION.replace("=m1", "=m4"),
                 "/console/people",
                 "/console/people/forget?person=p1", "/console/question?tenant=x"
                 "&assistant=x&conversation=x&message=x"):  # fmt: skip
        await page.goto(f"{url}{path}")

        assert await violations(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
