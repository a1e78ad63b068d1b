from typing import Any

import pytest

from envelope.role import Role
from gateway.chat.ports import ChatPolicy
from gateway.conversations import Conversations
from tests.support.chat_harness import ANSWER, TEXTS, WORKING, FlakyProducer
from tests.support.fake_slack import BOT, RefusedError, SlackApi
from tests.support.slack_harness import SlackHarness, slack_desk, wait_until_settled
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

MENTION = f"<@{BOT}>"


async def wait_until_answered(desk: SlackHarness, count: int = 1) -> None:
    """Wait until that many answers are shown and nothing is left to do."""
    await wait_until(lambda: sum(ANSWER in shown for shown in desk.api.shown()) == count)
    await quiet(desk)


async def quiet(desk: SlackHarness) -> None:
    await wait_until_settled(desk.harness, desk.api)


async def test_a_mention_is_answered_in_its_thread_with_eyes_until_then(desk: SlackHarness) -> None:
    event = await desk.say(f"{MENTION} How do I add a rule?")

    await wait_until_answered(desk)
    (said,) = desk.api.posts.values()
    assert said.thread == event["ts"]
    assert said.versions in ([WORKING], ["…"])
    assert desk.api.reacted == [("C1", event["ts"], "eyes")]
    assert desk.harness.script.seen[Role.LANG][0]["text"] == "How do I add a rule?"


async def test_doubled_and_retried_events_are_answered_once(desk: SlackHarness) -> None:
    event = await desk.say(f"{MENTION} How?")
    await desk.send({**event, "type": "app_mention"})
    again = await desk.send(event, X_Slack_Retry_Num="1", X_Slack_Retry_Reason="http_timeout")

    await wait_until_answered(desk)
    await desk.send(event, X_Slack_Retry_Num="2")
    assert again.status_code == 200
    assert len(desk.harness.script.seen[Role.RESPONSE]) == 1
    assert len(desk.api.posts) == 1


async def test_a_forged_or_old_event_is_refused(desk: SlackHarness) -> None:
    event = desk.message(f"{MENTION} How?")

    forged = await desk.send(event, secret="another")  # noqa: S106 - a wrong one
    old = await desk.send(event, age_seconds=600)

    assert (forged.status_code, old.status_code) == (401, 401)
    assert desk.api.posts == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"bot_id": "B9", "text": f"{MENTION} hi"},
        {"user": BOT, "text": f"{MENTION} hi"},
        {"subtype": "channel_join", "text": f"{MENTION} hi"},
        {"text": "nobody is asked here"},
        {"text": "nor here", "thread_ts": "1600000000.000001"},
    ],
)
async def test_what_is_not_for_the_desk_stays_unanswered(
    desk: SlackHarness, fields: dict[str, Any]
) -> None:
    await desk.say(**{"text": "x", **fields})
    await desk.say(f"{MENTION} a question")

    await wait_until_answered(desk)
    assert len(desk.api.posts) == 1


async def test_follow_ups_in_a_joined_thread_and_configured_channels_need_no_mention(
    desk: SlackHarness,
) -> None:
    event = await desk.say(f"{MENTION} How?")
    await wait_until_answered(desk)
    await desk.say("And then?", thread_ts=event["ts"])
    await wait_until_answered(desk, 2)
    await desk.say("What about this?", channel="CASK")
    await wait_until_answered(desk, 3)

    assert {said.thread for said in desk.api.posts.values() if said.channel == "C1"} == {
        event["ts"]
    }


async def test_an_option_is_asked_as_a_question_and_only_once(desk: SlackHarness) -> None:
    long = "x" * 90
    actions = [
        {"label": long, "value": "Option one", "kind": "option"},
        {"label": "Two", "value": "Option two", "kind": "option"},
    ]
    desk.harness.script.next(Role.GUARDRAILS, {"within_scope": True, "needs_clarification": True,
        "clarification_reason": "ambiguous_query", "clarification_message": "-"})  # fmt: skip
    desk.harness.script.next(Role.CLARIFICATION, {"suggested_actions": actions})
    await desk.say(f"{MENTION} How?")
    await wait_until(lambda: any(said.buttons for said in desk.api.posts.values()))
    await quiet(desk)
    (ts,) = desk.api.posts
    option = desk.api.posts[ts].buttons[0]

    await desk.press(ts, option)
    await desk.press(ts, option)

    await wait_until_answered(desk)
    assert len(option["text"]["text"]) == 75
    assert desk.harness.script.seen[Role.LANG][1]["text"] == "Option one"
    assert len(desk.api.posts) == 2
    await wait_until(lambda: not desk.api.posts[ts].buttons)


async def test_the_open_questions_of_a_message_are_buttons_below_the_answer(
    desk: SlackHarness,
) -> None:
    desk.harness.script.next(
        Role.ESSENCE, {"canonical_question": "How?", "remaining_questions": ["Who may?"]}
    )
    await desk.say(f"{MENTION} How, and who may?")
    await wait_until(lambda: any(said.buttons for said in desk.api.posts.values()))
    await quiet(desk)
    (ts,) = desk.api.posts

    await desk.press(ts, desk.api.posts[ts].buttons[0])

    await wait_until(lambda: len(desk.harness.script.seen[Role.LANG]) > 1)
    assert desk.harness.script.seen[Role.LANG][1]["text"] == "Who may?"


