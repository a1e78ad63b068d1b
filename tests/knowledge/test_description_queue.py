import asyncio
from dataclasses import dataclass, field

import pytest

from knowledge.description_queue import (
    WAITING_PER_CALL,
    DescriptionQueue,
    open_queue,
)
from knowledge.documents.page import Page
from knowledge.rule_descriptions import Description
from tests.support.waiting import wait_until

PAGE = Page(name="page", title="Page", source="page.md", blocks=())


@dataclass
class GatedDescriber:
    """Describes a page, named by its language, when the page's gate is open."""

    concurrency: int
    name: str = "gated"
    running: list[str] = field(default_factory=list)
    most_running: int = 0
    gates: dict[str, asyncio.Event] = field(default_factory=dict)

    async def describe(self, page: Page, language: str, by_rules: Description) -> Description:
        self.running.append(language)
        self.most_running = max(self.most_running, len(self.running))
        await self.gates.setdefault(language, asyncio.Event()).wait()
        self.running.remove(language)
        if language == "broken":
            raise ValueError("out of order")
        return Description(language)

    def open(self, *names: str) -> None:
        for name in names:
            self.gates.setdefault(name, asyncio.Event()).set()


@dataclass
class Delivered:
    """The names of the delivered pages, in order."""

    names: list[str] = field(default_factory=list)

    async def deliver(self, description: Description) -> None:
        self.names.append(description.description)


async def put(queue: DescriptionQueue, delivered: Delivered, *names: str) -> None:
    for name in names:
        await queue.put(PAGE, name, Description(), delivered.deliver)


async def test_pages_are_described_at_once_up_to_the_limit_and_delivered_in_order() -> None:
    describer, delivered = GatedDescriber(2), Delivered()

    async with open_queue(describer) as queue:
        await put(queue, delivered, "a", "b", "c")
        await wait_until(lambda: describer.running == ["a", "b"])
        describer.open("b")
        await wait_until(lambda: describer.running == ["a", "c"])
        assert delivered.names == []
        describer.open("a", "c")
        await queue.finish()

    assert delivered.names == ["a", "b", "c"]
    assert describer.most_running == 2


async def test_a_queue_that_is_full_waits_for_its_first_page() -> None:
    describer, delivered = GatedDescriber(2), Delivered()
    names = [str(number) for number in range(2 * WAITING_PER_CALL + 1)]

    async with open_queue(describer) as queue, asyncio.TaskGroup() as tasks:
        filling = tasks.create_task(put(queue, delivered, *names))
        describer.open(*names[1:])
        await wait_until(lambda: describer.running == ["0"])
        assert not filling.done()
        describer.open("0")
        await filling
        await queue.finish()

    assert delivered.names == names


async def test_without_concurrency_a_page_is_delivered_before_the_next_is_read() -> None:
    describer, delivered = GatedDescriber(1), Delivered()
    describer.open("a")

    async with open_queue(describer) as queue:
        await put(queue, delivered, "a")
        assert delivered.names == ["a"]


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_an_error_of_the_describer_or_of_the_ingestion_is_raised_as_it_is(
    concurrency: int,
) -> None:
    describer, delivered = GatedDescriber(concurrency), Delivered()
    describer.open("broken")

    async def describe_broken() -> None:
        async with open_queue(describer) as queue:
            await put(queue, delivered, "broken")
            await queue.finish()

    async def fail_meanwhile() -> None:
        async with open_queue(GatedDescriber(2)) as queue:
            await put(queue, delivered, "a")
            raise KeyError("ingestion")

    with pytest.raises(ValueError, match="out of order"):
        await describe_broken()
    with pytest.raises(KeyError, match="ingestion"):
        await fail_meanwhile()

    assert delivered.names == []
