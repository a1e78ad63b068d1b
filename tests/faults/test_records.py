"""Recorders and their database are killed while people ask: no record is lost or doubled."""

import asyncio
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker.keys import shard_keys
from broker.result_list import RECORDS
from records.record import Record, make_record
from records.store import RecordStore, RecordsUnavailableError, Selection, connect_store
from tests.faults.deployment import Deployment, open_deployment
from tests.faults.evidence import gather_evidence
from tests.faults.ledger import Evidence
from tests.faults.rounds import Round, hold_round
from tests.support.broker_harness import question
from tests.support.postgres import PostgresServer
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(240)]

LEASE_SECONDS = 0.5
MOST = 10_000


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    with tempfile.TemporaryDirectory(prefix="rd-pg-") as folder:
        server = PostgresServer(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.kill()


class Recorders:
    """Processes that record; one that is killed is replaced."""

    def __init__(self, redis_url: str, database: str, store: RecordStore) -> None:
        self._arguments = (redis_url, database, str(LEASE_SECONDS))
        self._store = store
        self.killed = 0

    @asynccontextmanager
    async def run(self, chance: random.Random, *, kills: bool) -> AsyncIterator[None]:
        """Have two processes record while inside; with `kills` they die again and again."""
        async with asyncio.TaskGroup() as tasks:
            lives = [tasks.create_task(self._live(chance, kills=kills)) for _ in range(2)]
            try:
                yield
            finally:
                for life in lives:
                    life.cancel()

    async def _live(self, chance: random.Random, *, kills: bool) -> None:
        while True:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.faults.recorder_main", *self._arguments,
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            try:
                if kills:
                    # Whatever it does then: it has begun to record.
                    before = await self._count()
                    await wait_until(partial(self._has_more, before), patience_seconds=None)
                async with asyncio.timeout(chance.uniform(0.0, 0.3) if kills else None):
                    await process.wait()
            except TimeoutError:
                self.killed += 1
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()

    async def _has_more(self, before: int) -> bool:
        return await self._count() > before

    async def _count(self) -> int:
        try:
            return len(await asyncio.to_thread(self._store.find, Selection(), limit=MOST))
        except RecordsUnavailableError:
            return 0


async def count_waiting(client: Any) -> int:
    """Return how many messages are not recorded yet."""
    groups = await client.xinfo_groups(shard_keys(0).notices)
    [group] = [group for group in groups if group["name"].decode() == RECORDS]
    return int(group["pending"]) + int(group.get("lag") or 0)


async def is_recorded(harness: Deployment, store: RecordStore, evidence: Evidence) -> bool:
    try:
        result = len(await asyncio.to_thread(store.find, Selection(), limit=MOST))
    except RecordsUnavailableError:
        return False
    return result >= len(list_expected(evidence)) and await count_waiting(harness.client) == 0


def list_expected(evidence: Evidence) -> dict[str, Record]:
    """Return the record of each message that ended, by the journal alone."""
    conversations = {line["name"]: line["conversation"] for line in evidence.lines("accepted")}
    expected = {}
    for name, entries in evidence.journals.items():
        asked = question(name).model_copy(update={"conversation_id": conversations[name]})
        made = make_record(asked, entries)
        if made is not None:
            expected[name] = made
    return expected


@pytest.mark.parametrize("loses_database", [False, True], ids=["database", "no database"])
async def test_kills_of_recorders_and_of_the_database_lose_and_double_no_record(
    folder: Path, seed: int, postgres: PostgresServer, loses_database: bool
) -> None:
    chance, size = random.Random(seed), Round(questions=120, kills=6)
    store = connect_store(postgres.url)
    async with open_deployment(folder) as harness:
        recorders = Recorders(harness.server.url, postgres.url, store)
        async with recorders.run(chance, kills=True), asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(hold_round(harness, size, seed, labels=()))
            if loses_database:
                await wait_until(lambda: has_records(store))
                await asyncio.to_thread(postgres.kill)
            report = await asking
        if loses_database:
            await asyncio.to_thread(postgres.start)
        evidence = await gather_evidence(harness.client, harness.ledger.path)
        async with recorders.run(chance, kills=False):
            await wait_until(lambda: is_recorded(harness, store, evidence))

        assert report.broken == []
        assert report.counts["processes killed"] >= 6
        assert recorders.killed > 0
        results = {record.message_id: record for record in store.find(Selection(), limit=MOST)}
        assert results == list_expected(evidence)
        assert not results.keys() & evidence.forgotten()
    store.close()


def has_records(store: RecordStore) -> bool:
    try:
        return bool(store.find(Selection(), limit=1))
    except RecordsUnavailableError:
        return False
