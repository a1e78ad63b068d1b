"""Describes pages while others are read, a limited number at the same time, and returns them in
order.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from knowledge.documents.page import Page
from knowledge.rule_descriptions import Description

WAITING_PER_CALL = 4
"""The pages in the queue for each call at once: others go on while one takes long."""

Deliver = Callable[[Description], Awaitable[None]]
"""Receives the description of a page when it is the page's turn."""


class Describer(Protocol):
    """Describes a page; `concurrency` is the number of pages at once.

    `by_rules` is the description by rules. `name` is the name and version of the method; a new name
    causes new descriptions of all pages. A describer that uses a model handles its failures by the
    rules of `knowledge.rule_descriptions`.
    """

    name: str
    concurrency: int

    async def describe(self, page: Page, language: str, by_rules: Description) -> Description: ...


class DescriptionQueue:
    """The pages that are being described; a describer of one page at a time needs no queue."""

    def __init__(self, describer: Describer, tasks: asyncio.TaskGroup) -> None:
        self._describer = describer
        self._tasks = tasks
        self._slots = asyncio.Semaphore(describer.concurrency)
        self._most = WAITING_PER_CALL * describer.concurrency
        self._waiting: deque[_Waiting] = deque()

    async def put(self, page: Page, language: str, by_rules: Description, deliver: Deliver) -> None:
        """Have a page described; returns when there is room, and delivers those that are ready."""
        if self._describer.concurrency == 1:
            await deliver(await self._describer.describe(page, language, by_rules))
            return
        task = self._tasks.create_task(self._describe(page, language, by_rules))
        self._waiting.append(_Waiting(task, deliver))
        while self._waiting and (self._waiting[0].task.done() or len(self._waiting) > self._most):
            await self._deliver_next()

    async def finish(self) -> None:
        """Deliver all descriptions."""
        while self._waiting:
            await self._deliver_next()

    async def _describe(self, page: Page, language: str, by_rules: Description) -> Description:
        async with self._slots:
            return await self._describer.describe(page, language, by_rules)

    async def _deliver_next(self) -> None:
        waiting = self._waiting.popleft()
        await waiting.deliver(await waiting.task)


@dataclass(frozen=True, slots=True)
class _Waiting:
    task: asyncio.Task[Description]
    deliver: Deliver


@asynccontextmanager
async def open_queue(describer: Describer) -> AsyncIterator[DescriptionQueue]:
    """Provide a queue; its calls end with the block. Raises what the block or a call raised."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield DescriptionQueue(describer, tasks)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
