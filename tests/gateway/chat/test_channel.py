"""What holds in every chat: outcomes, drafts and approvals, in Slack and in Telegram."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from envelope.envelope import Envelope
from envelope.role import Role
from manager.machine import Limits
from tests.support.chat_harness import (
    ANSWER,
    PLACEHOLDERS,
    TEXTS,
    WITH_DRAFTS,
    wait_until_acknowledged,
)
from tests.support.chat_platforms import Button, ChatPlatform, SlackPlatform, TelegramPlatform
from tests.support.drafting import DraftedAnswer
from tests.support.fake_slack import slack_api
from tests.support.fake_telegram import bot_api
from tests.support.held_answer import DEADLINE_SECONDS, PAGE, hold_answer
from tests.support.pausing_flow import AskingTool, make_flow
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

OVER = "pause_over/en"
DRAFT = TEXTS.text("push_draft", "en")
ASKS_BACK = {
    "within_scope": True,
    "needs_clarification": True,
    "clarification_reason": "ambiguous_query",
    "clarification_message": "-",
}


@pytest.fixture(params=["slack", "telegram"])
async def platform(request: pytest.FixtureRequest) -> AsyncIterator[ChatPlatform]:
    if request.param == "slack":
        async with slack_api() as slack:
            yield SlackPlatform(slack)
    else:
        async with bot_api() as telegram:
            yield TelegramPlatform(telegram)


def count_shown(platform: ChatPlatform, text: str) -> int:
    return sum(text in shown for shown in platform.list_texts())


@pytest.mark.parametrize(
    ("role", "act", "outcome"),
    [
        (Role.GUARDRAILS, ASKS_BACK, "clarification"),
        (Role.GUARDRAILS, {"within_scope": False}, "refused"),
        (Role.LANG, RuntimeError("broken"), "failed"),
    ],
)
async def test_a_question_back_a_refusal_and_an_apology_take_the_placeholder(
    harness: WorkerHarness, platform: ChatPlatform, role: Role, act: Any, outcome: str
) -> None:
    harness.script.next(role, *[act] * (9 if isinstance(act, Exception) else 1))

    async with harness.open(), platform.open(harness) as desk:
        asked = await platform.ask(desk)
        await wait_until(lambda: desk.connector.tally.counts)
        await platform.wait_until_settled(harness)

    [text] = platform.list_texts()
    assert desk.connector.tally.counts == {outcome: 1}
    assert text not in PLACEHOLDERS
    assert platform.list_questions_replied_to() == {asked}
    assert harness.script.seen[Role.LANG][0]["text"] == "How?"


async def test_what_could_not_be_shown_twenty_times_is_abandoned_and_no_process_ends(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    stream = f"rd:{{0}}:results:{platform.name}"
    async with platform.open(harness) as desk:
        await platform.ask(desk)
        await wait_until(platform.list_texts)
    async with harness.open():
        await wait_until(lambda: harness.client.xlen(stream))
    lost = harness.broker.result_list(platform.name, "lost")
    (result,) = await lost.take(slots=1, block_seconds=1.0)
    platform.refuse_outcomes()
    await harness.client.xclaim(stream, "workers", "lost", 0, [result.entry_id], retrycount=17)

    async with platform.open(harness, lease_seconds=0.2) as desk:
        await wait_until(lambda: desk.connector.tally.counts.get("delivery_abandoned"))
        await wait_until_acknowledged(harness, platform.name)
        platform.api.malformed.clear()
        async with harness.open():
            await platform.ask(desk)
            await wait_until(lambda: count_shown(platform, ANSWER))

    assert desk.connector.tally.counts["delivery_abandoned"] == 1
    assert 0 < desk.connector.tally.counts["delivery_failed"] <= 2


async def test_at_the_deadline_the_lack_of_time_and_the_nearest_page_are_shown(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    go_on = hold_answer(harness)
    chat = platform.open(harness, deadline_seconds=DEADLINE_SECONDS)
    async with harness.open(), chat as desk:
        await platform.ask(desk)
        await wait_until(lambda: desk.connector.tally.counts)
        await platform.wait_until_settled(harness)
        go_on.set()

    [text] = platform.list_texts()
    assert desk.connector.tally.counts == {"failed": 1}
    assert "deadline/en" in text
    assert PAGE.title in text


async def test_a_draft_that_grows_fast_meets_no_limit_and_gives_way_to_the_answer(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    drafted = DraftedAnswer(harness)
    drafted.script_many(150)

    async with harness.open(), platform.open(harness, policy=WITH_DRAFTS) as desk:
        await platform.ask(desk)
        await wait_until(lambda: count_shown(platform, DRAFT))
        drafted.first.set()
        await drafted.went_on.wait()
        drafted.whole.set()
        await wait_until(lambda: desk.connector.tally.counts)
        await platform.wait_until_settled(harness)

    [text] = platform.list_texts()
    assert platform.api.limited == []
    assert "Rules are tried by priority." in text
    assert DRAFT not in text


async def test_a_draft_that_is_refused_for_its_pace_waits_as_long_as_the_platform_says(
    harness: WorkerHarness, platform: ChatPlatform
) -> None:
    platform.refuse_next_edit()
    drafted = DraftedAnswer(harness)
    drafted.script()

    async with harness.open(), platform.open(harness, policy=WITH_DRAFTS) as desk:
        await platform.ask(desk)
        await wait_until(lambda: platform.api.called(platform.editing))
        drafted.first.set()
        drafted.whole.set()
        await wait_until(lambda: desk.connector.tally.counts)
        await platform.wait_until_settled(harness)

    [text] = platform.list_texts()
    assert platform.api.impatient == []
    assert "Rules are tried by priority." in text


@pytest.fixture
def tool(harness: WorkerHarness) -> AskingTool:
    """The tool that needs an approval, in a desk that pauses for it."""
    made = AskingTool("approval")
    harness.flows = {Envelope.flow: make_flow("approval")}
    harness.further_agents = [made]
    return made


async def ask_for_approval(
    harness: WorkerHarness, platform: ChatPlatform, desk: Any
) -> tuple[str, list[Button]]:
    """Ask; return the id of the question, and the buttons to approve and to deny."""
    asked = await platform.ask(desk)
    await wait_until(platform.list_buttons)
    await platform.wait_until_settled(harness)
    return asked, platform.list_buttons()[:2]


@pytest.mark.parametrize(("number", "runs"), [(0, 5), (1, 3)], ids=["approve", "deny"])
async def test_pressing_twice_has_one_effect(
    harness: WorkerHarness, platform: ChatPlatform, tool: AskingTool, number: int, runs: int
) -> None:
    async with harness.open(), platform.open(harness) as desk:
        _, buttons = await ask_for_approval(harness, platform, desk)
        for _ in range(2):
            await platform.press(desk, buttons[number])
        await wait_until(lambda: count_shown(platform, ANSWER))
        await platform.wait_until_settled(harness)
        await platform.press(desk, buttons[1 - number])
        await wait_until(lambda: count_shown(platform, OVER))
        await platform.wait_until_settled(harness)

    labels = [one.fields["text"] for one in buttons]
    plain = [one["text"] if isinstance(one, dict) else one for one in labels]
    assert plain == ["approve/en", "deny/en"]
    assert len(tool.ran) == runs
    assert count_shown(platform, ANSWER) == 1


async def test_another_person_is_refused_and_the_buttons_stay_for_the_first(
    harness: WorkerHarness, platform: ChatPlatform, tool: AskingTool
) -> None:
    async with harness.open(), platform.open(harness) as desk:
        asked, buttons = await ask_for_approval(harness, platform, desk)
        for button in buttons:
            await platform.press(desk, button, is_other=True)
        await wait_until(lambda: platform.count_refused_presses() == 2)
        await platform.wait_until_settled(harness)
        kept, ran_then = platform.list_buttons()[:2], len(tool.ran)
        await platform.press(desk, buttons[0])
        await wait_until(lambda: count_shown(platform, ANSWER))
        await wait_until(lambda: buttons[0] not in platform.list_buttons())
        await platform.wait_until_settled(harness)

    assert kept == buttons
    assert (ran_then, len(tool.ran)) == (3, 5)
    assert platform.list_questions_replied_to() == {asked}


async def test_pressing_after_the_expiry_runs_nothing_and_says_so(
    harness: WorkerHarness, platform: ChatPlatform, tool: AskingTool
) -> None:
    harness.limits = Limits(pause_seconds=0.0)
    async with harness.open(), platform.open(harness) as desk:
        _, buttons = await ask_for_approval(harness, platform, desk)
        await platform.press(desk, buttons[0])
        await wait_until(lambda: count_shown(platform, OVER))
        await platform.wait_until_settled(harness)

    assert len(tool.ran) == 3
