"""What people can still do in a thread after its conversation was cleared."""

from typing import Any

import pytest

from envelope.role import Role
from gateway.slack.events import InboundMessage, SlackIdentity, read
from tests.gateway.slack.test_outcomes import ASKS_BACK, OPTION, make_edit_event
from tests.support.chat_harness import ANSWER, TEXTS
from tests.support.fake_slack import BOT, TEAM
from tests.support.slack_harness import SlackHarness, wait_until_settled
from tests.support.waiting import wait_until

MENTION = f"<@{BOT}>"


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
    desk.harness.script.next(Role.GUARDRAILS, ASKS_BACK)
    desk.harness.script.next(Role.CLARIFICATION, {"suggested_actions": [OPTION]})
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


async def test_who_edits_deletes_or_writes_on_after_a_clear_is_understood(
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
