"""Every message of people ends in one outcome in its thread, and no eyes stay."""

import asyncio
from typing import Any

import pytest

from envelope.role import Role
from tests.support.chat_harness import ANSWER, TEXTS, wait_until_acknowledged
from tests.support.fake_slack import BOT, SlackApi
from tests.support.slack_harness import SlackHarness, slack_desk, wait_until_settled
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

MENTION = f"<@{BOT}>"
ASKS_BACK = {
    "within_scope": True,
    "needs_clarification": True,
    "clarification_reason": "ambiguous_query",
    "clarification_message": "-",
}
OPTION = {"label": "One", "value": "Option one", "kind": "option"}


def make_edit_event(
    event: dict[str, Any], text: str, *, at: str = "1700000009.000000"
) -> dict[str, Any]:
    """The event that Slack sends of an edit."""
    edited = {**event, "text": text, "edited": {"ts": at}}
    return {"type": "message", "subtype": "message_changed", "channel": event["channel"],
            "message": edited, "previous_message": event, "ts": at}  # fmt: skip


@pytest.mark.parametrize(
    ("role", "act", "outcome"),
    [
        (Role.GUARDRAILS, ASKS_BACK, "clarification"),
        (Role.GUARDRAILS, {"within_scope": False}, "refused"),
        (Role.LANG, RuntimeError("broken"), "failed"),
    ],
)
async def test_eyes_go_with_a_question_back_a_refusal_and_an_apology(
    desk: SlackHarness, role: Role, act: Any, outcome: str
) -> None:
    desk.harness.script.next(role, *[act] * (9 if isinstance(act, Exception) else 1))

    event = await desk.say(f"{MENTION} How?")

    await wait_until(lambda: desk.connector.tally.counts)
    await wait_until_settled(desk.harness, desk.api)
    (said,) = desk.api.posts.values()
    assert desk.connector.tally.counts == {outcome: 1}
    assert said.shown not in {TEXTS.text("push_working", "en"), "…"}
    assert said.thread == event["ts"]
    assert desk.api.reacted == [("C1", event["ts"], "eyes")]


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


async def test_whose_message_cannot_be_accepted_is_notified_once_in_the_own_language(
    harness: WorkerHarness, api: SlackApi
) -> None:
    api.locale = "de-DE"
    async with slack_desk(harness, api, quota=0) as desk:
        event = await desk.say(f"{MENTION} Wie?")
        await desk.send(event, X_Slack_Retry_Num="1")
        long = await desk.say(f"{MENTION} {'viel ' * 2_000}")

        await wait_until(lambda: len(api.posts) >= 2)
        notices = {said.thread: said.text for said in api.posts.values()}
        assert notices == {
            event["ts"]: TEXTS.text("push_busy", "de"),
            long["ts"]: TEXTS.text("push_too_long", "de"),
        }
        assert len(api.posts) == 2
        assert api.reacted == []


async def test_anybody_in_the_thread_may_press_an_option_also_after_a_restart_once(
    harness: WorkerHarness, api: SlackApi
) -> None:
    async with harness.open():
        async with slack_desk(harness, api) as desk:
            harness.script.next(Role.GUARDRAILS, ASKS_BACK)
            harness.script.next(Role.CLARIFICATION, {"suggested_actions": [OPTION]})
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