async def test_ratings_are_kept_and_thanked_for(desk: SlackHarness) -> None:
    event = await desk.say(f"{MENTION} How?")
    await wait_until_answered(desk)
    (ts,) = desk.api.posts
    up, _down = desk.api.posts[ts].buttons

    await desk.press(ts, up)

    await wait_until(lambda: desk.api.whispers)
    question = desk.connector.name_question(f"T1:C1:{event['ts']}", event["ts"])
    kept = Conversations(desk.harness.client, shards=1, ttl_seconds=600)
    assert (await kept.feedback(question))[event["ts"]].rating == "up"
    assert desk.connector.ratings.counts == {"up": 1}
    assert desk.api.whispers[0]["text"] == TEXTS.text("push_thanks", "en")


async def test_an_edited_question_is_asked_again_and_a_deleted_one_is_cancelled(
    harness: WorkerHarness, api: SlackApi
) -> None:
    async with slack_desk(harness, api) as desk:
        event = await desk.say(f"{MENTION} How?")
        other = await desk.say(f"{MENTION} What?")
        await wait_until(lambda: len(api.posts) == 2)

        edited = {**event, "text": f"{MENTION} How many?", "edited": {"ts": "1700000009.000000"}}
        changed = {"type": "message", "subtype": "message_changed", "channel": "C1",
                   "message": edited, "previous_message": event, "ts": "1"}  # fmt: skip
        await desk.send(changed)
        deleted = {"type": "message", "subtype": "message_deleted", "channel": "C1",
                   "deleted_ts": other["ts"], "previous_message": other, "ts": "2"}  # fmt: skip
        await desk.send(deleted)
        await desk.send(changed, X_Slack_Retry_Num="1")

        async with harness.open():
            await wait_until_answered(desk)
            texts = [seen["text"] for seen in harness.script.seen[Role.LANG]]
            assert texts == ["How many?"]
            assert len(api.posts) == 1


async def test_blocks_that_slack_refuses_become_plain_text(desk: SlackHarness) -> None:
    desk.api.refusals["chat.update"] = [RefusedError("invalid_blocks")]

    await desk.say(f"{MENTION} How?")

    await wait_until_answered(desk)
    (said,) = desk.api.posts.values()
    assert said.blocks == []


async def test_a_very_long_answer_keeps_every_limit_and_loses_nothing(desk: SlackHarness) -> None:
    words = [f"w{number}&" for number in range(6_000)]
    text = " ".join(words)
    desk.harness.script.next(Role.RESPONSE, {"response": f"{text}\n\n{ANSWER}"})

    await desk.say(f"{MENTION} How?")

    await wait_until_answered(desk)
    shown = "\n".join(desk.api.shown()).replace("&amp;", "&")
    assert shown.split()[: len(words)] == words


async def test_a_burst_in_a_direct_message_is_one_question(
    harness: WorkerHarness, api: SlackApi
) -> None:
    async with slack_desk(harness, api, policy=ChatPolicy(burst_seconds=0.5)) as desk:
        for text in ("I have", "a question", "about routing"):
            await desk.say(text, channel="D1", channel_type="im")
        async with harness.open():
            await wait_until_answered(desk)

        texts = [seen["text"] for seen in harness.script.seen[Role.LANG]]
        assert texts == ["I have\na question\nabout routing"]
        assert [said.thread for said in api.posts.values()] == [None]


@pytest.mark.parametrize(("supersedes", "answers"), [(True, 1), (False, 2)])
async def test_a_newer_message_supersedes_or_waits_and_says_so(
    harness: WorkerHarness, api: SlackApi, supersedes: bool, answers: int
) -> None:
    api.locale = "de-DE"
    policy = ChatPolicy(burst_seconds=0.0, supersedes=supersedes)
    async with slack_desk(harness, api, policy=policy) as desk:
        await desk.say("First?", channel="D1", channel_type="im")
        await wait_until(lambda: len(api.posts) == 1)
        await desk.say("Second?", channel="D1", channel_type="im")
        notice = TEXTS.text("superseded" if supersedes else "push_waiting", "de")
        await wait_until(lambda: notice in api.shown())
        async with harness.open():
            await wait_until_answered(desk, answers)

        assert len(api.posts) == 2


async def test_an_event_that_cannot_be_taken_in_is_not_acknowledged(
    harness: WorkerHarness, api: SlackApi
) -> None:
    faltering = harness.make_broker()
    faltering.producer = FlakyProducer(faltering.producer, 1)
    async with harness.open(), slack_desk(harness, api, broker=faltering) as desk:
        event = desk.message(f"{MENTION} How?")

        failed = await desk.send(event)
        again = await desk.send(event, X_Slack_Retry_Num="1")

        assert (failed.status_code, again.status_code) == (503, 200)
        await wait_until_answered(desk)
