import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from broker.transport.connect import connect
from envelope.role import Role
from gateway.chat.ports import ChatPolicy
from gateway.slack.app import SlackEvents, identify, make_app
from gateway.slack.channel import SlackChannel
from gateway.slack.transport import make_client, socket_mode
from tests.gateway.slack.server_process import serve_slack
from tests.support.chat_harness import (
    ANSWER,
    TEXTS,
    WORKING,
    open_connector,
    wait_until_acknowledged,
)
from tests.support.drafting import DraftedAnswer
from tests.support.fake_slack import APP_TOKEN, BOT, TEAM, TOKEN, SlackApi
from tests.support.slack_harness import People, calls_of
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

pytestmark = [pytest.mark.redis, pytest.mark.slow]


TAKING_IN, SIGNING, PLACING = "users.info", "reactions.add", "chat.postMessage"


EDITING, RESTING = "chat.update", "reactions.remove"


@pytest.fixture
async def lasting(redis_url: str) -> AsyncIterator[WorkerHarness]:
    """A desk on a Redis that outlives the channels."""
    harness = WorkerHarness(lambda: connect(redis_url), played=False)
    await harness.client.flushall()
    yield harness
    await harness.close()


async def one_outcome(harness: WorkerHarness, api: SlackApi) -> None:
    """Wait until the outcome is shown and nothing is left to do; the only one there is."""
    await wait_until(lambda: any(ANSWER in shown for shown in api.shown()))
    await wait_until_acknowledged(harness, "slack")
    await wait_until(lambda: not api.reactions)
    assert sum(ANSWER in shown for shown in api.shown()) == 1
    assert len(harness.script.seen[Role.RESPONSE]) == 1


@pytest.mark.parametrize(
    ("method", "was_done"),
    [
        (PLACING, True),
        (EDITING, True),
        pytest.param(TAKING_IN, True, marks=pytest.mark.long),
        pytest.param(SIGNING, True, marks=pytest.mark.long),
        pytest.param(EDITING, False, marks=pytest.mark.long),
        pytest.param(RESTING, False, marks=pytest.mark.long),
    ],
)
async def test_a_process_killed_while_it_speaks_to_slack_leaves_one_outcome(
    redis_url: str, lasting: WorkerHarness, api: SlackApi, method: str, was_done: bool
) -> None:
    held = api.gates if was_done else api.walls
    held[method] = asyncio.Event()
    async with AsyncExitStack() as stack:
        people = People(api, "", await stack.enter_async_context(httpx.AsyncClient()))
        event = people.message(f"<@{BOT}> How?")
        if method in {EDITING, RESTING}:
            await stack.enter_async_context(lasting.open())
        async with (
            serve_slack(redis_url, api.url) as (first, people.url),
            asyncio.TaskGroup() as tasks,
        ):
            sending = tasks.create_task(send_event(people, event))
            await wait_until(lambda: api.called(method))
            first.kill()
            await first.wait()
        held.pop(method).set()
        if method not in {EDITING, RESTING}:
            await stack.enter_async_context(lasting.open())

        async with serve_slack(redis_url, api.url) as (_, people.url):
            for number, doubled in enumerate((event, {**event, "type": "app_mention"}), 1):
                assert await send_event(people, doubled, X_Slack_Retry_Num=str(number)) == 200
            await one_outcome(lasting, api)
            assert await send_event(people, event, X_Slack_Retry_Num="3") == 200

    assert sending.result() == (None if method == TAKING_IN else 200)
    left = [shown for shown in api.shown() if ANSWER not in shown]
    # The window that docs/channels.md describes: Slack took a placeholder whose id nobody kept.
    assert left == ([WORKING] if method == PLACING else [])


