"""Calls Slack's Web API: no faster than Slack allows, its errors told in our words."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.chat.errors import AlreadyError, GoneError, LaterError, NeverError, PushError
from gateway.chat.rate_limit import Pacer, Rate

EYES = "eyes"
PLAIN = "none"
"""How Slack reads a text: it makes no links of what looks like an address."""
ALREADY = frozenset({"already_reacted", "no_reaction"})
GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
LATER = frozenset(
    {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
)
LOCKED_OUT = frozenset(
    {"invalid_auth", "not_authed", "token_expired", "token_revoked", "account_inactive"}
)
"""The token is no longer good: what is owed waits for a process with another."""
BLOCKS_REFUSED = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})
RATES = {
    "chat.postMessage": Rate(55, each_place=True),
    "chat.update": Rate(38, at_once=10),
    "chat.delete": Rate(38, at_once=10),
    "chat.postEphemeral": Rate(80, at_once=15),
    "users.info": Rate(80, at_once=15),
    "reactions.add": Rate(14, at_once=5),
    "reactions.remove": Rate(14, at_once=5),
}
"""Below what Slack allows an app in a minute of one workspace: a message a second for each channel;
100 calls of a method of tier 4 (whispers, users), 50 of tier 3 (edits, deletions), 20 of tier 2
(taking eyes away). Eyes are set no faster than they can be taken away."""


SCOPES = {
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "users.info": "users:read",
    "reactions.add": "reactions:write",
    "reactions.remove": "reactions:write",
}
"""What an app must be allowed for each method; `auth.test` is anybody's."""


class BlocksError(NeverError):
    """Slack does not take blocks that look right to us."""


class SlackCalls:
    """The methods that a door needs; each waits for its turn, those wanted `soon` not for long."""

    def __init__(self, client: AsyncWebClient, pacer: Pacer) -> None:
        self._client = client
        self._pacer = pacer

    async def sign(self, channel: str, ts: str) -> None:
        """Put eyes on a message, soon or not at all."""
        async with self._turn("reactions.add", soon=True):
            await self._client.reactions_add(channel=channel, timestamp=ts, name=EYES)

    async def unsign(self, channel: str, ts: str) -> None:
        """Take the eyes off a message."""
        async with self._turn("reactions.remove", already=ALREADY | GONE):
            await self._client.reactions_remove(channel=channel, timestamp=ts, name=EYES)

    async def post(self, channel: str, thread: str | None, text: str, *, soon: bool) -> str:
        """Post a text; return its `ts`."""
        async with self._turn("chat.postMessage", channel, soon=soon):
            sent = await self._client.chat_postMessage(
                channel=channel,
                thread_ts=thread,
                text=text,
                unfurl_links=False,
                unfurl_media=False,
                parse=PLAIN,
            )
        ts = sent.get("ts")
        if not isinstance(ts, str):
            raise PushError(f"expected the `ts` of what was posted, found {ts!r}")
        return ts

    async def update(self, channel: str, ts: str, text: str, blocks: Any) -> None:
        """Make a message say this; raises `BlocksError` when it is for the blocks."""
        async with self._turn("chat.update"):
            await self._client.chat_update(
                channel=channel, ts=ts, text=text, blocks=blocks, parse=PLAIN
            )

    async def delete(self, channel: str, ts: str) -> None:
        """Delete a message of ours."""
        async with self._turn("chat.delete", already=GONE):
            await self._client.chat_delete(channel=channel, ts=ts)

    async def whisper(self, channel: str, thread: str | None, user: str, text: str) -> None:
        """Say something that only one person sees."""
        async with self._turn("chat.postEphemeral"):
            await self._client.chat_postEphemeral(
                channel=channel, user=user, thread_ts=thread, text=text, parse=PLAIN
            )

    async def locale(self, user: str) -> str:
        """Return language and country in which Slack shows itself to somebody, or ''."""
        async with self._turn("users.info", soon=True):
            told = await self._client.users_info(user=user, include_locale=True)
        found: Mapping[str, Any] = told.get("user") or {}
        return str(found.get("locale") or "")

    @asynccontextmanager
    async def _turn(
        self,
        method: str,
        channel: str = "",
        *,
        soon: bool = False,
        already: frozenset[str] = ALREADY,
    ) -> AsyncIterator[None]:
        async with self._pacer.turn(method, channel, soon=soon), translate_errors(already=already):
            yield


@asynccontextmanager
async def translate_errors(*, already: frozenset[str] = ALREADY) -> AsyncIterator[None]:
    """Tell Slack's errors in our words."""
    try:
        yield
    except SlackApiError as error:
        raise _translate_error(error, already) from error
    except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise LaterError(f"Slack does not answer: {type(error).__name__}", 0.25) from error


def _translate_error(error: SlackApiError, already: frozenset[str]) -> Exception:
    response: Any = error.response
    code = _code(error)
    if response.status_code == 429 or code in {"ratelimited", "rate_limited"}:
        seconds = float(response.headers.get("Retry-After", 1))
        return LaterError(f"Slack is asked too often: {code}", seconds, told=True)
    if code in already:
        return AlreadyError(code)
    if response.status_code >= 500 or code in LATER | LOCKED_OUT:
        return LaterError(f"Slack does not answer: {code}", 0.25)
    if code in BLOCKS_REFUSED:
        return BlocksError(f"Slack refuses the blocks: {code}")
    return (GoneError if code in GONE else NeverError)(f"Slack refuses it: {code}")


def _code(error: SlackApiError) -> str:
    """Return Slack's word for an error; a server in between may answer with a page."""
    data: Any = error.response.data
    return str(data.get("error", "")) if isinstance(data, dict) else ""
