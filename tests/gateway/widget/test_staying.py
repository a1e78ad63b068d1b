"""Where somebody reads and writes, they stay: what is rated, closed or too long moves nobody."""

from typing import Any

import pytest

from envelope.role import Role
from tests.gateway.widget.conftest import Come
from tests.gateway.widget.test_asking import ANSWER
from tests.support.browser import WIDGET, DisplayedMessage
from tests.support.http_server import HttpServerFixture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

LONG = {"response": "\n\n".join(f"Paragraph {number} of many." for number in range(80))}
FIRST: Any = ANSWER["sources_used"][0]
TITLED = {
    **ANSWER,
    "sources_used": [
        {
            **FIRST,
            "title": "All `files`",
            "heading_path": ["All `files`", "The `config` file, and a lone ` too"],
            "crumbs": [],
        }
    ],
}
VISIBLE = """it => {
  const log = it.closest(".log").getBoundingClientRect(), box = it.getBoundingClientRect();
  return box.top >= log.top - 1 && box.bottom <= log.bottom + 1;
}"""
SETTLED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


async def at(shown: DisplayedMessage) -> float:
    """Return how far the log is scrolled, once all that was asked for is drawn."""
    await shown.page.evaluate(SETTLED)
    offset: float = await shown.part(".log").evaluate("it => it.scrollTop")
    return offset


async def to_the_end(shown: DisplayedMessage) -> None:
    """Scroll with the wheel until the end of the log is reached."""
    await shown.part(".log").hover()
    await shown.page.mouse.wheel(0, 100_000)
    await shown.until(
        f"""() => {{
          const log = document.querySelector("{WIDGET}").shadowRoot.querySelector(".log");
          return log.scrollTop > 500 && log.scrollHeight - log.clientHeight - log.scrollTop < 2;
        }}"""
    )


async def test_a_negative_rating_of_a_long_answer_stays_where_one_reads(
    http_server: HttpServerFixture, come: Come
) -> None:
    http_server.harness.script.next(Role.RESPONSE, LONG)
    shown = await (await come()).opens()
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    await to_the_end(shown)
    before = await at(shown)

    await shown.part("[data-rating=down]").click()
    asked = await at(shown)
    focused = await shown.focused()
    seen = await shown.part(".reason").evaluate(VISIBLE)
    await shown.page.keyboard.type("It misses a step.")
    await shown.part(".reason .main").click()
    await shown.part(".confirmation", has_text="Thank you").wait_for()

    assert asked >= before
    assert (focused, seen) == ("textarea", True)
    assert await at(shown) >= before - 1
    assert await shown.focused() == "tool"


async def test_a_rating_of_an_earlier_answer_does_not_go_to_the_last(
    http_server: HttpServerFixture, come: Come
) -> None:
    http_server.harness.script.next(Role.RESPONSE, LONG)
    shown = await (await come()).opens()
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    http_server.harness.script.next(Role.RESPONSE, LONG)
    await shown.asks("And then?")
    await shown.has_answers(2)
    # As a dragged scroll bar does it: without wheel and keys.
    await shown.part("[data-rating=up]").first.evaluate("it => it.scrollIntoView()")
    before = await at(shown)

    await shown.part("[data-rating=up]").first.click()
    await shown.part(".confirmation", has_text="Thank you").first.wait_for()

    assert abs(await at(shown) - before) < 2


async def test_titles_and_options_show_code_and_no_backticks(
    http_server: HttpServerFixture, come: Come
) -> None:
    http_server.harness.script.next(Role.RESPONSE, TITLED)
    shown = await (await come()).opens()
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    http_server.harness.script.ask_back(
        response="Which one?",
        suggested_actions=[{"label": "Set `<b>A</b>` up", "value": "Set A up"}],
    )
    await shown.asks("How do I set it up?")
    await shown.has_answers(2)

    place = shown.part("a.place").first
    assert await place.locator("b").inner_text() == "The config file, and a lone ` too"
    assert await place.locator("code").all_inner_texts() == ["config", "files"]
    cite = shown.part("a.cite").first
    assert await cite.get_attribute("title") == "The config file, and a lone ` too"
    assert "`config`" not in str(await cite.get_attribute("aria-label"))
    choice = shown.part(".choice").first
    assert await choice.inner_text() == "Set <b>A</b> up"
    assert await choice.locator("code").inner_text() == "<b>A</b>"
    assert "`" not in (await shown.said())[-1]


async def test_escape_closes_what_was_opened_last_wherever_focus_is(
    http_server: HttpServerFixture, come: Come
) -> None:
    shown = await (await come()).opens(mode="launcher")
    keys = shown.page.keyboard
    await shown.part(".launcher").click()
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    await shown.part("[data-rating=down]").click()
    await shown.part("[aria-label='New conversation']").click()
    await shown.part("h2").click()

    left = []
    for _ in range(3):
        await keys.press("Escape")
        left.append(
            [await shown.part(it).is_visible() for it in (".notice .main", ".reason", ".panel")]
        )

    assert left == [[False, True, True], [False, False, True], [False, False, False]]
    assert await shown.focused() == "launcher"
    assert await shown.part(".answer .prose").count() == 1


async def test_escape_leaves_a_panel_that_stands_in_the_page_and_what_was_written(
    http_server: HttpServerFixture, come: Come
) -> None:
    shown = await (await come()).opens()
    await shown.field.fill("How do I")

    await shown.field.press("Escape")

    assert await shown.part(".panel").is_visible()
    assert await shown.field.input_value() == "How do I"
    assert await shown.focused() == "textarea"


async def test_focus_returns_to_the_button_of_the_page_that_opened_the_panel(
    http_server: HttpServerFixture, come: Come
) -> None:
    shown = await (await come()).opens(mode="launcher")
    await shown.page.evaluate(
        f"""() => document.querySelector("button").addEventListener(
          "click", () => document.querySelector("{WIDGET}").open())"""
    )
    await shown.page.get_by_role("button", name="Before").focus()
    await shown.page.keyboard.press("Enter")
    assert await shown.focused() == "textarea"

    await shown.page.keyboard.press("Escape")

    assert not await shown.part(".panel").is_visible()
    assert await shown.page.evaluate("document.activeElement.textContent") == "Before"
