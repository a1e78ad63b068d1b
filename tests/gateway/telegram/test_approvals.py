"""Approve and deny as buttons of Telegram: once, in time, and by the person who asked."""

from typing import Any

import pytest

from envelope.envelope import Envelope
from manager.machine import Limits
from tests.gateway.telegram.test_outcomes import EVE, GROUP
from tests.support.chat_harness import ANSWER, TEXTS
from tests.support.fake_telegram import BotApi
from tests.support.pausing_flow import AskingTool, make_flow
from tests.support.telegram_harness import PERSON, TelegramHarness, telegram_desk
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

FOREIGN, OVER = "pause_foreign/en", "pause_over/en"


@pytest.fixture
def tool(harness: WorkerHarness) -> AskingTool:
    """The tool that needs an approval, in a desk that pauses for it."""
    made = AskingTool("approval")
    harness.flows = {Envelope.flow: make_flow("approval")}
    harness.further_agents = [made]
    return made


async def ask(desk: TelegramHarness, update: dict[str, Any]) -> tuple[int, list[str]]:
    """Have somebody ask; return the message with the buttons, and their tokens."""
    await desk.send(update)
    await wait_until(lambda: any(said.buttons for said in desk.api.chats.values()))
    ((id_, said),) = desk.api.chats.items()
    return id_, [button["callback_data"] for button in said.buttons]


def count_shown(api: BotApi, text: str, *, chat: int) -> int:
    return sum(text in shown for shown in api.texts(chat))


@pytest.mark.parametrize(("number", "runs"), [(0, 5), (1, 3)], ids=["approve", "deny"])
async def test_pressing_twice_has_one_effect(
    harness: WorkerHarness, api: BotApi, tool: AskingTool, number: int, runs: int
) -> None:
    async with harness.open(), telegram_desk(harness, api) as desk:
        id_, tokens = await ask(desk, desk.message("How?"))
        for _ in range(2):
            assert (await desk.send(desk.press(id_, tokens[number]))).status_code == 200
        await wait_until(lambda: count_shown(api, ANSWER, chat=7))
        await desk.send(desk.press(id_, tokens[1 - number]))
        await wait_until(lambda: count_shown(api, OVER, chat=7))

    assert len(tool.ran) == runs
    assert count_shown(api, ANSWER, chat=7) == 1


async def test_another_person_of_the_group_is_refused_and_the_buttons_stay_for_the_first(
    harness: WorkerHarness, api: BotApi, tool: AskingTool
) -> None:
    async with harness.open(), telegram_desk(harness, api) as desk:
        id_, (approve, deny, *_) = await ask(desk, desk.group("@desk_bot How?"))
        for token in (approve, deny):
            await desk.send(desk.press(id_, token, person=EVE, chat=GROUP))
        notices = [call.get("text") for call in api.called("answerCallbackQuery")]
        kept = [button["callback_data"] for button in api.chats[id_].buttons]
        ran_then = len(tool.ran)
        await desk.send(desk.press(id_, approve, person=PERSON, chat=GROUP))
        await wait_until(lambda: count_shown(api, ANSWER, chat=-100))

    assert notices == [TEXTS.text("pause_foreign", "de")] * 2
    assert kept[:2] == [approve, deny]
    assert (ran_then, len(tool.ran)) == (3, 5)


async def test_the_words_of_another_person_of_the_group_approve_nothing(
    harness: WorkerHarness, api: BotApi, tool: AskingTool
) -> None:
    async with harness.open(), telegram_desk(harness, api) as desk:
        await ask(desk, desk.group("@desk_bot How?"))
        await desk.send(desk.group("@desk_bot approve/en", **{"from": EVE}))
        await wait_until(lambda: sum(bool(said.buttons) for said in api.chats.values()) == 2)

    assert len(tool.ran) == 6, "a question of another conversation, and no approved call"
    assert count_shown(api, ANSWER, chat=-100) == 0


async def test_pressing_after_the_expiry_runs_nothing_and_says_so(
    harness: WorkerHarness, api: BotApi, tool: AskingTool
) -> None:
    harness.limits = Limits(pause_seconds=0.0)
    async with harness.open(), telegram_desk(harness, api) as desk:
        id_, (approve, *_) = await ask(desk, desk.message("How?"))
        await desk.send(desk.press(id_, approve))
        await wait_until(lambda: count_shown(api, OVER, chat=7))

    assert len(tool.ran) == 3
