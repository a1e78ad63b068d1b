"""What is too long to be sent is said, with the limit: nothing is cut and nothing is lost."""

import pytest

from gateway.http.routes.conversations import LONGEST_REASON
from gateway.text import LONGEST_CHARACTERS
from tests.gateway.widget.conftest import Come
from tests.support.browser import WIDGET
from tests.support.http_server import HttpServerFixture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

# A character of two halves in a script is one for the desk.
TOO_LONG = "How? " + "😀" * (LONGEST_CHARACTERS - 4)
NOTE = f"Too long: {LONGEST_CHARACTERS + 1} characters of at most {LONGEST_CHARACTERS}."


async def test_a_question_that_is_too_long_is_said_to_be_and_stays_whole(
    http_server: HttpServerFixture, come: Come
) -> None:
    shown = await (await come()).opens()

    await shown.asks(TOO_LONG)

    note = shown.part(".composer .problem")
    assert await note.inner_text() == NOTE
    assert await shown.field.input_value() == TOO_LONG
    assert await shown.field.get_attribute("aria-invalid") == "true"
    assert await shown.part(".send").is_disabled()
    assert await shown.part(".turn").count() == 0
    assert NOTE in await shown.said()
    await shown.field.press("End")
    await shown.field.press("Backspace")
    await note.wait_for(state="hidden")
    await shown.field.press("Enter")
    await shown.has_answers(1)
    assert await shown.field.input_value() == ""


async def test_a_page_that_asks_something_too_long_leaves_it_to_the_person(
    http_server: HttpServerFixture, come: Come
) -> None:
    shown = await (await come()).opens(lang="de")

    await shown.page.evaluate(f"text => document.querySelector('{WIDGET}').ask(text)", TOO_LONG)

    problem = f"Zu lang: {LONGEST_CHARACTERS + 1} Zeichen von höchstens {LONGEST_CHARACTERS}."
    assert await shown.part(".composer .problem").inner_text() == problem
    assert await shown.field.input_value() == TOO_LONG
    assert await shown.part(".turn").count() == 0


async def test_a_reason_that_is_too_long_is_said_to_be(
    http_server: HttpServerFixture, come: Come
) -> None:
    shown = await (await come()).opens()
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    await shown.part("[data-rating=down]").click()
    field = shown.part(".reason textarea")

    await field.fill("x" * (LONGEST_REASON + 1))
    await shown.part(".reason .main").click()

    problem = f"Too long: {LONGEST_REASON + 1} characters of at most {LONGEST_REASON}."
    assert await shown.part(".reason .problem").inner_text() == problem
    await field.fill("It misses a step.")
    await shown.part(".reason .main").click()
    await shown.part(".confirmation", has_text="Thank you").wait_for()
