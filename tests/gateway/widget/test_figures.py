"""The pictures of the cited sections, as people see them below an answer."""

import dataclasses
from typing import Any

import pytest

from envelope.role import Role
from gateway.port import StoredPicture
from tests.gateway.widget.conftest import SHELF, Come
from tests.gateway.widget.sample_documents import RULES
from tests.gateway.widget.test_looks import DESKTOP, PHONE, WIDE
from tests.support.browser import violations
from tests.support.http_server import HttpServerFixture
from tests.support.pictures import make_picture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

NAME, GONE = "a" * 32, "b" * 32
SOURCE = {
    "number": 1,
    "chunk_id": "rules#1",
    "title": "Routing rules",
    "path": "routing/rules.md",
    "pictures": [{"id": NAME, "caption": "The page of rules"}, {"id": GONE, "caption": "Gone"}],
}


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["320", "1440"])
async def test_a_figure_of_a_cited_section_is_shown_from_our_server_with_its_caption(
    http_server: HttpServerFixture, come: Come, monkeypatch: pytest.MonkeyPatch, size: Any
) -> None:
    section = dataclasses.replace(RULES.sections[1], pictures=((NAME, "The page of rules"),))
    document = dataclasses.replace(RULES, sections=(section,))
    monkeypatch.setitem(SHELF.kept, ("acme", "docs", "rules#1"), document)
    picture = StoredPicture("image/png", make_picture(size=(1600, 900)))
    monkeypatch.setattr(SHELF, "pictures", {NAME: picture})
    visitor = await come(viewport=size, reduced_motion="reduce")
    asked: list[str] = []
    visitor.context.on("request", lambda request: asked.append(request.url))
    shown = await visitor.opens(mode="inline")
    reply = {"response": "Open the rules. [1]", "sources_used": [SOURCE]}
    http_server.harness.script.next(Role.RESPONSE, reply)

    await shown.asks("How do I add a routing rule?")
    await shown.has_answers(1)
    image = shown.part(".figures img")
    await shown.part("figure", has_text="Gone").wait_for(state="detached")
    await image.scroll_into_view_if_needed()

    assert await image.evaluate("it => it.decode().then(() => it.naturalWidth)") == 1600
    assert await image.get_attribute("alt") == "The page of rules"
    assert (await shown.part("figcaption").inner_text()).split() == [
        "The",
        "page",
        "of",
        "rules",
        "1",
    ]
    assert all(url.startswith(visitor.url) for url in asked)
    assert await violations(shown.page) == []
    assert not await shown.page.evaluate(WIDE)
    assert not await shown.part(".log").evaluate("it => it.scrollWidth > it.clientWidth")


async def test_a_picture_of_another_server_is_never_loaded(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    asked: list[str] = []
    visitor.context.on("request", lambda request: asked.append(request.url))
    shown = await visitor.opens(mode="inline")
    reply = {"response": "Open the rules. [1]", "sources_used": [SOURCE]}
    http_server.harness.script.next(Role.RESPONSE, reply)

    async def point_elsewhere(route: Any) -> None:
        response = await route.fetch()
        text = (await response.text()).replace(f"{visitor.url}/v1/reader/", "https://spy.test/")
        await route.fulfill(response=response, body=text)

    await shown.page.route("**/events", point_elsewhere)
    await shown.page.route("**/messages", point_elsewhere)
    await shown.asks("How do I add a routing rule?")
    await shown.has_answers(1)

    assert await shown.part("img").count() == 0
    assert all(url.startswith(visitor.url) for url in asked)
