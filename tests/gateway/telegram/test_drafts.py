"""A chat in Telegram shows how far an answer has come, at the pace that Telegram allows."""

from tests.support.chat_harness import TEXTS, WITH_DRAFTS
from tests.support.drafting import DraftedAnswer
from tests.support.fake_telegram import BotApi
from tests.support.telegram_harness import telegram_desk, wait_until_settled
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

NOTICE = TEXTS.text("push_draft", "en")


def shows_draft(api: BotApi) -> bool:
    """Whether a chat shows a draft now."""
    return any(NOTICE in said.text for said in api.chats.values())


async def test_a_draft_that_grows_fast_in_a_private_chat_meets_no_limit_of_telegram(
    harness: WorkerHarness, api: BotApi
) -> None:
    drafted = DraftedAnswer(harness)
    drafted.script_many(150)

    async with harness.open(), telegram_desk(harness, api, policy=WITH_DRAFTS) as desk:
        await desk.say("How?")
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
