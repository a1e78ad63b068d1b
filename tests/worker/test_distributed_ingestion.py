"""Documents that are given to other processes, on a Redis that is played in the process."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from broker.lease_renewer import InLoopRenewal
from broker.values import Delivery
from envelope.envelope import decode
from envelope.role import Role
from knowledge.index.listing import ListedDocument
from knowledge.ingestion import ingest
from knowledge.ingestion_report import IngestionResult, PlainReport
from knowledge.isolation.reader_pool import ReaderPool
from memory.ingestion_exchange import RedisExchange, RedisKeptAnswers
from tests.knowledge.conftest import reader
from tests.knowledge.documents.conftest import Desk, LengthEmbedder, MemoryIndex, desk
from tests.support.broker_harness import BrokerHarness, play_broker
from tests.support.waiting import wait_until, within
from worker.distributed_ingestion import (
    DistributedReading,
    DistributedWriting,
    Orders,
    ReadHandler,
    WriteHandler,
)
from worker.port import Handler, SilentMeter
from worker.process import WorkerProcess, WorkerSpec

__all__ = ["desk", "reader"]
ASSISTANT = ("acme", "docs")


class ListingIndex(MemoryIndex):
    """Lists some of its documents."""

    async def list_documents(
        self, document_ids: Sequence[str] | None = None
    ) -> list[ListedDocument]:
        listed = await super().list_documents()
        return [item for item in listed if document_ids is None or item.id in document_ids]


class SizedEmbedder(LengthEmbedder):
    """Says how long its vectors are, as those of vendors do."""

    dimensions = 1


class Pods:
    """The handlers of processes that read and write, on one Redis."""

    def __init__(self, harness: BrokerHarness, desk: Desk) -> None:
        desk.index, desk.embedder = ListingIndex(), SizedEmbedder()
        self.harness, self.desk = harness, desk
        self.exchange = RedisExchange(harness.client)

    def make_handlers(self) -> list[Handler]:
        knowledge: Any = SimpleNamespace(index=self.desk.index, embedder=self.desk.embedder)

        async def follow() -> None:
            pass

        knowledge.of = lambda *_, own: knowledge
        knowledge.follow = follow
        return [
            ReadHandler(ReaderPool([self.desk.reader]), self.exchange),
            WriteHandler(
                ASSISTANT,
                knowledge,
                lambda opened: opened.embedder,
                self.exchange,
                RedisKeptAnswers(self.harness.client),
            ),
        ]

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Have a process work for both roles."""
        # No lease ends on a busy machine.
        make = partial(self.harness.make, lease_seconds=600.0)
        specs = [WorkerSpec(handler, 8) for handler in self.make_handlers()]
        renewal = InLoopRenewal(make, lease_seconds=600.0)
        process = WorkerProcess(make(), specs, renewal=renewal, meter=SilentMeter())
        async with process.running():
            yield

    async def ingest(self) -> IngestionResult:
        """Ingest the folder of the desk as the owner of the ingestion."""
        orders = Orders(self.harness.broker, self.exchange, ASSISTANT)
        async with within():
            return await ingest(
                [self.desk.folder],
                self.desk.index,
                self.desk.embedder,
                self.desk.describer,
                self.desk.readers,
                PlainReport(self.desk.lines.append),
                language_of=lambda _: "en",
                reading=DistributedReading(orders),
                writing=DistributedWriting(orders),
            )

    async def take(self, role: Role) -> Delivery:
        """Take an entry as a process that never ends it."""
        (taken,) = await wait_until(partial(self.harness.take_all, role.value, "killed"))
        delivery: Delivery = taken
        return delivery

    async def list_keys(self) -> list[bytes]:
        """Return what is on its way."""
        sent: list[bytes] = await self.harness.client.keys("rd:parcel:*")
        paid: list[bytes] = await self.harness.client.keys("rd:paid:*")
        return sent + paid


@pytest.fixture
async def pods(desk: Desk) -> AsyncIterator[Pods]:
    async with play_broker() as harness:
        await harness.broker.prepare([Role.READ.value, Role.WRITE.value])
        yield Pods(harness, desk)


async def test_an_ingestion_that_others_do_ends_as_one_that_is_done_alone(pods: Pods) -> None:
    for number in range(5):
        pods.desk.write(f"{number}.md", f"# Page {number}\n\nText {number}.\n")
    pods.desk.write("again.md", "---\nid: docs/1\n---\n# Again\n\nText.\n")
    pods.desk.write("broken.pdf", b"%PDF-1.7 nothing")
    alone = await pods.desk.ingest()
    pods.desk.index = ListingIndex()

    async with pods.working():
        together = await pods.ingest()

    def describe(result: IngestionResult) -> list[object]:
        return [result.added, result.chunks, result.failed, result.skipped, result.warned]

    assert describe(together) == describe(alone)
    assert await pods.list_keys() == []


async def test_a_document_that_was_written_by_a_killed_process_is_not_paid_for_again(
    pods: Pods,
) -> None:
    pods.desk.write("a.md", "# A\n\nText.\n")
    reading, writing = pods.make_handlers()
    async with asyncio.TaskGroup() as tasks:
        ingesting = tasks.create_task(pods.ingest())
        read = await pods.take(Role.READ)
        settlement = await reading.handle(read, decode(read.whole()))
        await pods.harness.settle(read, settlement)
        written = await pods.take(Role.WRITE)
        await writing.handle(written, decode(written.whole()))

        again = await pods.harness.reclaim(Role.WRITE.value, "other")
        settlement = await writing.handle(again, decode(again.whole()))
        await pods.harness.settle(again, settlement)
        result = await ingesting

    assert result.added == 1
    assert pods.desk.index.puts == ["docs/a"]
    assert pods.desk.embedder.batches == [1]


async def test_a_document_that_comes_back_within_a_minute_is_written_again(pods: Pods) -> None:
    first, second = "# A\n\nOne.\n", "# A\n\nTwo.\n"
    async with pods.working():
        for text in (first, second, first):
            pods.desk.write("a.md", text)
            await pods.ingest()

    assert pods.desk.index.puts == ["docs/a"] * 3
    assert "One." in pods.desk.index.documents["docs/a"].content


async def test_a_stopped_ingestion_withdraws_what_nobody_has_begun(pods: Pods) -> None:
    for number in range(3):
        pods.desk.write(f"{number}.md", f"# Page {number}\n\nText {number}.\n")
    stream = f"rd:{{0}}:stream:{Role.READ.value}"

    async def count() -> int:
        return int(await pods.harness.client.xlen(stream))

    async def are_all_given() -> bool:
        return await count() == 3

    async with asyncio.TaskGroup() as tasks:
        ingesting = tasks.create_task(pods.ingest())
        await wait_until(are_all_given)
        ingesting.cancel()

    assert await pods.list_keys() == []
    async with pods.working():

        async def is_idle() -> bool:
            return await count() == 0

        await wait_until(is_idle)
    assert pods.desk.index.puts == []
