"""Idle roles wait with one read, and miss nothing."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker.context import BrokerContext
from broker.group_reader import GroupReader, IdleReader
from broker.keys import stream_key
from broker.settlement import BrokerLimits
from broker.transport.connect import connect
from tests.support.waiting import wait_until

ROLES = [f"role-{number}" for number in range(8)]
LONG_SECONDS = 0.3

pytestmark = [pytest.mark.redis, pytest.mark.slow]


class IdleHarness:
    """Eight roles of one process, each of which reads until cancelled and keeps what it got."""

    def __init__(self, client: Any) -> None:
        limits = BrokerLimits(60_000, 10, 3, 10, 10)
        self.space = BrokerContext(client, 1, limits, 60_000)
        self.reader = GroupReader(self.space)
        self.idle = IdleReader(self.space, self.reader, long_seconds=LONG_SECONDS)
        self.client = client
        self.got: dict[str, list[bytes]] = {role: [] for role in ROLES}
        self.reads = 0

    async def work(self, role: str) -> None:
        while True:
            read, clocks = await self.idle.read(role, "w1", 4, LONG_SECONDS)
            self.reads += 1
            for stream, entries in read:
                assert stream.decode() == stream_key(role, 0)
                assert clocks[stream] > 0
                self.got[role] += [entry_id for entry_id, _ in entries]

    async def add(self, role: str) -> bytes:
        entry_id: bytes = await self.client.xadd(stream_key(role, 0), {"q": "x"})
        return entry_id

    async def commands(self) -> int:
        stats = await self.client.info("commandstats")
        return int(stats["cmdstat_xreadgroup"]["calls"])


@pytest.fixture
async def desk(redis_url: str) -> AsyncIterator[IdleHarness]:
    client = connect(redis_url)
    await client.flushall()
    desk = IdleHarness(client)
    for role in ROLES:
        await desk.reader.make_groups(role)
    async with asyncio.TaskGroup() as tasks:
        working = [tasks.create_task(desk.work(role)) for role in ROLES]
        yield desk
        for task in working:
            task.cancel()
    await client.aclose()


async def after(desk: IdleHarness, reads: int) -> None:
    """Wait until the roles have come back so often."""
    aim = desk.reads + reads

    async def has_reached() -> bool:
        return desk.reads >= aim

    await wait_until(has_reached)


async def test_idle_roles_share_one_read(desk: IdleHarness) -> None:
    await after(desk, 3 * len(ROLES))

    before = await desk.commands()
    await after(desk, 4 * len(ROLES))

    # Four rounds of eight roles; separate reads would be 32 and more.
    assert await desk.commands() - before <= 12


async def test_concurrent_waiters_each_receive_only_their_own_reply(
    desk: IdleHarness,
) -> None:
    await after(desk, 3 * len(ROLES))
    added = {role: [await desk.add(role) for _ in range(3)] for role in ROLES[:5]}

    async def all_there() -> bool:
        return sum(map(len, desk.got.values())) == 15

    await wait_until(all_there)

    assert desk.got == {role: added.get(role, []) for role in ROLES}


async def test_a_role_that_had_work_waits_with_the_others_again(desk: IdleHarness) -> None:
    await after(desk, 3 * len(ROLES))
    await desk.add(ROLES[0])
    await after(desk, 4 * len(ROLES))

    before = await desk.commands()
    await after(desk, 4 * len(ROLES))

    assert await desk.commands() - before <= 12


async def test_a_group_that_is_gone_is_made_again_while_all_wait(desk: IdleHarness) -> None:
    await after(desk, 3 * len(ROLES))
    await desk.client.flushall()
    added = await desk.add(ROLES[3])

    async def there() -> bool:
        return desk.got[ROLES[3]] == [added]

    assert await wait_until(there)
