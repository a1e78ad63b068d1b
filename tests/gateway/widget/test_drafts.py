"""An answer that is shown while it is written, and what is taken back of it."""

import os
from pathlib import Path

import pytest

from tests.gateway.widget.conftest import Come
from tests.support.browser import WIDGET, DisplayedMessage
from tests.support.drafting import FIRST, DraftedAnswer
from tests.support.http_server import HttpServerFixture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

SHOWS = f"""(words) => document.querySelector("{WIDGET}").shadowRoot
    .querySelector(".draft .prose")?.innerText.includes(words)"""
TOOK_BACK = f"""() => document.querySelector("{WIDGET}").shadowRoot
    .querySelector(".retracted del")"""


async def take_picture(shown: DisplayedMessage, name: str) -> None:
    """Keep a picture where the environment names a folder for them."""
    if folder := os.environ.get("REFDESK_TEST_PICTURES"):
        await shown.page.screenshot(path=Path(folder) / f"{name}.png")


async def test_sentences_are_shown_while_the_rest_is_written(
    http_server: HttpServerFixture, come: Come
) -> None:
    drafted = DraftedAnswer(http_server.harness)
    drafted.script()
    shown = await (await come()).opens()

    await shown.asks("How do I add a rule?")
    await shown.page.wait_for_function(SHOWS, arg="Open Routing")
    await take_picture(shown, "draft-first-sentence")
    assert await shown.part(".draft .prose strong").inner_text() == "Routing"
    assert await shown.part(".draft .place b").inner_text() == "Create a rule"
    assert "priority" not in await shown.part(".draft .prose").inner_text()
    drafted.first.set()
    await shown.page.wait_for_function(SHOWS, arg="tried by priority")
    await take_picture(shown, "draft-second-sentence")
    drafted.whole.set()
    [answer] = await shown.has_answers(1)

    assert "Rules are tried by priority." in answer
    assert await shown.part(".draft").count() == 0
    assert await shown.part(".retracted").count() == 0
    await take_picture(shown, "draft-final")


async def test_a_sentence_that_the_judge_takes_back_is_struck_out_below_the_answer(
    http_server: HttpServerFixture, come: Come
) -> None:
    drafted = DraftedAnswer(http_server.harness)
    drafted.script(approved=FIRST)
    shown = await (await come()).opens()

    await shown.asks("How do I add a rule?")
    drafted.first.set()
    await shown.page.wait_for_function(SHOWS, arg="tried by priority")
    drafted.whole.set()
    await shown.has_answers(1)

    assert "priority" not in await shown.part(".answer > .prose").inner_text()
    assert await shown.part(".retracted del").inner_text() == "Rules are tried by priority."
    assert "Withdrawn after checking:" in await shown.part(".retracted").inner_text()
    await take_picture(shown, "retracted-sentence")


async def test_a_draft_that_is_rejected_whole_is_struck_out_until_the_next_answer(
    http_server: HttpServerFixture, come: Come
) -> None:
    rejected, second = DraftedAnswer(http_server.harness), DraftedAnswer(http_server.harness)
    rejected.script_rejection()
    second.script()
    rejected.first.set()
    rejected.whole.set()
    shown = await (await come()).opens()

    await shown.asks("How do I add a rule?")
    await shown.page.wait_for_function(TOOK_BACK)
    await shown.page.wait_for_function(SHOWS, arg="Open Routing")
    await take_picture(shown, "rejected-draft")
    # The sentence that is written again is not struck out any more.
    assert await shown.part(".retracted del").count() == 1
    second.first.set()
    second.whole.set()
    [answer] = await shown.has_answers(1)

    assert "Rules are tried by priority." in answer


async def test_rows_that_are_written_again_are_not_struck_out_below_the_answer(
    http_server: HttpServerFixture, come: Come
) -> None:
    rows = "| Plan | Price |\n|---|---|\n| Team [1] | 20 EUR [1] |"
    rejected, second = (
        DraftedAnswer(http_server.harness, sentences=(FIRST, f"Prices:\n\n{rows}"))
        for _ in range(2)
    )
    rejected.script_rejection()
    second.script()
    for event in (rejected.first, rejected.whole, second.first, second.whole):
        event.set()
    shown = await (await come()).opens()

    await shown.asks("How do I add a rule?")
    [answer] = await shown.has_answers(1)

    assert "20 EUR" in answer
    assert await shown.part(".retracted").count() == 0
