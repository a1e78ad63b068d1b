"""Why a page cannot reach its desk: a polite line for visitors, the remedy in the console."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI, Response

from gateway.connections.server import listening, serving
from gateway.widget.routes import widget_router
from tests.gateway.widget.conftest import Come
from tests.support.browser import BrowserVisitor, DisplayedMessage
from tests.support.http_server import HttpServerFixture
from tests.support.waiting import wait_until

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

    assert f"this page's origin {SITE} is not among the websites" in message
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

    assert any("the page may not read it" in line for line in messages)


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


async def test_who_has_asked_too_much_is_in_line_and_has_lost_no_connection(
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
