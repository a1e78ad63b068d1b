"""Speaks to Slack's Web API."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from broker.port import Fields
from envelope.question import Question
from gateway.pushing.errors import AlreadyError, GoneError, LaterError, NeverError
from gateway.pushing.port import Shown, Texts
from gateway.slack.blocks import messages

log = structlog.get_logger("gateway")

EYES = "eyes"
ALREADY = frozenset({"already_reacted", "no_reaction"})
GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
LATER = frozenset(
    {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
)
BLOCKS_REFUSED = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})
PLAIN_CHARACTERS = 39_000


class SlackChannel:
    """A `gateway.pushing.port.Channel`."""

    name = "slack"
    sign_seconds: float | None = None

    def __init__(self, client: AsyncWebClient, texts: Texts) -> None:
        self.client = client
        self._texts = texts

    async def working(self, question: Question, post: Mapping[str, str]) -> None:
        if "ts" in post:
            async with understood():
                await self.client.reactions_add(
                    channel=post["channel"], timestamp=post["ts"], name=EYES
                )

    async def rested(self, question: Question, post: Mapping[str, str]) -> None:
        if "ts" in post:
            async with understood(already=ALREADY | GONE):
                await self.client.reactions_remove(
                    channel=post["channel"], timestamp=post["ts"], name=EYES
                )

    def parts(self, shown: Shown) -> Sequence[Fields]:
        fixed = shown.fixed == "start"
        text = self._texts.text("push_start", shown.language) if fixed else shown.answer.text
        title = self._texts.text("push_sources", shown.language)
        return messages(text, shown.answer.sources, shown.buttons, title=title)

    async def placeholder(self, post: Mapping[str, str], text: str) -> str:
        async with understood():
            sent = await self.client.chat_postMessage(
                channel=post["channel"],
                thread_ts=post.get("thread"),
                text=text,
                unfurl_links=False,
                unfurl_media=False,
            )
        return str(sent["ts"])

    async def edit(self, post: Mapping[str, str], id_: str, part: Fields) -> None:
        blocks: Any = part["blocks"]
        text = str(part["text"])
        async with understood():
            try:
                await self.client.chat_update(
                    channel=post["channel"], ts=id_, text=text, blocks=blocks
                )
            except SlackApiError as error:
                if _code(error) not in BLOCKS_REFUSED:
                    raise
                log.warning("blocks_refused", channel=self.name, error=_code(error))
                await self.client.chat_update(
                    channel=post["channel"], ts=id_, text=_plain(blocks), blocks=[]
                )

    async def remove(self, post: Mapping[str, str], id_: str) -> None:
        async with understood(already=GONE):
            await self.client.chat_delete(channel=post["channel"], ts=id_)


@asynccontextmanager
async def understood(*, already: frozenset[str] = ALREADY) -> AsyncIterator[None]:
    """Tell Slack's errors in our words."""
    try:
        yield
    except SlackApiError as error:
        raise _told(error, already) from error
    except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise LaterError(f"Slack does not answer: {type(error).__name__}", 0.25) from error


def _told(error: SlackApiError, already: frozenset[str]) -> Exception:
    response: Any = error.response
    code = _code(error)
    if response.status_code == 429 or code in {"ratelimited", "rate_limited"}:
        seconds = float(response.headers.get("Retry-After", 1))
        return LaterError(f"Slack is asked too often: {code}", seconds, told=True)
    if code in already:
        return AlreadyError(code)
    if response.status_code >= 500 or code in LATER:
        return LaterError(f"Slack does not answer: {code}", 0.25)
    return (GoneError if code in GONE else NeverError)(f"Slack refuses it: {code}")


def _code(error: SlackApiError) -> str:
    """Return Slack's word for an error; a server in between may answer with a page."""
    data: Any = error.response.data
    return str(data.get("error", "")) if isinstance(data, dict) else ""


def _plain(blocks: Sequence[Mapping[str, Any]]) -> str:
    texts = [block["text"]["text"] for block in blocks if block["type"] == "section"]
    return "\n\n".join(texts)[:PLAIN_CHARACTERS]
