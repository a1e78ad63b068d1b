"""Declines messages politely: notifies each person at intervals, and counts the messages."""

import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Literal

import structlog

from gateway.chat.errors import PermanentError
from gateway.chat.ports import Channel, ChannelTexts, PushMemory, Tally
from gateway.chat.retry import retry

log = structlog.get_logger("gateway")

Reason = Literal["limited_minute", "limited_day", "not_allowed"]
NOTICES: Mapping[Reason, tuple[str, int]] = {
    "limited_minute": ("push_limited_minute", 60),
    "limited_day": ("push_limited_day", 86_400),
    "not_allowed": ("push_not_allowed", 86_400),
}
"""The text of each reason, and the time (s) before the same person gets it again."""
Spawn = Callable[[Coroutine[None, None, None]], None]


class Declining:
    """Declines messages of a channel; `tally` counts them by reason."""

    def __init__(
        self,
        memory: PushMemory,
        channel: Channel,
        texts: ChannelTexts,
        *,
        tally: Tally,
        spawn: Spawn,
    ) -> None:
        self._memory = memory
        self._channel = channel
        self._texts = texts
        self._tally = tally
        self._spawn = spawn

    async def decline(
        self, reason: Reason, person: str, post: Mapping[str, str] | None, language: str
    ) -> None:
        """Count a declined message, and post a notice at `post`, unless that is None."""
        self._tally.add(reason)
        log.info("message_declined", channel=self._channel.name, reason=reason)
        if post is None:
            return
        key, seconds = NOTICES[reason]
        name = "\x1f".join(("declined", reason, person, str(int(time.time() // seconds))))
        if await self._memory.claim(name, seconds=seconds):
            text = self._texts.text(key, language)
            # In the background: a notice that waits for its turn must not delay other messages.
            self._spawn(self._say(post, text, key))

    async def _say(self, post: Mapping[str, str], text: str, key: str) -> None:
        try:
            await retry(lambda: self._channel.post_placeholder(post, text), call_name="post_notice")
        except PermanentError as never:
            log.warning(
                "platform_call_rejected",
                call="post_notice",
                channel=self._channel.name,
                error=str(never),
                notice=key,
            )
