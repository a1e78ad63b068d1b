"""Whatever a model was talked into, nothing in the widget leads or loads from elsewhere."""

import pytest
from playwright.async_api import Route

from envelope.role import Role
from tests.citations.shapes import HOST, PAGE, SHAPES, SOURCE
from tests.gateway.widget.conftest import Come
from tests.support.http_server import HttpServerFixture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

POINTING = """root => [...root.shadowRoot.querySelectorAll("*")].flatMap((it) =>
  ["href", "src", "srcset", "action", "formaction", "data", "poster", "ping", "style"]
    .map((name) => it.getAttribute(name)).filter(Boolean))"""


async def test_no_shape_of_a_foreign_link_is_shown_or_loaded(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    asked: list[str] = []
    visitor.context.on("request", lambda request: asked.append(request.url))
    shown = await visitor.opens()
    for number, shape in enumerate(SHAPES, 1):
        http_server.harness.script.next(
            Role.RESPONSE, {"response": shape.text, "sources_used": [SOURCE]}
        )
        await shown.asks("How?")

        answers = await shown.has_answers(number)

        assert HOST not in "".join(answers), shape.name
        assert shape.kept in " ".join(answers[-1].replace("\xa0", " ").split()), shape.name

    pointing = await shown.page.locator("refdesk-widget").evaluate(POINTING)
    assert pointing
    assert not [where for where in pointing if HOST in where or "javascript" in where.lower()]
    links = await shown.part(".turn a").evaluate_all("links => links.map((it) => it.href)")
    assert {link.partition("#")[0] for link in links} == {PAGE}
    assert all(url.startswith(visitor.url) for url in asked)


async def test_the_widget_alone_follows_only_pages_of_the_sources(
    http_server: HttpServerFixture, come: Come
) -> None:
    shown = await (await come()).opens()
    http_server.harness.script.next(
        Role.RESPONSE, {"response": "Open Routing. [1]", "sources_used": [SOURCE]}
    )
    stale = f"[Open](https://{HOST}/) https://{HOST}/ <https://{HOST}/> [rules]({PAGE}#top)"

    async def wait_until_answered(route: Route) -> None:
        response = await route.fetch()
        await route.fulfill(
            response=response, body=(await response.text()).replace("Open Routing.", stale)
        )

    await shown.page.route("**/events", wait_until_answered)
    await shown.page.route("**/messages", wait_until_answered)
    await shown.asks("How?")
    await shown.has_answers(1)

    links = await shown.part(".prose a:not(.cite)").evaluate_all("all => all.map((it) => it.href)")
    assert links == [f"{PAGE}#top"]
