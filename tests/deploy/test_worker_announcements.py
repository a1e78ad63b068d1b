"""A worker process announces that it lives, and a Redis that is away does not harm it."""

import asyncio

import pytest

from deploy.assembly.worker_announcements import announcing
from memory.errors import MemoryUnavailableError
from tests.support.waiting import wait_until


class Board:
    """Where a process is announced, which refuses while it is `away`."""

    def __init__(self) -> None:
        self.announcements: list[str] = []
        self.refused = 0
        self.away = False

    async def announce(self) -> None:
        self._take("lives")

    async def leave(self) -> None:
        self._take("left")

    def _take(self, what: str) -> None:
        if self.away:
            self.refused += 1
            raise MemoryUnavailableError("Redis does not answer")
        self.announcements.append(what)

    async def announced(self) -> bool:
        return len(self.announcements) >= 2

    async def was_refused(self) -> bool:
        return self.refused >= 2


async def test_it_is_announced_again_and_again_and_ends_with_its_leave() -> None:
    board = Board()

    async with announcing(board, every_seconds=0.001):
        await wait_until(board.announced)

    assert (set(board.announcements[:-1]), board.announcements[-1]) == ({"lives"}, "left")


async def test_redis_away_ends_nothing_and_the_next_announcement_comes() -> None:
    board = Board()
    board.away = True

    async with announcing(board, every_seconds=0.001):
        await wait_until(board.was_refused)
        board.away = False
        await wait_until(board.announced)
        board.away = True


async def test_who_is_cancelled_or_fails_leaves_too() -> None:
    failed, cancelled = Board(), Board()

    async def wait() -> None:
        async with announcing(cancelled, every_seconds=0.001):
            await asyncio.Event().wait()

    async def fail() -> None:
        async with announcing(failed, every_seconds=0.001):
            await wait_until(failed.announced)
            raise ValueError("broken")

    with pytest.raises(ExceptionGroup):
        await fail()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(wait())
        await wait_until(cancelled.announced)
        task.cancel()

    assert (failed.announcements[-1], cancelled.announcements[-1]) == ("left", "left")
