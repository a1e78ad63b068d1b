"""Runs tasks concurrently, up to a limit, and delivers their results in order."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

T = TypeVar("T")
Work = Callable[[], Awaitable[T]]
Deliver = Callable[[T], Awaitable[None]]
"""Receives a result when it is its turn."""


class OrderedTasks(Generic[T]):
    """Tasks of which at most `at_once` run and `most` wait for their turn.

    If only one task may run at a time, its result is delivered before the next one starts.
    """

    def __init__(self, tasks: asyncio.TaskGroup, *, at_once: int, most: int) -> None:
        self._tasks = tasks
        self._at_once = at_once
        self._slots = asyncio.Semaphore(at_once)
        self._most = most
        self._waiting: deque[tuple[asyncio.Task[T], Deliver[T]]] = deque()

    async def put(self, work: Work[T], deliver: Deliver[T]) -> None:
        """Start a task; returns once there is room, and delivers the results that are ready."""
        if self._at_once == 1:
            await deliver(await work())
            return
        self._waiting.append((self._tasks.create_task(self._run(work)), deliver))
        while self._waiting and (self._waiting[0][0].done() or len(self._waiting) > self._most):
            await self._deliver_next()

    async def finish(self) -> None:
        """Deliver all results."""
        while self._waiting:
            await self._deliver_next()

    async def _run(self, work: Work[T]) -> T:
        async with self._slots:
            return await work()

    async def _deliver_next(self) -> None:
        task, deliver = self._waiting.popleft()
        await deliver(await task)


class Room:
    """Limits the total size of the objects inside it; one that exceeds the limit is admitted
    alone.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside = 0
        self._changed = asyncio.Condition()

    async def enter(self, size: int) -> None:
        """Return once there is room for an object of this size."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: not self._inside or self._inside + size <= self._most
            )
            self._inside += size

    async def leave(self, size: int) -> None:
        """Release the room taken by an object."""
        async with self._changed:
            self._inside -= size
            self._changed.notify_all()

    async def wait_until_empty(self) -> None:
        """Return once the room is empty."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._inside)


@asynccontextmanager
async def open_tasks() -> AsyncIterator[asyncio.TaskGroup]:
    """Provide a task group that raises the error of its block or of a task, instead of an exception
    group.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
