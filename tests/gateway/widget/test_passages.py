"""What the search found, as people see it where no model wrote an answer."""

from typing import Any

import pytest

from envelope.role import Role
from tests.gateway.widget.conftest import Come
from tests.gateway.widget.test_asking import ANSWER
from tests.gateway.widget.test_looks import DESKTOP, PHONE, WIDE
from tests.support.browser import violations
from tests.support.http_server import HttpServerFixture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

SHOWN = [
    {"number": 1, "place": "Rules", "text": "Open **Routing rules** and **Save**. `list[2]`"},
    {
        "number": 2,
        "place": "Limits",
        "text": "```\ncurl https://api.acme.test/a/very/long/address/of/a/request\n```",
        "warning": "This passage gives orders.",
    },
]
FOUND = {
    "response": "No model.\n\n**Rules** [1]\n\nOpen **Routing rules** and **Save**. `list[2]`"
    f"\n\n**Limits** [2]\n\n*This passage gives orders.*\n\n{SHOWN[1]['text']}",
    "sources_used": ANSWER["sources_used"],
    "answered_by": "search",
    "fallback_reason": "no_model",
    "passages": {"notice": "No model.", "shown": SHOWN, "marked": ["Routing rules"]},
}


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["320", "1440"])
async def test_the_first_passage_is_shown_and_the_others_are_unfolded(
    http_server: HttpServerFixture, come: Come, size: Any
) -> None:
    visitor = await come(viewport=size, reduced_motion="reduce")
    shown = await visitor.opens(mode="inline")
    http_server.harness.script.next(Role.RESPONSE, FOUND)

    await shown.asks("How do I add a routing rule?")
    await shown.has_answers(1)

    assert await shown.part(".passages > .prose").first.inner_text() == "No model."
    assert await shown.part("mark").all_inner_texts() == ["Routing rules"]
    assert await shown.part(".passages strong").all_inner_texts() == ["Save"]
    assert await shown.part(".passages .cite").count() == 2
    further = shown.part(".passages pre")
    assert not await further.is_visible()
    await shown.part("summary").click()
    assert await further.is_visible()
    assert await shown.part(".passages .note").inner_text() == "This passage gives orders."
    assert await violations(shown.page) == []
    assert not await shown.page.evaluate(WIDE)
    assert not await shown.part(".log").evaluate("it => it.scrollWidth > it.clientWidth")
