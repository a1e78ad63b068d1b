"""What the widget does when something breaks: nothing is lost, and the remedy is said."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI, Response

from broker.transport.connect import connect
from envelope.role import Role
from gateway.connections.server import listening, serving
from gateway.widget.routes import widget_router
from tests.gateway.widget.conftest import Come
from tests.support.browser import BrowserVisitor, DisplayedMessage
from tests.support.http_server import HttpServerFixture
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


SITE, OTHER = "http://shop.localhost", "http://other.localhost"


NEAR = ["local-network-access"]


SHUT = "Questions cannot be sent from this page"


MADE = f"refdesk keys create --public --origin {SITE}"


async def is_shut(visitor: BrowserVisitor, shown: DisplayedMessage) -> list[str]:
    """Return what the console says of a page whose visitor reads that it cannot ask."""
    await shown.asks("How do I add a rule?")
    await shown.part(".problem", has_text=SHUT).wait_for()
    assert await shown.part(".notice").first.is_hidden()
    return visitor.take_console_errors()


async def test_a_foreign_website_is_shown_its_origin_and_the_command(
    http_server: HttpServerFixture, come: Come
) -> None:
    key = await http_server.public(origins=(OTHER,))
    visitor = await come(permissions=NEAR)
    shown = await visitor.opens(site=SITE, key=key)

    (message,) = await is_shut(visitor, shown)

    assert f"this page's origin {SITE} is not allowed for the key" in message
    assert MADE in message
    assert key not in message
    assert "_".join(key.split("_")[:3]) in message
    assert OTHER not in message


async def test_a_website_with_a_key_that_is_not_good_is_notified(
    http_server: HttpServerFixture, come: Come
) -> None:
    key = await http_server.public(origins=(SITE,))
    [kept] = await http_server.keys.all()
    await http_server.keys.put(kept.model_copy(update={"revoked_at": 1.0}))
    visitor = await come(permissions=NEAR)
    shown = await visitor.opens(site=SITE, key=key)

    (message,) = await is_shut(visitor, shown)

    assert "was revoked, or has expired" in message
    assert MADE in message


async def test_a_website_before_a_desk_without_keys_is_shown_how_to_make_one(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come(permissions=NEAR)
    shown = await visitor.opens(site=SITE)

    (message,) = await is_shut(visitor, shown)

    assert "without keys, only requests from the server's own machine are answered" in message
    assert MADE in message


async def test_an_assistant_that_a_key_does_not_have_is_named(
    http_server: HttpServerFixture, come: Come
) -> None:
    key = await http_server.public(origins=(SITE,))
    visitor = await come(permissions=NEAR)
    shown = await visitor.opens(site=SITE, key=key, assistant="nobody")

    (message,) = await is_shut(visitor, shown)

    assert "has no assistant nobody" in message


async def test_a_policy_of_the_page_that_stops_the_widget_is_named(
    http_server: HttpServerFixture, come: Come
) -> None:
    key = await http_server.public(origins=(SITE,))
    visitor = await come(permissions=NEAR)
    elsewhere = http_server.url.replace("127.0.0.1", "localhost")
    shown = await visitor.opens(site=SITE, key=key, desk=elsewhere)

    messages = await is_shut(visitor, shown)

    assert any(f"add {elsewhere} to connect-src" in line for line in messages)


@asynccontextmanager
async def bare_proxy() -> AsyncIterator[str]:
    """Answer everything while inside, but leave out what lets a page read it."""
    app = FastAPI()
    app.include_router(widget_router())

    @app.api_route("/{path:path}", methods=["GET", "POST", "OPTIONS"])
    async def answer(path: str) -> Response:
        return Response("{}", media_type="application/json")

    listener = listening("127.0.0.1", 0)
    try:
        async with serving(app, listener, asyncio.Event()):
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


async def test_a_proxy_that_takes_headers_away_does_not_look_like_a_lost_connection(
    come: Come,
) -> None:
    async with bare_proxy() as url:
        visitor = await come(url=url, permissions=NEAR)
        shown = await visitor.opens(site=SITE, key=f"refdesk_public_{'0' * 12}_{'x' * 43}")

        messages = await is_shut(visitor, shown)

    assert any("does not let the page read the response" in line for line in messages)


async def test_a_desk_that_is_away_still_is_a_lost_connection_and_comes_back(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    shown = await visitor.opens()
    tried = []

    async def away(route: Any) -> None:
        tried.append(route.request.url)
        await route.abort()

    await visitor.context.route("**/v1/**", away)
    await visitor.context.route("**/healthz", away)
    await shown.asks("How do I add a rule?")
    await shown.part(".notice", has_text="The connection was lost").wait_for()
    await wait_until(lambda: has_probed(tried))
    await visitor.context.unroute("**/healthz")
    await visitor.context.unroute("**/v1/**")

    assert await shown.has_answers(1) == ["Open Routing [1]."]
    assert visitor.take_console_errors() == []


async def has_probed(tried: list[str]) -> bool:
    return any("/healthz" in url for url in tried)


async def test_a_visitor_over_the_limit_waits_without_losing_the_connection(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    shown = await visitor.opens()
    refused: list[str] = []

    async def limit_once(route: Any) -> None:
        if refused:
            await route.continue_()
            return
        refused.append(route.request.url)
        error = {"error": {"message": "used up", "code": "visitor_limit_exceeded"}}
        await route.fulfill(status=429, headers={"Retry-After": "2"}, json=error)

    await visitor.context.route("**/messages", limit_once)
    await shown.asks("How do I add a rule?")

    await shown.part(".progress", has_text="yours is waiting").wait_for()
    assert await shown.part(".notice").first.is_hidden()
    assert await shown.has_answers(1) == ["Open Routing [1]."]


ROOT = Path(__file__).parent.parent.parent.parent


LONG = " ".join(f"Word {number} of a long answer." for number in range(40))


@pytest_asyncio.fixture(loop_scope="session")
async def workers(redis_url: str) -> AsyncIterator[WorkerHarness]:
    """A desk that works in this process, behind servers that may die."""
    harness = WorkerHarness(lambda: connect(redis_url), played=False)
    await harness.client.flushall()
    async with harness.open():
        yield harness
    await harness.close()


@contextmanager
def serve_widget(redis_url: str, port: int = 0) -> Iterator[tuple[str, "Popen[bytes]"]]:
    """Run a server in a separate process while inside."""
    words = [sys.executable, "-m", "tests.gateway.widget.server_process", redis_url, str(port)]
    process = Popen(words, cwd=ROOT, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip(), process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.redis
async def test_a_server_killed_in_mid_stream_and_started_again_gives_one_answer(
    redis_url: str, workers: WorkerHarness, come: Come
) -> None:
    held = workers.script.hold(Role.RESPONSE, response=LONG)
    with serve_widget(redis_url) as (url, process):
        shown = await (await come(url=url)).opens()
        await shown.asks("How do I add a rule?")
        await shown.part(".progress", has_text="Writing the answer").wait_for()
        process.kill()
        process.wait()
        await shown.part(".notice", has_text="The connection was lost").wait_for()
    held.goes_on.set()

    with serve_widget(redis_url, int(url.rpartition(":")[2])):
        assert await shown.has_answers(1) == [LONG]
        assert await shown.part(".notice").first.is_hidden()
        assert len([words for words in await shown.said() if "Word 1 of" in words]) == 1
    assert len(workers.script.seen[Role.RESPONSE]) == 1


async def test_an_answer_cut_off_among_its_pieces_is_shown_once(
    http_server: HttpServerFixture, come: Come
) -> None:
    http_server.harness.script.next(Role.RESPONSE, {"response": LONG})
    visitor = await come()
    shown = await visitor.opens()
    cut, gate = [], asyncio.Event()

    async def late(route: Any) -> None:
        await gate.wait()
        await route.continue_()

    async def cutting(route: Any) -> None:
        answer = await route.fetch()
        whole = await answer.text()
        cut.append(whole)
        at = whole.index("\n\n", whole.index("event: text") + 200)
        await route.fulfill(response=answer, body=whole[: at + 2])

    await visitor.context.route("**/messages", cutting)
    await visitor.context.route("**/events", late)
    await shown.asks("How do I add a rule?")
    await shown.part(".answer[aria-busy=true] .prose", has_text="Word 0 of").wait_for()
    gate.set()

    assert await shown.has_answers(1) == [LONG]
    assert len(cut) == 1
    assert len(http_server.harness.script.seen[Role.RESPONSE]) == 1


async def test_a_question_asked_offline_is_sent_once_the_network_is_back(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    shown = await visitor.opens()
    await visitor.context.set_offline(True)
    await shown.part(".notice", has_text="You are offline").wait_for()

    await shown.asks("How do I add a rule?")
    await shown.part(".progress").wait_for()
    await visitor.context.set_offline(False)

    assert await shown.has_answers(1) == ["Open Routing [1]."]
    assert await shown.part(".notice").first.is_hidden()
    assert len(http_server.harness.script.seen[Role.RESPONSE]) == 1


async def test_a_question_that_was_never_taken_survives_a_reload(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    shown = await visitor.opens()
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    await visitor.context.route("**/messages", lambda route: route.abort())
    await shown.asks("And delete it?")
    await shown.part(".notice", has_text="The connection was lost").wait_for()

    await visitor.context.unroute("**/messages")
    await shown.page.reload()

    assert len(await shown.has_answers(2)) == 2
    assert len(http_server.harness.script.seen[Role.RESPONSE]) == 2


async def test_a_busy_desk_is_asked_again_when_it_said(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    shown = await visitor.opens()
    answered = []

    async def busy_once(route: Any) -> None:
        answered.append(route.request.post_data_json["message_id"])
        if len(answered) > 1:
            await route.continue_()
            return
        error = {"error": {"message": "busy", "code": "busy"}}
        await route.fulfill(status=429, headers={"Retry-After": "1"}, json=error)

    await visitor.context.route("**/messages", busy_once)
    await shown.asks("How do I add a rule?")

    assert await shown.has_answers(1) == ["Open Routing [1]."]
    assert len(answered) == 2
    assert len(set(answered)) == 1


async def test_a_message_that_cannot_be_sent_can_be_sent_again(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    shown = await visitor.opens()
    refusal = {"error": {"message": "used up", "code": "rate_limit_exceeded"}}

    async def refuse(route: Any) -> None:
        await route.fulfill(status=429, headers={"Retry-After": "40000"}, json=refusal)

    await visitor.context.route("**/messages", refuse)
    await shown.asks("How do I add a rule?")
    await shown.part(".problem", has_text="a lot of questions").wait_for()
    await visitor.context.unroute("**/messages")

    await shown.part(".answer button", has_text="Try again").click()

    assert await shown.has_answers(1) == ["Open Routing [1]."]


async def test_a_browser_that_keeps_nothing_can_ask_all_the_same(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    await visitor.context.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no') } })"
    )
    shown = await visitor.opens()

    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    await shown.asks("And delete it?")

    assert len(await shown.has_answers(2)) == 2
    assert len(await _conversations(http_server)) == 1


async def test_a_conversation_read_late_loses_no_question(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    shown = await visitor.opens()
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    gate = asyncio.Event()

    async def late(route: Any) -> None:
        answer = await route.fetch()
        await gate.wait()
        await route.fulfill(response=answer)

    await visitor.context.route("**/v1/conversations/c-*", late)
    await shown.page.reload()
    await shown.asks("And delete it?")
    await wait_until(lambda: _shows(shown, 1))
    gate.set()

    assert len(await shown.has_answers(2)) == 2


async def _shows(shown: Any, answers: int) -> bool:
    return len(await shown.part(".prose").all()) == answers


async def _conversations(http_server: HttpServerFixture) -> list[Any]:
    return [key async for key in http_server.harness.client.scan_iter("rd:*:asked:*")]
