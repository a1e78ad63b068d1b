import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest

from knowledge.ordered_tasks import OrderedTasks, open_tasks
from tests.support.waiting import wait_until


@dataclass
class GatedWork:
    """Pieces of work by their names: each ends when its gate is open."""

    running: list[str] = field(default_factory=list)
    most_running: int = 0
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    delivered: list[str] = field(default_factory=list)

    async def run(self, name: str) -> str:
        self.running.append(name)
        self.most_running = max(self.most_running, len(self.running))
        await self.gates.setdefault(name, asyncio.Event()).wait()
        self.running.remove(name)
        if name == "broken":
            raise ValueError("out of order")
        return name

    def open(self, *names: str) -> None:
        for name in names:
            self.gates.setdefault(name, asyncio.Event()).set()

    async def deliver(self, name: str) -> None:
        self.delivered.append(name)

    async def put(self, ordered: OrderedTasks[str], *names: str) -> None:
        for name in names:
            await ordered.put(partial(self.run, name), self.deliver)


@asynccontextmanager
async def opened(at_once: int, most: int = 8) -> AsyncIterator[OrderedTasks[str]]:
    async with open_tasks() as tasks:
        yield OrderedTasks(tasks, at_once=at_once, most=most)


async def test_work_runs_at_once_up_to_the_limit_and_is_delivered_in_order() -> None:
    work = GatedWork()

    async with opened(2) as ordered:
        await work.put(ordered, "a", "b", "c")
        await wait_until(lambda: work.running == ["a", "b"])
        work.open("b")
        await wait_until(lambda: work.running == ["a", "c"])
        assert work.delivered == []
        work.open("a", "c")
        await ordered.finish()

    assert work.delivered == ["a", "b", "c"]
    assert work.most_running == 2


async def test_work_that_has_no_room_waits_for_the_first_one() -> None:
    work = GatedWork()
    names = [str(number) for number in range(9)]

    async with opened(2, most=8) as ordered, asyncio.TaskGroup() as tasks:
        filling = tasks.create_task(work.put(ordered, *names))
        work.open(*names[1:])
        await wait_until(lambda: work.running == ["0"])
        assert not filling.done()
        work.open("0")
        await filling
        await ordered.finish()

    assert work.delivered == names


async def test_without_concurrency_work_is_delivered_before_the_next_begins() -> None:
    work = GatedWork()
    work.open("a")

    async with opened(1) as ordered:
        await work.put(ordered, "a")
        assert work.delivered == ["a"]


@pytest.mark.parametrize("at_once", [1, 2])
async def test_an_error_of_work_or_of_the_block_is_raised_as_it_is(at_once: int) -> None:
    work = GatedWork()
    work.open("broken")

    async def run_broken() -> None:
        async with opened(at_once) as ordered:
            await work.put(ordered, "broken")
            await ordered.finish()

    async def fail_meanwhile() -> None:
        async with opened(2) as ordered:
            await work.put(ordered, "a")
            raise KeyError("ingestion")

    with pytest.raises(ValueError, match="out of order"):
        await run_broken()
    with pytest.raises(KeyError, match="ingestion"):
        await fail_meanwhile()

    assert work.delivered == []
