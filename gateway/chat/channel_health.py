"""The health of a process that connects to a chat platform."""

import asyncio
import time

from broker.errors import BrokerUnavailableError
from broker.ports import ReplyReader
from envelope.question import Question

LOOK_SECONDS = 2.0
NOBODY = Question(tenant="probe", assistant="probe", conversation_id="-", message_id="-")


class ChannelHealth:
    """The state of a chat channel for `/healthz` and `/readyz`, based on its check of Redis."""

    def __init__(self, replies: ReplyReader, stuck_seconds: float) -> None:
        self._replies = replies
        self._stuck_seconds = stuck_seconds
        self._last_turn = time.monotonic()
        self._away = "Redis has not been checked yet"

    async def run(self) -> None:
        """Check Redis regularly, until cancelled."""
        while True:
            self._last_turn = time.monotonic()
            self._away = await self._look()
            await asyncio.sleep(LOOK_SECONDS)

    def dead(self) -> str:
        """Return why the process should be restarted, or an empty string."""
        still = time.monotonic() - self._last_turn
        if still <= self._stuck_seconds:
            return ""
        return f"the event loop has been blocked for {still:.0f} s"

    def unready(self) -> str:
        """Return why the channel cannot accept messages, or an empty string."""
        return self._away

    async def _look(self) -> str:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._replies.read_reply(NOBODY)
        except (BrokerUnavailableError, TimeoutError):
            return "Redis does not respond"
        return ""
