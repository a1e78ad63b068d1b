from gateway.chat.ports import ChatPolicy
from gateway.slack.app import SlackEvents, identify, make_app
from gateway.slack.channel import SlackChannel
from gateway.slack.transport import make_client, socket_mode
from tests.support.chat_harness import ANSWER, TEXTS, open_connector
from tests.support.fake_slack import APP_TOKEN, BOT, TEAM, TOKEN, SlackApi
from tests.support.slack_harness import calls_of
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness


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
                    {"type": "events_api", "envelope_id": envelope, "payload": body}
                )

            await wait_until(lambda: {"e1", "e2"} <= set(api.acknowledged))
            await wait_until(lambda: any(ANSWER in shown for shown in api.shown()))

    assert len(api.posts) == 1
