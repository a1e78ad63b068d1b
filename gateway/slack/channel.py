"""Shows outcomes in Slack: an eyes reaction and a placeholder, then the answer's blocks."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from broker.values import Fields
from envelope.question import Question
from envelope.texts import Texts
from gateway.answer import split_off_passages
from gateway.chat.ports import Shown
from gateway.slack.blocks import messages, without_actions
from gateway.slack.web_api import BlocksError, SlackCalls

log = structlog.get_logger("gateway")

PLAIN_CHARACTERS = 39_000


class SlackChannel:
    """Implements `gateway.chat.ports.Channel` for Slack."""

    name = "slack"
    activity_seconds: float | None = None

    def __init__(self, calls: SlackCalls, texts: Texts) -> None:
        self._calls = calls
        self._texts = texts

    async def show_activity(self, question: Question, post: Mapping[str, str]) -> None:
        if "ts" in post:
            await self._calls.sign(post["channel"], post["ts"])

    async def hide_activity(self, question: Question, post: Mapping[str, str]) -> None:
        if "ts" in post:
            await self._calls.unsign(post["channel"], post["ts"])

    def render(self, shown: Shown) -> Sequence[Fields]:
        text, more = split_off_passages(shown.answer)
        if shown.fixed == "start":
            text, more = self._texts.text("push_start", shown.language), ""
        title = self._texts.text("push_sources", shown.language)
        return messages(text, shown.answer.sources, shown.buttons, title=title, more=more)

    async def post_placeholder(
        self, post: Mapping[str, str], text: str, *, soon: bool = False
    ) -> str:
        return await self._calls.post(post["channel"], post.get("thread"), text, soon=soon)

    async def edit(
        self, post: Mapping[str, str], id_: str, part: Fields, *, is_draft: bool = False
    ) -> None:
        blocks: Any = part["blocks"]
        channel, text = post["channel"], str(part["text"])
        try:
            await self._calls.update(channel, id_, text, blocks, is_draft=is_draft)
        except BlocksError as error:
            log.warning("blocks_rejected", channel=self.name, error=str(error))
            await self._calls.update(channel, id_, _plain(blocks), [], is_draft=is_draft)

    async def delete(self, post: Mapping[str, str], id_: str) -> None:
        await self._calls.delete(post["channel"], id_)


async def show_choice(
    calls: SlackCalls, channel: str, message: Mapping[str, Any], chosen: str
) -> None:
    """Replace the options of a message by the chosen one."""
    blocks = without_actions(message.get("blocks") or [], chosen)
    await calls.update(channel, str(message["ts"]), str(message.get("text") or ""), blocks)


def _plain(blocks: Sequence[Mapping[str, Any]]) -> str:
    texts = [block["text"]["text"] for block in blocks if block["type"] == "section"]
    return "\n\n".join(texts)[:PLAIN_CHARACTERS]
