"""Approve and deny as buttons of Telegram: once, in time, and by the person who asked."""

from typing import Any

import pytest

from envelope.envelope import Envelope
from tests.gateway.telegram.test_outcomes import EVE
from tests.support.chat_harness import ANSWER
from tests.support.fake_telegram import BotApi
from tests.support.pausing_flow import AskingTool, make_flow
from tests.support.telegram_harness import TelegramHarness, telegram_desk
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness


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


async def test_the_words_of_another_person_of_the_group_approve_nothing(
    harness: WorkerHarness, api: BotApi, tool: AskingTool
) -> None:
    async with harness.open(), telegram_desk(harness, api) as desk:
        await ask(desk, desk.group("@desk_bot How?"))
        await desk.send(desk.group("@desk_bot approve/en", **{"from": EVE}))
        await wait_until(lambda: sum(bool(said.buttons) for said in api.chats.values()) == 2)

    assert len(tool.ran) == 6, "a question of another conversation, and no approved call"
    assert count_shown(api, ANSWER, chat=-100) == 0
