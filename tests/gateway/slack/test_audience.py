"""Who is answered on Slack, and how much one person may ask."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from gateway.chat.people import PersonLimits
from gateway.chat.ports import ChatGroups
from gateway.conversations import Conversations
from gateway.slack.audience import LIFETIME_SECONDS, SlackAudience, SlackUserGroups
from tests.support.chat_harness import ANSWER, AT_ONCE, TEXTS
from tests.support.fake_slack import BOT, TEAM, RefusedError, SlackApi
from tests.support.slack_harness import SlackHarness, calls_of, slack_desk, wait_until_settled
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

MENTION = f"<@{BOT}>"
OTHER = "T2"
SHARED = {"outer": {"is_ext_shared_channel": True}}
TWO = PersonLimits(per_minute=2, per_day=None)
DIRECT: dict[str, Any] = {"channel": "D1", "channel_type": "im"}


async def wait_until_answered(desk: SlackHarness, count: int) -> None:
    await wait_until(lambda: sum(ANSWER in shown for shown in desk.api.shown()) == count)
    await wait_until_settled(desk.harness, desk.api)


async def wait_until_said(desk: SlackHarness, options: Any = None, **fields: Any) -> None:
    event = desk.message(f"{MENTION} How?", **fields)
    answer = await desk.send(event, **(options or {}))
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"team": OTHER},
        {"user_team": OTHER, "team": TEAM},
        {"source_team": OTHER},
        {"user_profile": {"team": OTHER}},
        {},
    ],
)
async def test_people_of_other_organisations_get_nothing_in_shared_channels(
    desk: SlackHarness, fields: dict[str, Any]
) -> None:
    await wait_until_said(desk, SHARED, **fields)
    await wait_until_said(desk, SHARED, team=TEAM, user_team=TEAM)

    await wait_until_answered(desk, 1)
    assert len(desk.api.posts) == 1
    assert desk.connector.refusals.counts == {"not_allowed": 1}


@pytest.mark.parametrize(
    "audience", [SlackAudience(teams=frozenset({OTHER})), SlackAudience(teams=frozenset({"*"}))]
)
async def test_other_organisations_are_answered_where_a_setting_says_so(
    harness: WorkerHarness, api: SlackApi, audience: SlackAudience
) -> None:
    async with harness.open(), slack_desk(harness, api, audience=audience) as desk:
        await wait_until_said(desk, SHARED, team=OTHER, user_team=OTHER)

        await wait_until_answered(desk, 1)


async def test_a_team_that_is_not_named_stays_out_where_another_is(
    harness: WorkerHarness, api: SlackApi
) -> None:
    audience = SlackAudience(teams=frozenset({"T3"}))
    async with harness.open(), slack_desk(harness, api, audience=audience) as desk:
        await wait_until_said(desk, SHARED, user_team=OTHER)
        await wait_until_said(desk, SHARED, user_team="T3")

        await wait_until_answered(desk, 1)
        assert len(api.posts) == 1


async def test_only_listed_channels_and_people_are_answered(
    harness: WorkerHarness, api: SlackApi
) -> None:
    audience = SlackAudience(channels=frozenset({"C1", "direct"}), users=frozenset({"U1"}))
    async with harness.open(), slack_desk(harness, api, audience=audience) as desk:
        await wait_until_said(desk, channel="C2")
        await wait_until_said(desk, user="U2")
        await wait_until_said(desk)
        await wait_until_said(desk, **DIRECT)

        await wait_until_answered(desk, 2)
        assert {post.channel for post in api.posts.values()} == {"C1", "D1"}
        assert desk.connector.refusals.counts == {"not_allowed": 2}


async def test_a_list_of_channels_closes_direct_messages_unless_it_names_them(
    harness: WorkerHarness, api: SlackApi
) -> None:
    api.locale = "de-DE"
    audience = SlackAudience(channels=frozenset({"C1"}))
    async with harness.open(), slack_desk(harness, api, audience=audience) as desk:
        for _ in range(3):
            await wait_until_said(desk, **DIRECT)

        await wait_until(lambda: api.posts)
        await wait_until_said(desk)
        await wait_until_answered(desk, 1)
        # One polite line, in the own language, and not with every message.
        texts = [post.text for post in api.posts.values() if post.channel == "D1"]
        assert texts == [TEXTS.text("push_not_allowed", "de")]


async def test_a_stranger_presses_no_button(desk: SlackHarness) -> None:
    await wait_until_said(desk)
    await wait_until_answered(desk, 1)
    (ts,) = desk.api.posts
    button = next(
        element
        for block in desk.api.posts[ts].blocks
        if block["type"] == "actions"
        for element in block["elements"]
    )

    answer = await desk.press(ts, button, user="U9", team=OTHER)

    assert answer.status_code == 200
    assert desk.connector.refusals.counts == {"not_allowed": 1}
    assert desk.api.called("chat.postEphemeral") == []


async def test_one_person_cannot_ask_without_end_and_is_notified_once(
    harness: WorkerHarness, api: SlackApi
) -> None:
    async with harness.open(), slack_desk(harness, api, limits=TWO) as desk:
        for number in range(5):
            await wait_until_said(desk, channel=f"C{number}")
        await wait_until_said(desk, user="U2")

        await wait_until_answered(desk, 3)
        notice = TEXTS.text("push_limited_minute", "en")
        notices = [post.text for post in api.posts.values() if post.text == notice]
        # Two, where the minute ended meanwhile.
        assert len(notices) in {1, 2}
        assert desk.connector.refusals.counts == {"limited_minute": 3}


async def test_an_event_that_slack_sends_twice_counts_once(
    harness: WorkerHarness, api: SlackApi
) -> None:
    async with harness.open(), slack_desk(harness, api, limits=TWO) as desk:
        for _ in range(2):
            event = await desk.say(f"{MENTION} How?")
            await desk.send({**event, "type": "app_mention"})
            await desk.send(event, X_Slack_Retry_Num="1")

        await wait_until_answered(desk, 2)
        assert desk.connector.refusals.counts == {}


async def test_two_processes_count_a_person_together_and_keep_no_name(
    any_harness: WorkerHarness, api: SlackApi
) -> None:
    async with (
        any_harness.open(),
        slack_desk(any_harness, api, limits=TWO) as desk,
        slack_desk(any_harness, api, limits=TWO) as other,
    ):
        other.count = 100
        for process in (desk, other) * 2:
            await wait_until_said(process, user="USECRET")

        await wait_until_answered(desk, 2)
        keys = [key async for key in any_harness.client.scan_iter("rd:rate:*")]

    assert keys
    assert not any(b"USECRET" in key for key in keys)


async def test_a_user_at_the_daily_limit_can_still_be_forgotten(
    harness: WorkerHarness, api: SlackApi
) -> None:
    limits = PersonLimits(per_minute=None, per_day=1)
    async with harness.open(), slack_desk(harness, api, limits=limits) as desk:
        event = await desk.say(f"{MENTION} How?")
        await wait_until_answered(desk, 1)
        await desk.say(f"{MENTION} And?", thread_ts=event["ts"])
        await wait_until(lambda: TEXTS.text("push_limited_day", "en") in api.shown())
        await desk.say(f"{MENTION} /clear", thread_ts=event["ts"])

        await wait_until(lambda: desk.connector.tally.counts.get("answered") == 2)
        assert desk.connector.refusals.counts == {"limited_day": 1}


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
    conversations = Conversations(desk.harness.client, shards=1, ttl_seconds=60)
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
