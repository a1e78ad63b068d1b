"""Approve and deny as buttons of the widget: once, in time, and by the person who asked."""

import time
from collections.abc import AsyncIterator

import jwt
import pytest
import pytest_asyncio
from fakeredis import FakeAsyncRedis, FakeServer

from gateway.api_keys import Key
from gateway.widget.routes import widget_router
from manager.machine import Limits
from tests.gateway.widget.conftest import Come
from tests.gateway.widget.test_persons import log_in
from tests.support.browser import WIDGET, DisplayedMessage
from tests.support.http_server import HttpServerFixture, open_http_server
from tests.support.pausing_flow import AskingTool, make_flow
from tests.support.worker_harness import WorkerHarness

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

QUESTION = "How do I add a rule?"
FOREIGN, OVER = "pause_foreign/en", "pause_over/en"
SHOWS = f"(token) => document.querySelector('{WIDGET}').personToken = token"


@pytest.fixture
def tool() -> AskingTool:
    """The tool that needs an approval."""
    return AskingTool("approval")


@pytest_asyncio.fixture(loop_scope="session")
async def http_server(
    tool: AskingTool, request: pytest.FixtureRequest
) -> AsyncIterator[HttpServerFixture]:
    """An open server before a desk that pauses for approvals; the parameter is their seconds."""
    redis = FakeServer()
    harness = WorkerHarness(lambda: FakeAsyncRedis(server=redis, protocol=2), played=True)
    harness.flows = dict.fromkeys(harness.flows, make_flow("approval"))
    harness.further_agents = [tool]
    harness.limits = Limits(pause_seconds=getattr(request, "param", 600.0))
    opening = open_http_server(harness, others=(widget_router(),))
    async with harness.open(), opening as opened:
        yield opened
    await harness.close()


def name_person(key: Key, person: str) -> str:
    claims = {"aud": key.id, "exp": time.time() + 600, "groups": [], "sub": person}
    return jwt.encode(claims, key.person_secret, algorithm="HS256")


async def press_twice(shown: DisplayedMessage, label: str) -> None:
    """Press a button of the pause with a double click, as impatient people do."""
    await shown.part(".choices button", has_text=label).first.dblclick(force=True)


@pytest.mark.parametrize(("label", "runs"), [("approve/en", 5), ("deny/en", 3)])
async def test_pressing_twice_has_one_effect(
    come: Come, tool: AskingTool, label: str, runs: int
) -> None:
    shown = await (await come()).opens()

    await shown.asks(QUESTION)
    await shown.has_answers(1)
    await press_twice(shown, label)
    answers = await shown.has_answers(2)
    buttons = await shown.part(".choices button").all()

    assert OVER not in answers[1]
    assert len(tool.ran) == runs
    assert [await button.is_disabled() for button in buttons] == [True] * len(buttons)


@pytest.mark.parametrize("http_server", [0.0], indirect=True)
async def test_a_press_after_the_expiry_runs_nothing_and_says_so(
    come: Come, tool: AskingTool
) -> None:
    shown = await (await come()).opens()

    await shown.asks(QUESTION)
    await shown.has_answers(1)
    await press_twice(shown, "approve/en")
    answers = await shown.has_answers(2)

    assert answers[1] == OVER
    assert len(tool.ran) == 3


async def test_a_press_of_somebody_else_at_the_same_page_is_refused(
    http_server: HttpServerFixture, come: Come, tool: AskingTool
) -> None:
    site = await log_in(http_server, come)
    shown = await site.opens(name_person(site.key, "ann"))

    await shown.asks(QUESTION)
    await shown.has_answers(1)
    await shown.page.evaluate(SHOWS, name_person(site.key, "ben"))
    await press_twice(shown, "approve/en")
    answers = await shown.has_answers(2)
    ran = len(tool.ran)
    await shown.page.evaluate(SHOWS, name_person(site.key, "ann"))
    await shown.asks("approve/en")
    await shown.has_answers(3)

    assert answers[1] == FOREIGN
    assert (ran, len(tool.ran)) == (3, 5)
