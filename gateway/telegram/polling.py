"""Fetches updates by long polling; confirms each after it was stored."""

import asyncio
import time
from contextlib import suppress
from typing import Any, NoReturn, Protocol

import structlog
from telegram import Bot
from telegram.error import Conflict, RetryAfter, TelegramError

from gateway.chat.platform_calls import raise_if_cancelled
from gateway.telegram.bot_api import seconds_of
from gateway.telegram.inbound import Updates
from gateway.telegram.updates import ALLOWED

log = structlog.get_logger("gateway")

POLL_SECONDS = 25
AWAY_SECONDS = 1.0
CONFLICT_SECONDS = 3.0
"""The time to wait before the next poll if another process polls."""
QUIET_SECONDS = 60.0
"""The minimum interval of log lines about failed polls."""
TRIES = 3
DUTY_SECONDS = 6.0
"""The lease of the polling process; another takes over this long after its death."""
KEEP_SECONDS = 2.0


class Duty(Protocol):
    """A lease that one process holds at a time."""

    async def keep(self, seconds: float) -> bool:
        """Acquire or renew the lease for `seconds`; return False if another process holds it."""
        ...

    async def leave(self) -> None:
        """Release the lease."""
        ...


class Polling:
    """The polling loop of one process.

    Telegram serves one poll at a time and ends the older of two. So only the process that holds the
    lease polls. If two poll nevertheless, an update that both receive is stored once.
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
        """Poll while this process holds the lease, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep())
            tasks.create_task(self._poll())

    async def _keep(self) -> NoReturn:
        try:
            while True:
                raise_if_cancelled()
                # Without Redis no update can be stored, so none is fetched.
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
        """Log at intervals why this process gets no updates, in one short line."""
        if time.monotonic() < self._quiet_until:
            return
        self._quiet_until = time.monotonic() + QUIET_SECONDS
        hooked = "webhook" in error.message.casefold()
        log.warning("polling_blocked_by_webhook" if hooked else "polling_conflict")

    async def _take(self, update: dict[str, Any]) -> bool:
        """Return whether an update was stored, or dropped because it cannot be read."""
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
