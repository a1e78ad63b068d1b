"""A chat in Telegram shows how far an answer has come, at the pace that Telegram allows."""

import pytest

from tests.support.chat_harness import TEXTS, WITH_DRAFTS
from tests.support.drafting import DraftedAnswer
from tests.support.fake_telegram import BotApi, flood
from tests.support.telegram_harness import telegram_desk, wait_until_settled
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

NOTICE = TEXTS.text("push_draft", "en")
GROUP = {"chat": {"id": -100, "type": "supergroup", "title": "Team"}}


def shows_draft(api: BotApi) -> bool:
    """Whether a chat shows a draft now."""
    return any(NOTICE in said.text for said in api.chats.values())


@pytest.mark.parametrize("in_group", [True, False])
async def test_a_draft_that_grows_fast_meets_no_limit_of_telegram(
    harness: WorkerHarness, api: BotApi, in_group: bool
) -> None:
    drafted = DraftedAnswer(harness)
    drafted.script_many(150)

    async with harness.open(), telegram_desk(harness, api, policy=WITH_DRAFTS) as desk:
        asked = desk.group("@desk_bot How?") if in_group else desk.message("How?")
        assert (await desk.send(asked)).status_code == 200
        await wait_until(lambda: shows_draft(api))
        drafted.first.set()
        await drafted.went_on.wait()
        drafted.whole.set()
        await wait_until(lambda: desk.connector.tally.counts)
        await wait_until_settled(harness, api)

    (said,) = api.chats.values()
    assert api.limited == []
    assert "Open Routing and choose New rule. [1] Rules are tried by priority." in said.text
    assert NOTICE not in said.text


async def test_a_draft_that_telegram_refuses_for_its_pace_waits_as_long_as_telegram_says(
    harness: WorkerHarness, api: BotApi
) -> None:
    api.refusals["editMessageText"] = [flood(1)]
    drafted = DraftedAnswer(harness)
    drafted.script()

    async with harness.open(), telegram_desk(harness, api, policy=WITH_DRAFTS) as desk:
        await desk.say("How?")
        await wait_until(lambda: api.called("editMessageText"))
        drafted.first.set()
        drafted.whole.set()
        await wait_until(lambda: desk.connector.tally.counts)
        await wait_until_settled(harness, api)

    (said,) = api.chats.values()
    assert api.impatient == []
    assert "Rules are tried by priority." in said.text
