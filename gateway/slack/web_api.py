"""Calls Slack's Web API within its rate limits, and converts its errors."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.chat.platform_calls import Pacer, Rate
from gateway.chat.ports import (
    NoOpError,
    PermanentError,
    PostNotFoundError,
    PushError,
    RetryableError,
)

EYES = "eyes"
PLAIN = "none"
"""The message options that prevent Slack from turning plain URLs into links."""
ALREADY = frozenset({"already_reacted", "no_reaction"})
GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
LATER = frozenset(
    {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
)
LOCKED_OUT = frozenset(
    {"invalid_auth", "not_authed", "token_expired", "token_revoked", "account_inactive"}
)
"""Errors that mean that the token is invalid, so that undelivered replies wait for a process with a
valid one.
"""
BLOCKS_REFUSED = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})
RATES = {
    "chat.postMessage": Rate(55, each_place=True),
    "chat.update": Rate(38, at_once=10),
    "chat.delete": Rate(38, at_once=10),
    "chat.postEphemeral": Rate(80, at_once=15),
    "users.info": Rate(80, at_once=15),
    "usergroups.users.list": Rate(9, at_once=10),
    "conversations.replies": Rate(38, at_once=10),
    "reactions.add": Rate(14, at_once=5),
    "reactions.remove": Rate(14, at_once=5),
}
"""Rates below Slack's limits for an app in one workspace: one message per second and channel; per
minute, 100 calls of a tier 4 method (ephemeral messages, users), 50 of tier 3 (edits, deletions),
and 20 of tier 2 (removing reactions, members of user groups). Reactions are not added faster than
they can be removed.
"""

DRAFT_LEAVES = 5
"""The number of edits that a draft leaves for outcomes, which is half of the edits that do not have
to wait.
"""


SCOPES = {
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "users.info": "users:read",
    "usergroups.users.list": "usergroups:read",
    "conversations.replies": "channels:history",
    "reactions.add": "reactions:write",
    "reactions.remove": "reactions:write",
}
"""The scope that each method requires; `auth.test` requires none."""


class BlocksError(PermanentError):
    """Slack rejects the blocks of a message."""


class SlackCalls:
    """The methods that the channel uses. Each waits for its turn, but only for a short time if
    `soon` is true.
    """

    def __init__(self, client: AsyncWebClient, pacer: Pacer) -> None:
        self._client = client
        self._pacer = pacer

    async def sign(self, channel: str, ts: str, *, name: str = EYES) -> None:
        """Add a reaction to a message, or skip it if the rate limit would delay it."""
        async with self._turn("reactions.add", soon=True):
            await self._client.reactions_add(channel=channel, timestamp=ts, name=name)

    async def read_own_message(self, channel: str, ts: str, user: str) -> str:
        """Return the text of a message posted by the app, whose user is `user`, or an empty
        string.
        """
        async with self._turn("conversations.replies", soon=True):
            reply = await self._client.conversations_replies(channel=channel, ts=ts, limit=1)
        first: Mapping[str, Any] = next(iter(reply.get("messages") or ()), {})
        if first.get("user") != user or first.get("ts") != ts:
            return ""
        texts = (block.get("text") or {} for block in first.get("blocks") or ())
        return "\n".join(str(text.get("text") or "") for text in texts)

    async def unsign(self, channel: str, ts: str) -> None:
        """Remove the eyes reaction of a message."""
        async with self._turn("reactions.remove", already=ALREADY | GONE):
            await self._client.reactions_remove(channel=channel, timestamp=ts, name=EYES)

    async def post(self, channel: str, thread: str | None, text: str, *, soon: bool) -> str:
        """Post a message; return its `ts`."""
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
            raise PushError(f"Slack returned no valid `ts` for the post, found {ts!r}")
        return ts

    async def update(
        self, channel: str, ts: str, text: str, blocks: Any, *, is_draft: bool = False
    ) -> None:
        """Replace a message; raises `BlocksError` if Slack rejects the blocks."""
        async with self._turn("chat.update", leaves=DRAFT_LEAVES if is_draft else 0):
            await self._client.chat_update(
                channel=channel, ts=ts, text=text, blocks=blocks, parse=PLAIN
            )

    async def delete(self, channel: str, ts: str) -> None:
        """Delete a message of the app."""
        async with self._turn("chat.delete", already=GONE):
            await self._client.chat_delete(channel=channel, ts=ts)

    async def whisper(self, channel: str, thread: str | None, user: str, text: str) -> None:
        """Post a message that only one person can see."""
        async with self._turn("chat.postEphemeral"):
            await self._client.chat_postEphemeral(
                channel=channel, user=user, thread_ts=thread, text=text, parse=PLAIN
            )

    async def locale(self, user: str) -> str:
        """Return the locale in a user's Slack settings, or an empty string."""
        async with self._turn("users.info", soon=True):
            reply = await self._client.users_info(user=user, include_locale=True)
        profile: Mapping[str, Any] = reply.get("user") or {}
        return str(profile.get("locale") or "")

    async def list_members(self, user_group: str) -> tuple[str, ...]:
        """Return the ids of the people in a user group."""
        async with self._turn("usergroups.users.list", soon=True):
            reply = await self._client.usergroups_users_list(usergroup=user_group)
        members = reply.get("users")
        if not isinstance(members, list):
            raise RetryableError(
                f"Slack returned no valid `users` for the user group, found {members!r:.40}", 0.25
            )
        return tuple(map(str, members))

    @asynccontextmanager
    async def _turn(
        self,
        method: str,
        channel: str = "",
        *,
        soon: bool = False,
        leaves: int = 0,
        already: frozenset[str] = ALREADY,
    ) -> AsyncIterator[None]:
        turn = self._pacer.turn(method, channel, soon=soon, leaves=leaves)
        async with turn, translate_errors(already=already):
            yield


@asynccontextmanager
async def translate_errors(*, already: frozenset[str] = ALREADY) -> AsyncIterator[None]:
    """Convert Slack's errors into `PushError` inside the context."""
    try:
        yield
    except SlackApiError as error:
        raise _translate_error(error, already) from error
    except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise RetryableError(f"Slack did not respond: {type(error).__name__}", 0.25) from error


def _translate_error(error: SlackApiError, already: frozenset[str]) -> Exception:
    response: Any = error.response
    code = _code(error)
    if response.status_code == 429 or code in {"ratelimited", "rate_limited"}:
        seconds = float(response.headers.get("Retry-After", 1))
        return RetryableError(f"too many requests to Slack: {code}", seconds, by_platform=True)
    if code in already:
        return NoOpError(code)
    if response.status_code >= 500 or code in LATER | LOCKED_OUT:
        return RetryableError(f"Slack did not respond: {code}", 0.25)
    if code in BLOCKS_REFUSED:
        return BlocksError(f"Slack refused the blocks: {code}")
    return (PostNotFoundError if code in GONE else PermanentError)(
        f"Slack refused the request: {code}"
    )


def _code(error: SlackApiError) -> str:
    """Return Slack's error code; a proxy may have responded with a web page instead."""
    data: Any = error.response.data
    return str(data.get("error", "")) if isinstance(data, dict) else ""
