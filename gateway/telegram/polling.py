"""Fetches updates by long polling; each is confirmed after it was taken in."""

import asyncio
from typing import Any

import structlog
from telegram import Bot
from telegram.error import Conflict, RetryAfter, TelegramError

from gateway.telegram.calls import seconds_of
from gateway.telegram.taking import Updates
from gateway.telegram.updates import ALLOWED

log = structlog.get_logger("gateway")

POLL_SECONDS = 25
AWAY_SECONDS = 1.0
CONFLICT_SECONDS = 3.0
"""Another process polls: how long to wait before looking whether it still does."""
TRIES = 3


class Polling:
    """The loop of one process; only one at a time gets updates, the next one waits to take over."""

    def __init__(
        self, bot: Bot, updates: Updates, *, unavailable: tuple[type[Exception], ...]
    ) -> None:
        self._bot = bot
        self._updates = updates
        self._unavailable = unavailable
        self._offset = 0
        self._failed: dict[int, int] = {}

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            for update in await self._fetched():
                if not await self._take(update):
                    await asyncio.sleep(AWAY_SECONDS)
                    break
                self._offset = int(update["update_id"]) + 1

    async def _fetched(self) -> list[dict[str, Any]]:
        try:
            updates = await self._bot.get_updates(
                offset=self._offset, timeout=POLL_SECONDS, allowed_updates=ALLOWED
            )
        except TelegramError as error:
            log.warning("polling_failed", channel="telegram", error=str(error))
            await asyncio.sleep(_pause(error))
            return []
        return [update.to_dict() for update in updates]

    async def _take(self, update: dict[str, Any]) -> bool:
        """Whether an update was taken in, or given up because it cannot be."""
        number = int(update["update_id"])
        try:
            await self._updates.take(update)
        except self._unavailable as error:
            log.warning("update_waits", channel="telegram", update_id=number, error=str(error))
            return False
        except Exception as error:
            self._failed[number] = self._failed.get(number, 0) + 1
            log.error("update_failed", channel="telegram", update_id=number, exc_info=error)
            return self._failed[number] >= TRIES
        return True


def _pause(error: TelegramError) -> float:
    if isinstance(error, RetryAfter):
        return seconds_of(error)
    return CONFLICT_SECONDS if isinstance(error, Conflict) else AWAY_SECONDS