async def test_the_outcome_replaces_the_draft_that_a_killed_process_left(
    redis_url: str, lasting: WorkerHarness, api: SlackApi
) -> None:
    api.gates[EDITING] = asyncio.Event()
    drafted = DraftedAnswer(lasting)
    drafted.script()
    async with lasting.open(), httpx.AsyncClient() as client:
        people = People(api, "", client)
        event = people.message(f"<@{BOT}> How?")
        async with serve_slack(redis_url, api.url) as (first, people.url):
            assert await send_event(people, event) == 200
            await wait_until(lambda: api.called(EDITING))
            first.kill()
            await first.wait()
        api.gates.pop(EDITING).set()
        drafted.first.set()
        drafted.whole.set()

        async with serve_slack(redis_url, api.url) as (_, people.url):
            assert await send_event(people, event, X_Slack_Retry_Num="1") == 200
            await wait_until(lambda: any("priority" in shown for shown in api.shown()))
            await wait_until_acknowledged(lasting, "slack")

    (said,) = api.posts.values()
    notice = TEXTS.text("push_draft", "en")
    assert [notice in version for version in said.versions] == [False, True]
    assert notice not in said.shown
    assert len(lasting.script.seen[Role.RESPONSE]) == 1


async def test_an_event_unacknowledged_by_a_killed_socket_is_answered_once_over_another(
    redis_url: str, lasting: WorkerHarness, api: SlackApi
) -> None:
    api.gates[TAKING_IN] = asyncio.Event()
    async with lasting.open(), httpx.AsyncClient() as client:
        event = People(api, "", client).message(f"<@{BOT}> How?")
        async with serve_slack(redis_url, api.url, "socket") as (first, _):
            await wait_until(lambda: api.sockets)
            await push_event(api, event)
            await wait_until(lambda: api.called(TAKING_IN))
            first.kill()
            await first.wait()
        api.gates.pop(TAKING_IN).set()
        assert api.acknowledged == []

        async with serve_slack(redis_url, api.url, "socket"):
            await wait_until(lambda: len(api.sockets) == 2)
            await push_event(api, event)
            await wait_until(lambda: api.acknowledged == ["e2"])
            await one_outcome(lasting, api)

    assert len(api.posts) == 1


async def send_event(people: People, event: dict[str, Any], **headers: Any) -> int | None:
    """Send an event; return the status, or None when the process died over it."""
    try:
        return (await people.send(event, **headers)).status_code
    except httpx.TransportError:
        return None


async def push_event(api: SlackApi, event: dict[str, Any]) -> None:
    """Send an event over the latest socket."""
    body = {"type": "event_callback", "team_id": TEAM, "event": event, "event_id": "Ev1",
            "authorizations": [{"team_id": TEAM, "user_id": BOT, "is_bot": True}]}  # fmt: skip
    envelope = f"e{len(api.sockets)}"
    await api.sockets[-1].send_json(
        {"type": "events_api", "envelope_id": envelope, "payload": body}
    )


async def test_socket_mode_takes_events_and_acknowledges_them(
    harness: WorkerHarness, api: SlackApi
) -> None:
    client = make_client(TOKEN, url=api.url)
    me = await identify(client, frozenset())
    event = {"type": "message", "channel": "C1", "user": "U1", "ts": "1700000000.000001",
             "text": f"<@{BOT}> How?", "channel_type": "channel"}  # fmt: skip
    body = {"type": "event_callback", "team_id": TEAM, "event": event, "event_id": "Ev1",
            "authorizations": [{"team_id": TEAM, "user_id": BOT, "is_bot": True}]}  # fmt: skip
    policy = ChatPolicy(burst_seconds=0.0)
    calls = calls_of(harness, api)
    channel = SlackChannel(calls, TEXTS)
    async with harness.open(), open_connector(harness, channel, policy=policy) as connector:
        app = make_app(client, SlackEvents(calls, me, connector), signing_secret="")
        async with socket_mode(app, APP_TOKEN):
            await wait_until(lambda: api.sockets)
            for envelope in ("e1", "e2"):
                await api.sockets[0].send_json(
                    {
                        "type": "events_api",
                        "envelope_id": envelope,
                        "payload": body,
                        # The first delivery may have found no open connection.
                        "retry_attempt": 1,
                        "retry_reason": "timeout",
                    }
                )

            await wait_until(lambda: {"e1", "e2"} <= set(api.acknowledged))
            await wait_until(lambda: any(ANSWER in shown for shown in api.shown()))

    assert len(api.posts) == 1
