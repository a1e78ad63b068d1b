"""Paces what a platform is asked, over all processes: turns are waited for before it refuses."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from gateway.chat.errors import LaterError, SkippedError

SOON_SECONDS = 3.0
"""What need not be shown is left out when its turn would come later."""
LATE_SECONDS = 600.0
"""What must be shown is left to a later delivery when its turn would come later."""

MISSED = 3
"""So many turns may be missed; then the call is made."""


class Turns(Protocol):
    """Gives turns by name, over all processes of a channel."""

    async def turn(
        self, name: str, *, every_seconds: float, at_once: int, patience_seconds: float
    ) -> float | None:
        """Reserve the next turn and return the seconds to wait for it; None: more than patience."""
        ...

    async def hold(self, name: str, *, every_seconds: float, at_once: int, seconds: float) -> None:
        """Give no turn for so many seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls a minute, the first `at_once` without waiting; `each_place`: for every place.

    No minute sees more than `per_minute + at_once`: together they are to stay below the limit. What
    is wanted soon waits `soon_seconds` for its turn; 0: it is called at once or not at all.
    """

    per_minute: float
    at_once: int = 1
    each_place: bool = False
    soon_seconds: float = SOON_SECONDS

    @property
    def every_seconds(self) -> float:
        """The seconds between calls, when there are many."""
        return 60.0 / self.per_minute


class Pacer:
    """Has every call wait for its turn."""

    def __init__(self, turns: Turns, rates: Mapping[str, Rate]) -> None:
        self._turns = turns
        self._rates = rates

    @asynccontextmanager
    async def turn(self, call: str, place: str = "", *, soon: bool = False) -> AsyncIterator[None]:
        """Wait for a turn, be inside when it came; all wait longer when the platform says so.

        Raises `SkippedError` when it is wanted `soon` and would not be, `LaterError` when its turn
        would come too late for anybody to wait.
        """
        rate = self._rates[call]
        name = f"{call}:{place}" if rate.each_place else call
        for _ in range(MISSED):
            if await self._came(name, rate, soon=soon):
                break
        try:
            yield
        except LaterError as error:
            if error.told:
                await self._turns.hold(
                    name,
                    every_seconds=rate.every_seconds,
                    at_once=rate.at_once,
                    seconds=error.seconds,
                )
                if soon and error.seconds > rate.soon_seconds:
                    raise SkippedError(f"{name} is to wait {error.seconds:g} s") from error
            raise

    async def _came(self, name: str, rate: Rate, *, soon: bool) -> bool:
        """Wait for a turn; False when a busy process woke so late that the turns after it came too.

        They would all be taken together: then each asks for another.
        """
        asked = time.monotonic()
        seconds = await self._turns.turn(
            name,
            every_seconds=rate.every_seconds,
            at_once=rate.at_once,
            patience_seconds=rate.soon_seconds if soon else LATE_SECONDS,
        )
        if seconds is None:
            if soon:
                raise SkippedError(f"{name} would come too late to be worth it")
            raise LaterError(f"{name} is asked too often", LATE_SECONDS, told=True)
        await asyncio.sleep(seconds)
        return time.monotonic() - asked - seconds < rate.every_seconds * rate.at_once
