"""A visitor asks for a person: after a refusal, and after a thumbs down."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from fakeredis import FakeAsyncRedis, FakeServer

from envelope.question import Question
from envelope.role import Role
from gateway.widget.routes import widget_router
from tests.gateway.widget.conftest import SHELF, Come
from tests.support.browser import violations
from tests.support.fake_handover import FakeHandOver
from tests.support.http_server import HttpServerFixture, open_http_server
from tests.support.worker_harness import WorkerHarness

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

OFFER = "button:has-text('Ask a person')"


class FailingHandOver(FakeHandOver):
    """Its receivers accept the second conversation."""

    async def request(self, question: Question, **named: Any) -> bool:
        await super().request(question, **named)
        return len(self.notes) > 1


@pytest_asyncio.fixture(loop_scope="session")
async def http_server() -> AsyncIterator[HttpServerFixture]:
    """A server whose conversations people take over."""
    server = FakeServer()
    harness = WorkerHarness(lambda: FakeAsyncRedis(server=server, protocol=2), played=True)
    opening = open_http_server(
        harness, documents=SHELF, others=(widget_router(),), handover=FailingHandOver()
    )
    async with harness.open(), opening as opened:
        yield opened
    await harness.close()


async def test_a_visitor_is_offered_a_person_and_told_truly_whether_one_was_asked(
    http_server: HttpServerFixture, come: Come
) -> None:
    http_server.harness.script.next(Role.GUARDRAILS, {"within_scope": False})
    shown = await (await come()).opens()
    await shown.asks("How?")
    await shown.has_answers(1)

    form: list[str] = []
    for result in ("failed", "sent"):
        await shown.part(OFFER).first.click()
        await shown.part("#note").fill(f"Please call, {result}.")
        form = await violations(shown.page)
        await shown.part(".reason button:has-text('Send')").click()
        await shown.part(".question", has_text=f"Please call, {result}.").wait_for()

    assert form == []
    assert await violations(shown.page) == []
    assert "handover_sent/en" in await shown.said()
    assert await shown.part(OFFER).first.is_hidden()


async def test_after_an_answer_a_person_is_offered_once_it_is_rated_down(
    http_server: HttpServerFixture, come: Come
) -> None:
    del http_server
    shown = await (await come()).opens()
    await shown.asks("How?")
    await shown.has_answers(1)
    before = await shown.part(OFFER).is_visible()

    await shown.part("[data-rating=down]").click()

    await shown.part(OFFER).wait_for()
    assert before is False
