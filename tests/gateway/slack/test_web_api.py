import asyncio
from typing import Any

from gateway.slack.web_api import RATES
from memory.rate_limits import RedisTurns
from tests.support.chat_harness import ANSWER, WORKING
from tests.support.fake_slack import ALLOWED, BOT, RefusedError, SlackApi
from tests.support.slack_harness import SlackHarness, slack_desk, wait_until_settled
from tests.support.waiting import wait_until, within
from tests.support.worker_harness import WorkerHarness

MENTION = f"<@{BOT}>"


def too_many(seconds: int) -> RefusedError:
    return RefusedError("ratelimited", status=429, retry_after=seconds)


async def all_answered(desk: SlackHarness, asked: list[dict[str, Any]]) -> None:
    """Wait until each question has its one outcome, and nothing is left to do."""
    api = desk.api
    await wait_until(lambda: sum(ANSWER in shown for shown in api.shown()) == len(asked))
    await wait_until_settled(desk.harness, api)
    assert {said.thread for said in api.posts.values()} == {event["ts"] for event in asked}
    assert len(api.posts) == len(asked)


def test_no_minute_holds_more_calls_than_slack_allows() -> None:
    most = {name: rate.per_minute + rate.at_once for name, rate in RATES.items()}

    assert all(most[name] < allowed for name, allowed in ALLOWED.items())
    assert RATES["chat.postMessage"].per_minute < 60
    # Eyes that are set can be taken away at the same rate.
    assert RATES["reactions.add"] == RATES["reactions.remove"]


async def test_a_burst_at_two_processes_meets_no_limit_and_everybody_is_answered(
    harness: WorkerHarness, api: SlackApi
) -> None:
    api.speed = 6.0
    async with harness.open(), slack_desk(harness, api) as desk, slack_desk(harness, api) as other:
        asked = [desk.message(f"{MENTION} How?", channel=f"C{number % 3}") for number in range(16)]
        processes = [desk, other] * 8

        async def send(process: SlackHarness, event: dict[str, Any]) -> None:
            # As Slack does, which a busy process may ask to try again.
            while (await process.send(event)).status_code == 503:
                pass

        async with within():
            await asyncio.gather(*map(send, processes, asked))

        await all_answered(desk, asked)

    assert api.limited == []
    assert api.reacted  # some got eyes, and nobody more than can be taken away


async def test_all_processes_wait_when_slack_limits_one_of_them(
    harness: WorkerHarness, api: SlackApi
) -> None:
    lease: dict[str, Any] = {"lease_seconds": 0.3}
    async with (
        harness.open(),
        slack_desk(harness, api, **lease) as desk,
        slack_desk(harness, api, **lease) as other,
    ):
        api.refusals["chat.update"] = [too_many(2)]
        first = await desk.say(f"{MENTION} How?")
        await wait_until_held(harness, "chat.update", 1500)
        second = await other.say(f"{MENTION} What?", channel="C2", ts="1700000001.000001")

        await all_answered(desk, [first, second])

    assert api.impatient == []
    assert len(api.called("chat.update")) == 3


async def test_eyes_and_placeholder_are_left_out_when_they_would_be_late_never_the_outcome(
    harness: WorkerHarness, api: SlackApi
) -> None:
    turns = RedisTurns(harness.client, "slack")
    calls = ("reactions.add", "chat.postMessage:C1")
    for call in calls:
        await turns.hold(call, every_seconds=1.0, at_once=1, seconds=60.0)
    async with slack_desk(harness, api) as desk:
        event = await desk.say(f"{MENTION} How?")
        await wait_until_left_out(desk, event)
        assert WORKING not in api.shown()

        for call in calls:
            await harness.client.delete(f"rd:push:slack:pace:{call.replace(':', '%3A')}")
        async with harness.open():
            await all_answered(desk, [event])

    assert not api.called("reactions.add")
    assert not api.called("reactions.remove")


async def wait_until_held(harness: WorkerHarness, call: str, milliseconds: int) -> None:
    """Wait until nobody gets a turn for so long."""

    async def is_held() -> bool:
        return bool(await harness.client.pttl(f"rd:push:slack:pace:{call}") > milliseconds)

    await wait_until(is_held)


async def wait_until_left_out(desk: SlackHarness, event: dict[str, Any]) -> None:
    """Wait until it is kept that a message has no eyes."""
    question = desk.connector.name_question(f"T1:C1:{event['ts']}", event["ts"])

    async def is_unsigned() -> bool:
        return "unsigned" in await desk.connector.memory.fields(question)

    await wait_until(is_unsigned)
