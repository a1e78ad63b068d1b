"""Fetches updates by long polling; each is confirmed after it was taken in."""

import asyncio
import time
from contextlib import suppress
from typing import Any, NoReturn, Protocol

import structlog
from telegram import Bot
from telegram.error import Conflict, RetryAfter, TelegramError

from gateway.chat.cancellation import raise_if_cancelled
from gateway.telegram.bot_api import seconds_of
from gateway.telegram.inbound import Updates
from gateway.telegram.updates import ALLOWED

log = structlog.get_logger("gateway")

POLL_SECONDS = 25
AWAY_SECONDS = 1.0
CONFLICT_SECONDS = 3.0
"""Another process is heard: how long to wait before polling again."""
QUIET_SECONDS = 60.0
"""How long nothing more is said of what hinders polling."""
TRIES = 3
DUTY_SECONDS = 6.0
"""After so long another process polls in the place of one that died."""
KEEP_SECONDS = 2.0


class Duty(Protocol):
    """What one process has at a time."""

    async def keep(self, seconds: float) -> bool:
        """Take the duty, or keep it, for so long; False while somebody else has it."""
        ...

    async def leave(self) -> None:
        """Let somebody else have it at once."""
        ...


class Polling:
    """The loop of one process.

    Telegram gives updates to one poll at a time, and ends the older of two. So of several processes
    the one on duty polls; where two do all the same, what comes to both is taken in once.
    """

    def __init__(
        self,
        bot: Bot,
        updates: Updates,
        *,
        duty: Duty,
        unavailable: tuple[type[Exception], ...],
        conflict_seconds: float = CONFLICT_SECONDS,
        keep_seconds: float = KEEP_SECONDS,
    ) -> None:
        self._bot = bot
        self._updates = updates
        self._duty = duty
        self._unavailable = unavailable
        self._conflict_seconds = conflict_seconds
        self._keep_seconds = keep_seconds
        self._on_duty = asyncio.Event()
        self._quiet_until = float("-inf")
        self._offset = 0
        self._failed: dict[int, int] = {}

    async def run(self) -> None:
        """Poll whenever on duty, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep())
            tasks.create_task(self._poll())

    async def _keep(self) -> NoReturn:
        try:
            while True:
                raise_if_cancelled()
                # While nobody answers nothing can be taken in either: all stays as it is.
                with suppress(*self._unavailable):
                    if await self._duty.keep(DUTY_SECONDS):
                        self._on_duty.set()
                    else:
                        self._on_duty.clear()
                await asyncio.sleep(self._keep_seconds)
        finally:
            with suppress(*self._unavailable):
                await self._duty.leave()

    async def _poll(self) -> NoReturn:
        while True:
            raise_if_cancelled()
            await self._on_duty.wait()
            for update in await self._fetch():
                if not await self._take(update):
                    await asyncio.sleep(AWAY_SECONDS)
                    break
                self._offset = int(update["update_id"]) + 1

    async def _fetch(self) -> list[dict[str, Any]]:
        try:
            updates = await self._bot.get_updates(
                offset=self._offset, timeout=POLL_SECONDS, allowed_updates=ALLOWED
            )
        except Conflict as error:
            self._log_conflict(error)
            await asyncio.sleep(self._conflict_seconds)
            return []
        except TelegramError as error:
            log.warning("polling_failed", channel="telegram", error=str(error))
            await asyncio.sleep(_pause(error))
            return []
        return [update.to_dict() for update in updates]

    def _log_conflict(self, error: Conflict) -> None:
        """Say now and then who gets the updates; one line of a terminal holds it."""
        if time.monotonic() < self._quiet_until:
            return
        self._quiet_until = time.monotonic() + QUIET_SECONDS
        hooked = "webhook" in error.message.casefold()
        log.warning("polling_blocked_by_webhook" if hooked else "polling_conflict")

    async def _take(self, update: dict[str, Any]) -> bool:
        """Whether an update was taken in, or given up because it cannot be."""
        number = int(update["update_id"])
        try:
            await self._updates.take(update)
        except self._unavailable as error:
            log.warning("update_deferred", channel="telegram", update_id=number, error=str(error))
            return False
        except Exception as error:
            self._failed[number] = self._failed.get(number, 0) + 1
            log.error("update_failed", channel="telegram", update_id=number, exc_info=error)
            return self._failed[number] >= TRIES
        return True


def _pause(error: TelegramError) -> float:
    return seconds_of(error) if isinstance(error, RetryAfter) else AWAY_SECONDS
