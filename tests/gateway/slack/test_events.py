"""What people write and press in Slack ends in one outcome in its thread, and no eyes stay."""

import asyncio
from typing import Any

import pytest

from envelope.role import Role
from gateway.conversations import Conversations
from gateway.slack.events import InboundMessage, SlackIdentity, read
from tests.support.chat_harness import ANSWER, TEXTS, WORKING, wait_until_acknowledged
from tests.support.fake_slack import BOT, TEAM, SlackApi
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
async def test_events_that_do_not_address_the_desk_stay_unanswered(
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


OPTION = {"label": "One", "value": "Option one", "kind": "option"}


def make_edit_event(
    event: dict[str, Any], text: str, *, at: str = "1700000009.000000"
) -> dict[str, Any]:
    """The event that Slack sends of an edit."""
    edited = {**event, "text": text, "edited": {"ts": at}}
    return {"type": "message", "subtype": "message_changed", "channel": event["channel"],
            "message": edited, "previous_message": event, "ts": at}  # fmt: skip


@pytest.mark.parametrize("tombstone", [False, True])
async def test_eyes_and_placeholder_go_with_a_deleted_question(
    harness: WorkerHarness, api: SlackApi, tombstone: bool
) -> None:
    async with slack_desk(harness, api) as desk:
        event = await desk.say(f"{MENTION} How?")
        await wait_until(lambda: api.posts)
        grave = {"subtype": "tombstone", "user": "USLACKBOT", "ts": event["ts"],
                 "thread_ts": event["ts"], "hidden": True}  # fmt: skip
        gone = {"type": "message", "channel": "C1", "ts": "2", "previous_message": event}
        fields = (
            {"subtype": "message_changed", "message": grave}
            if tombstone
            else {"subtype": "message_deleted", "deleted_ts": event["ts"]}
        )

        assert (await desk.send({**gone, **fields})).status_code == 200

        await wait_until(lambda: not api.posts)
        await wait_until_settled(desk.harness, desk.api)
        assert api.reacted == [("C1", event["ts"], "eyes")]


async def test_eyes_stay_while_an_edited_question_is_worked_on(
    harness: WorkerHarness, api: SlackApi
) -> None:
    async with slack_desk(harness, api) as desk:
        event = await desk.say(f"{MENTION} How?")
        await wait_until(lambda: api.reactions and api.posts)
        api.gates["chat.delete"] = asyncio.Event()
        await desk.send(make_edit_event(event, f"{MENTION} How many?"))
        await wait_until(
            lambda: len(api.called("reactions.add")) == 2 and api.called("chat.delete")
        )
        api.gates["chat.delete"].set()
        await wait_until_acknowledged(harness, "slack")
        assert api.reactions
        assert not api.called("reactions.remove")

        async with harness.open():
            await wait_until(lambda: len(api.posts) == 1 and ANSWER in api.shown()[0])
            await wait_until_settled(desk.harness, desk.api)


async def test_anybody_in_the_thread_may_press_an_option_also_after_a_restart_once(
    harness: WorkerHarness, api: SlackApi
) -> None:
    async with harness.open():
        async with slack_desk(harness, api) as desk:
            harness.script.ask_back(suggested_actions=[OPTION])
            await desk.say(f"{MENTION} How?")
            await wait_until(lambda: any(said.buttons for said in api.posts.values()))
            await wait_until_settled(desk.harness, desk.api)
        (ts,) = api.posts
        (option,) = api.posts[ts].buttons

        async with slack_desk(harness, api) as desk:
            for user in ("U1", "U2"):
                assert (await desk.press(ts, option, user=user)).status_code == 200
            await wait_until(lambda: any(ANSWER in shown for shown in api.shown()))
            await wait_until_settled(desk.harness, desk.api)
            await wait_until(lambda: not api.posts[ts].buttons)

    assert [seen["text"] for seen in harness.script.seen[Role.LANG]][1:] == ["Option one"]
    assert len(api.posts) == 2


async def test_a_button_of_another_thread_or_none_of_ours_is_reported_as_closed(
    desk: SlackHarness,
) -> None:
    await desk.say(f"{MENTION} How?")
    await desk.say(f"{MENTION} What?", channel="C2")
    await wait_until(lambda: sum(len(said.buttons) for said in desk.api.posts.values()) == 4)
    await wait_until_settled(desk.harness, desk.api)
    (one, first), (_, second) = desk.api.posts.items()

    await desk.press(one, second.buttons[0], user="U2")
    await desk.press(one, {**first.buttons[0], "value": "guessed"}, user="U2")

    await wait_until(lambda: len(desk.api.whispers) == 2)
    assert {(notice["user"], notice["text"]) for notice in desk.api.whispers} == {
        ("U2", TEXTS.text("push_expired", "en"))
    }
    assert len(desk.api.posts) == 2


async def test_talk_to_somebody_else_in_a_joined_thread_stays_unanswered(
    desk: SlackHarness,
) -> None:
    event = await desk.say(f"{MENTION} How?")
    await wait_until(lambda: any(ANSWER in shown for shown in desk.api.shown()))

    await desk.say("<@U2> what do you say?", thread_ts=event["ts"])
    await desk.say("hello", thread_ts=event["ts"], bot_id="B9")
    await desk.say(f"<@U2> and {MENTION}, what now?", thread_ts=event["ts"])

    await wait_until(lambda: len(desk.api.posts) == 2)
    await wait_until_settled(desk.harness, desk.api)
    assert len(desk.harness.script.seen[Role.LANG]) == 2


async def wait_until_shown(desk: SlackHarness, text: str, times: int = 1) -> None:
    """Wait until a text is shown so often, and nothing is left to do."""
    await wait_until(lambda: sum(text in said for said in desk.api.shown()) == times)
    await wait_until_settled(desk.harness, desk.api)


async def clear_thread(desk: SlackHarness, event: dict[str, Any], command: str = "/clear") -> None:
    """Have the thread of a message forgotten."""
    desk.harness.script.next(Role.COMMAND, {"forget": "history"})
    await desk.say(f"{MENTION} {command}", thread_ts=event["ts"])
    await wait_until_shown(desk, "Done.")


async def test_old_buttons_are_closed_once_the_conversation_was_cleared(desk: SlackHarness) -> None:
    desk.harness.script.ask_back(suggested_actions=[OPTION])
    event = await desk.say(f"{MENTION} How?")
    await wait_until(lambda: any(said.buttons for said in desk.api.posts.values()))
    await desk.say("How, exactly?", thread_ts=event["ts"])
    await wait_until_shown(desk, ANSWER)
    old = [(ts, said.buttons[0]) for ts, said in desk.api.posts.items()]
    await clear_thread(desk, event)

    for ts, button in old:
        assert (await desk.press(ts, button)).status_code == 200

    await wait_until(lambda: len(desk.api.whispers) == 2)
    assert {notice["text"] for notice in desk.api.whispers} == {TEXTS.text("push_expired", "en")}
    assert len(desk.api.posts) == 3


async def test_edits_deletions_and_new_messages_after_a_clear_are_understood(
    desk: SlackHarness,
) -> None:
    event = await desk.say(f"{MENTION} How?")
    other = await desk.say("Why?", thread_ts=event["ts"])
    await wait_until(lambda: desk.harness.script.seen[Role.RESPONSE])
    await clear_thread(desk, event)
    before = len(desk.api.posts)

    gone = {"type": "message", "subtype": "message_deleted", "channel": "C1", "ts": "2",
            "deleted_ts": other["ts"], "previous_message": other}  # fmt: skip
    assert (await desk.send(gone)).status_code == 200
    assert (await desk.send(make_edit_event(event, f"{MENTION} How many?"))).status_code == 200
    await wait_until(lambda: desk.harness.script.seen[Role.LANG][-1]["text"] == "How many?")
    await desk.say("And then?", thread_ts=event["ts"])

    await wait_until(lambda: desk.harness.script.seen[Role.LANG][-1]["text"] == "And then?")
    await wait_until_settled(desk.harness, desk.api)
    assert len(desk.api.posts) == before + 2
    assert TEXTS.text("push_working", "en") not in desk.api.shown()


@pytest.mark.parametrize(
    ("text", "command", "arguments"),
    [
        ("/clear", "clear_history", ()),
        ("/language de", "set_language", ("de",)),
        ("/etc is what?", None, ()),
        ("/clear/cache is what?", None, ()),
    ],
)
async def test_a_slash_asks_for_a_command_that_there_is_and_is_a_question_else(
    desk: SlackHarness, text: str, command: str | None, arguments: tuple[str, ...]
) -> None:
    event = desk.message(f"{MENTION} {text}")

    inbound = read(event, SlackIdentity(TEAM, BOT), desk.connector.name_question)
    await desk.send(event)

    assert isinstance(inbound, InboundMessage)
    incoming = inbound.incoming
    assert (incoming.text, incoming.command, incoming.arguments) == (text, command, arguments)
    await wait_until_shown(desk, ANSWER if command is None else "Done.")
