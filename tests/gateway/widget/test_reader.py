"""The page on which a cited document is read, as a browser shows it."""

from typing import Any

import pytest

from tests.gateway.http.test_documents import ticket_of
from tests.gateway.widget.conftest import Come
from tests.gateway.widget.test_looks import DESKTOP, PHONE, WIDE
from tests.support.browser import violations
from tests.support.http_server import HttpServerFixture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

SIDE = "it => getComputedStyle(it).textAlign"


async def open_reader(come: Come, chunk: str, **options: Any) -> Any:
    """Open a document at its cited part; its own policy would keep axe out, too."""
    visitor = await come(bypass_csp=True, **options)
    address = f"{visitor.url}/v1/reader/{ticket_of(chunk_id=chunk)}#create-a-rule"
    return (await visitor.goes(address)).page


@pytest.mark.parametrize("chunk", ["rules#1", "arabic#1", "gone#1"])
@pytest.mark.parametrize(("size", "scheme"), [(PHONE, "dark"), (DESKTOP, "light")])
async def test_axe_finds_nothing_on_a_documents_page(
    come: Come, chunk: str, size: Any, scheme: Any
) -> None:
    page = await open_reader(come, chunk, viewport=size, color_scheme=scheme)

    assert await violations(page) == []
    assert not await page.evaluate(WIDE)


async def test_a_document_opens_at_the_cited_part_and_keys_reach_what_scrolls(come: Come) -> None:
    page = await open_reader(come, "rules#1", viewport=PHONE)

    assert await page.locator(".cited").evaluate("it => it.getBoundingClientRect().top") < 100
    for scrolls in (page.locator(".cited pre"), page.locator(".table")):
        assert await scrolls.evaluate("it => it.scrollWidth > it.clientWidth")
        await scrolls.focus()
        assert await scrolls.evaluate("it => it === document.activeElement")
    assert await page.locator(".table").get_attribute("aria-label") == "Errors"


async def test_an_arabic_document_keeps_its_lists_and_tables_at_the_right(come: Come) -> None:
    page = await open_reader(come, "arabic#1", viewport=DESKTOP)

    assert [await it.evaluate(SIDE) for it in await page.locator("li, td").all()] == ["right"] * 4
    table = await page.locator("table").bounding_box()
    heading = await page.locator("h2").last.bounding_box()
    assert table["x"] + table["width"] == heading["x"] + heading["width"]


async def test_a_documents_page_asks_for_nothing(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    asked: list[str] = []
    visitor.context.on("request", lambda request: asked.append(request.url))
    page = await visitor.context.new_page()

    await page.goto(f"{http_server.url}/v1/reader/{ticket_of()}")
    shade = await page.locator("code").first.evaluate("it => getComputedStyle(it).backgroundColor")

    assert shade != "rgba(0, 0, 0, 0)"  # its own style is let in, by its hash
    assert {url.partition("/v1/")[2].partition("/")[0] for url in asked} <= {"reader", ""}
