"""What a person writes below a hand-over in Slack goes to the visitor, and nothing else does."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from envelope.question import Question
from gateway.slack.app import SENT
from gateway.slack.audience import SlackAudience
from notifications.handover import Case, SlackReceiver
from tests.support.chat_harness import TEXTS
from tests.support.fake_handover import TICKET, FakeHandOver
from tests.support.fake_slack import TOKEN, Said, SlackApi
from tests.support.slack_harness import SlackHarness, slack_desk
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

CHANNEL = "CPEOPLE"
CASE = Case(
    Question(tenant="acme", assistant="docs", conversation_id="c", message_id="m"),
    (("user", "May I? <!channel>"), ("assistant", "I do not know.")),
    "",
    "en",
    f"https://desk.test/v1/handover/{TICKET}",
)


@pytest.fixture
def people() -> FakeHandOver:
    return FakeHandOver()


@pytest.fixture
async def desk(
    harness: WorkerHarness, api: SlackApi, people: FakeHandOver
) -> AsyncIterator[SlackHarness]:
    audience = SlackAudience(users=frozenset({"U1"}))
    async with (
        harness.open(),
        slack_desk(
            harness, api, audience=audience, handover=people, handover_channel=CHANNEL
        ) as opened,
    ):
        yield opened


async def hand_over(api: SlackApi, channel: str = CHANNEL) -> str:
    """Post a conversation as the desk does; return the thread."""
    await SlackReceiver(TOKEN, channel, api.url).send(CASE)
    return next(reversed(api.posts))


async def reply(desk: SlackHarness, thread: str, text: str = "Yes.", **fields: Any) -> str:
    event = await desk.say(text, **{"channel": CHANNEL, "thread_ts": thread, **fields})
    return str(event["ts"])


async def test_a_reply_in_the_thread_goes_to_the_visitor_under_its_own_id(
    desk: SlackHarness, api: SlackApi, people: FakeHandOver
) -> None:
    thread = await hand_over(api)
    event = desk.message("You may. &lt;b&gt;", channel=CHANNEL, thread_ts=thread)

    await desk.send(event)
    await desk.send(event)
    await wait_until(lambda: api.reactions)

    assert "Each message in the thread is sent to the visitor." in api.posts[thread].shown
    reply_id = f"slack {CHANNEL} {event['ts']}"
    assert people.replies == [("You may. <b>", reply_id)] * 2
    assert api.reactions == {(CHANNEL, event["ts"], SENT)}
    assert len(api.posts) == 1


async def test_a_member_who_replies_too_late_is_informed(
    desk: SlackHarness, api: SlackApi, people: FakeHandOver
) -> None:
    people.accepts = False

    await reply(desk, await hand_over(api))
    await wait_until(lambda: api.whispers)

    assert api.whispers[0]["text"] == TEXTS.text("handover_reply_failed", "en")
    assert not api.reactions


async def test_bots_edits_strangers_and_other_threads_reach_no_visitor(
    desk: SlackHarness, api: SlackApi, people: FakeHandOver
) -> None:
    thread = await hand_over(api)
    elsewhere = await hand_over(api, "C9")
    forged = "1700000000.999999"
    api.posts[forged] = Said(CHANNEL, None, "x", api.posts[thread].blocks, user="UEVIL")
    unsigned = "1700000000.999998"
    blocks = [{"type": "section", "text": {"text": "/v1/handover/e30=.forged"}}]
    api.posts[unsigned] = Said(CHANNEL, None, "x", blocks)

    await reply(desk, thread, bot_id="B9")
    await reply(desk, thread, subtype="bot_message")
    await reply(desk, thread, user="UEVIL")
    await reply(desk, elsewhere, channel="C9")
    await reply(desk, forged)
    await reply(desk, unsigned)
    written = desk.message("Changed.", channel=CHANNEL, thread_ts=thread)
    edited = {**written, "edited": {"ts": "1700000001.000001"}}
    await desk.send(
        desk.message("", subtype="message_changed", channel=CHANNEL)
        | {"message": edited, "previous_message": {**written, "text": "Before."}}
    )
    await desk.say("Not in a thread.", channel=CHANNEL)

    assert people.replies == []
