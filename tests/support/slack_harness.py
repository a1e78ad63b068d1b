"""The Slack channel before a scripted desk and a fake Slack."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import httpx
from slack_sdk.signature import SignatureVerifier

from gateway.chat.connector import ChatChannel
from gateway.chat.platform_calls import Pacer
from gateway.chat.ports import ChatPolicy
from gateway.connections.server import listening, serving
from gateway.slack.app import SlackEvents, identify, make_app
from gateway.slack.audience import SlackAudience
from gateway.slack.channel import SlackChannel
from gateway.slack.transport import PATH, make_client, slack_webhook
from gateway.slack.web_api import RATES, SlackCalls
from memory.rate_limits import RedisTurns
from tests.support.chat_harness import AT_ONCE, TEXTS, all_shown, open_connector
from tests.support.fake_slack import BOT, TEAM, TOKEN, SlackApi
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

SIGNING_SECRET = "signing-secret-of-this-test"  # noqa: S105 - of this test
ASKED = frozenset({"CASK"})
"""Channels where every message is a question."""


@dataclass
class People:
    """Who writes and presses, and the Slack that notifies the channel at `url` of it."""

    api: SlackApi
    url: str
    client: httpx.AsyncClient
    count: int = field(default=0, kw_only=True)

    def message(self, text: str, **fields: Any) -> dict[str, Any]:
        """The event that Slack sends of a message in a channel."""
        self.count += 1
        ts = f"1700000000.{self.count:06d}"
        event = {"type": "message", "channel": "C1", "user": "U1", "text": text, "ts": ts}
        return {**event, "channel_type": "channel", **fields}

    async def send(
        self, event: dict[str, Any], *, secret: str = SIGNING_SECRET, age_seconds: int = 0,
        outer: dict[str, Any] | None = None, **headers: str,
    ) -> httpx.Response:  # fmt: skip
        """Call the address for events, as Slack does."""
        body = {
            "type": "event_callback",
            "team_id": TEAM,
            "api_app_id": "A1",
            "event": event,
            "event_id": f"Ev{self.count}",
            "authorizations": [{"team_id": TEAM, "user_id": BOT, "is_bot": True}],
            **(outer or {}),
        }
        return await self._call(json.dumps(body), "application/json", secret, age_seconds, headers)

    async def press(
        self, ts: str, button: dict[str, Any], *, user: str = "U1", team: str = TEAM
    ) -> httpx.Response:
        """Press a button of a post."""
        said = self.api.posts[ts]
        self.count += 1
        body = {
            "type": "block_actions",
            "team": {"id": TEAM},
            "user": {"id": user, "team_id": team},
            "api_app_id": "A1",
            "channel": {"id": said.channel},
            "message": {
                "ts": ts,
                "text": said.text,
                "blocks": said.blocks,
                **({"thread_ts": said.thread} if said.thread else {}),
            },
            "actions": [
                {
                    "type": "button",
                    "block_id": "b",
                    "action_id": button["action_id"],
                    "value": button["value"],
                    "action_ts": f"1900000000.{self.count:06d}",
                }
            ],
        }
        return await self._call(
            urlencode({"payload": json.dumps(body)}),
            "application/x-www-form-urlencoded",
            SIGNING_SECRET,
            0,
            {},
        )

    async def say(self, text: str, **fields: Any) -> dict[str, Any]:
        """Have a message sent and taken in."""
        event = self.message(text, **fields)
        answer = await self.send(event)
        assert answer.status_code == 200, answer.text
        return event

    async def _call(
        self, body: str, kind: str, secret: str, age_seconds: int, headers: dict[str, str]
    ) -> httpx.Response:
        at = str(int(time.time()) - age_seconds)
        signature = SignatureVerifier(secret).generate_signature(timestamp=at, body=body)
        signed = {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": str(signature)}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(
            self.url, content=body, headers={"Content-Type": kind, **signed, **named}
        )


@dataclass
class SlackHarness(People):
    """An open channel, and the people before it."""

    connector: ChatChannel
    harness: WorkerHarness


def calls_of(harness: WorkerHarness, api: SlackApi) -> SlackCalls:
    """Calls that are paced for a Slack whose minutes pass as fast as those of this one."""
    rates = {
        name: replace(rate, per_minute=rate.per_minute * api.speed) for name, rate in RATES.items()
    }
    client = make_client(TOKEN, url=api.url)
    return SlackCalls(client, Pacer(RedisTurns(harness.client, "slack"), rates))


@asynccontextmanager
async def slack_desk(
    harness: WorkerHarness,
    api: SlackApi,
    *,
    policy: ChatPolicy = AT_ONCE,
    audience: SlackAudience | None = None,
    handover_channel: str = "",
    **options: Any,
) -> AsyncIterator[SlackHarness]:
    """Stand open while inside, over HTTP."""
    client = make_client(TOKEN, url=api.url)
    me = await identify(client, ASKED)
    listener = listening("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}"
    calls = calls_of(harness, api)
    channel = SlackChannel(calls, TEXTS)
    try:
        async with (
            open_connector(harness, channel, policy=policy, **options) as connector,
            httpx.AsyncClient(timeout=None) as caller,
        ):
            events = SlackEvents(calls, me, connector, audience, handover_channel=handover_channel)
            app = make_app(client, events, signing_secret=SIGNING_SECRET)
            web = slack_webhook(
                app, signing_secret=SIGNING_SECRET, unavailable=connector.unavailable
            )
            async with serving(web, listener, asyncio.Event()):
                yield SlackHarness(api, url, caller, connector, harness)
    finally:
        listener.close()


async def wait_until_settled(harness: WorkerHarness, api: SlackApi) -> None:
    """Wait until nothing is left to do."""
    await all_shown(harness, "slack", api.shown)
    await wait_until(lambda: not api.reactions)
