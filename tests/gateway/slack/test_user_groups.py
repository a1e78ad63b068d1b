"""User groups of Slack as groups of a person, and a Slack that does not say who is a member."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from deploy.assembly.gateways.http_gateway import StoredConversations
from gateway.chat.chat_groups import ChatGroups
from gateway.slack.user_groups import LIFETIME_SECONDS, SlackUserGroups
from tests.support.chat_harness import ANSWER, AT_ONCE, TEXTS
from tests.support.fake_slack import BOT, RefusedError, SlackApi
from tests.support.slack_harness import (
    SlackHarness,
    calls_of,
    slack_desk,
    wait_until_settled,
)
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

METHOD = "usergroups.users.list"
NAMED = {"S1": ("hr",), "S2": ("board", "sales")}


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def open_desk(
    harness: WorkerHarness, api: SlackApi, clock: Clock | None = None
) -> AsyncIterator[SlackHarness]:
    api.user_groups = {"S1": ["U1", "U2"], "S2": ["U1"]}
    members = SlackUserGroups(calls_of(harness, api), NAMED, clock=clock or Clock())
    groups = ChatGroups({"U2": ("own",)}, {"C1": ("place",)}, NAMED, members)
    policy = replace(AT_ONCE, groups=groups)
    async with harness.open(), slack_desk(harness, api, policy=policy) as desk:
        yield desk


async def ask(desk: SlackHarness, user: str = "U1", **fields: Any) -> object:
    """Ask in a private chat, or elsewhere; return for which groups, and "" if it was refused."""
    direct = {"channel": f"D{user}", "channel_type": "im"}
    before = len(desk.api.posts)
    await desk.say("How?", user=user, **{**direct, **fields})
    await wait_until(lambda: len(desk.api.posts) == before + 1)
    shown = list(desk.api.posts.values())[-1]
    await wait_until(lambda: ANSWER in shown.shown or shown.shown == TEXTS.text("apology", "en"))
    await wait_until_settled(desk.harness, desk.api)
    conversations = StoredConversations(desk.harness.client, shards=1, ttl_seconds=60)
    place = fields.get("channel", f"D{user}")
    question = desk.connector.name_question(f"slack/T1:{place}:direct", "-")
    if ANSWER not in shown.shown:
        return ""
    return (await conversations.recent_messages(question, limit=1))[-1].first.fields.get("groups")


async def test_the_user_groups_of_a_person_count_in_private_chats_alone(
    harness: WorkerHarness, api: SlackApi
) -> None:
    async with open_desk(harness, api) as desk:
        assert await ask(desk, "U1") == ["board", "hr", "sales"]
        assert await ask(desk, "U2") == ["hr", "own"]
        assert await ask(desk, "U3") is None
        assert sorted(call["usergroup"] for call in api.called(METHOD)) == ["S1", "S2"]

        event = await desk.say(f"<@{BOT}> How?", user="U1", channel="C1")
        await wait_until(lambda: len(api.posts) == 4)
        await wait_until_settled(harness, api)

        thread = f"slack/T1:C1:{event['ts']}"
        question = desk.connector.name_question(thread, event["ts"])
        journal = await harness.make_broker().replies.read_journal(question)
        assert journal[0].fields["groups"] == ["place"]


async def test_members_are_believed_for_a_time_and_who_left_a_user_group_lost_it(
    harness: WorkerHarness, api: SlackApi
) -> None:
    clock = Clock()
    async with open_desk(harness, api, clock) as desk:
        assert await ask(desk) == ["board", "hr", "sales"]
        api.user_groups["S2"] = []
        clock.now = LIFETIME_SECONDS / 2 - 1
        assert await ask(desk) == ["board", "hr", "sales"]
        assert len(api.called(METHOD)) == 2

        clock.now += 2
        assert await ask(desk) == ["hr"]
        assert len(api.called(METHOD)) == 4


async def test_without_an_answer_of_slack_nobody_is_asked_for_fewer_groups(
    harness: WorkerHarness, api: SlackApi
) -> None:
    clock = Clock()
    async with open_desk(harness, api, clock) as desk:
        api.refusals[METHOD] = [RefusedError("internal_error"), RefusedError("invalid_auth")]
        assert await ask(desk) == ""
        assert await ask(desk) == ["board", "hr", "sales"]
        api.malformed.add(METHOD)
        clock.now = LIFETIME_SECONDS - 1
        assert await ask(desk) == ["board", "hr", "sales"]

        clock.now = LIFETIME_SECONDS
        assert await ask(desk) == ""


async def test_a_user_group_that_slack_refuses_has_no_members(
    harness: WorkerHarness, api: SlackApi
) -> None:
    clock = Clock()
    async with open_desk(harness, api, clock) as desk:
        assert await ask(desk) == ["board", "hr", "sales"]
        del api.user_groups["S2"]
        clock.now = LIFETIME_SECONDS

        assert await ask(desk) == ["hr"]


async def test_a_slack_that_hangs_is_given_up_in_time(
    harness: WorkerHarness, api: SlackApi
) -> None:
    async with open_desk(harness, api) as desk:
        wall = api.walls[METHOD] = asyncio.Event()
        assert await ask(desk) == ""
        wall.set()
        del api.walls[METHOD]

        assert await ask(desk) == ["board", "hr", "sales"]
