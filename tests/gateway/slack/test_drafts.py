"""A thread in Slack shows how far an answer has come, at the pace that Slack allows."""

import pytest

from tests.support.chat_harness import AT_ONCE, TEXTS, WITH_DRAFTS
from tests.support.drafting import DraftedAnswer
from tests.support.fake_slack import BOT, SlackApi
from tests.support.slack_harness import slack_desk, wait_until_settled
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

QUESTION = f"<@{BOT}> How?"
NOTICE = TEXTS.text("push_draft", "en")
FIRST_SHOWN = "Open *Routing* and choose _New rule_."


async def test_a_thread_shows_the_draft_with_its_sources_and_then_the_answer(
    harness: WorkerHarness, api: SlackApi
) -> None:
    drafted = DraftedAnswer(harness)
    drafted.script()

    async with harness.open(), slack_desk(harness, api, policy=WITH_DRAFTS) as desk:
        await desk.say(QUESTION)
        await wait_until(lambda: any(NOTICE in shown for shown in api.shown()))
        (said,) = api.posts.values()
        draft, blocks = said.shown, said.blocks
        drafted.first.set()
        drafted.whole.set()
        await wait_until(lambda: desk.connector.tally.counts)
        await wait_until_settled(harness, api)

    assert FIRST_SHOWN in draft
    assert "https://docs.acme.test/rules" in str(blocks)
    assert said.buttons != []
    assert NOTICE not in said.shown
    assert "Rules are tried by priority." in said.shown
    assert len(api.posts) == 1


@pytest.mark.parametrize("shows_drafts", [True, False])
async def test_drafts_are_shown_only_where_the_settings_allow_it(
    harness: WorkerHarness, api: SlackApi, shows_drafts: bool
) -> None:
    drafted = DraftedAnswer(harness)
    drafted.script()
    policy = WITH_DRAFTS if shows_drafts else AT_ONCE

    async with harness.open(), slack_desk(harness, api, policy=policy) as desk:
        await desk.say(QUESTION)
        if shows_drafts:
            await wait_until(lambda: any(NOTICE in shown for shown in api.shown()))
        drafted.first.set()
        await drafted.went_on.wait()
        drafted.whole.set()
        await wait_until(lambda: desk.connector.tally.counts)
        await wait_until_settled(harness, api)

    (said,) = api.posts.values()
    assert any(NOTICE in version for version in said.versions) is shows_drafts
