"""Redis goes away in every way there is: a real worker goes on as soon as it is back."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from gateway.desk import Desk, Message
from tests.faults.installed_worker import ROLES, InstalledWorker
from tests.faults.proxy import Proxy
from tests.faults.servers import Server
from tests.support.app_harness import refdesk
from tests.support.waiting import wait_until, within
from tests.time_limits import measure_slowness

pytestmark = [pytest.mark.redis, pytest.mark.slow]

AGAIN_SECONDS = 2.0
"""How soon work goes on once Redis answers."""
SLACK_SECONDS = 10.0
"""For a busy machine."""
HALF_OPEN_SLACK_SECONDS = 10.0
"""A crowded machine once noticed only when the blocking read ended, after nine seconds."""
RED_SECONDS = 15.0
LINES = 5
"""At most that many complaints a second."""
PARTITION_SECONDS = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server")) as made:
        yield made


@pytest.fixture(scope="module")
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(server.path) as made:
        yield made


@pytest.fixture(scope="module")
def employee(proxy: Proxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstalledWorker]:
    """One worker that lives through all of it."""
    with InstalledWorker(tmp_path_factory.mktemp("employee"), proxy.url) as made:
        yield made
        assert made.lives
        assert made.dismiss() == 0


@pytest.fixture
async def client(server: Server, employee: InstalledWorker) -> AsyncIterator[Any]:
    """A connection to Redis without a proxy."""
    made: Any = connect(server.url)
    yield made
    await made.aclose()


NUMBERS = count(1)


async def time_answer(client: Any) -> float:
    """Ask something, and return how many seconds the answer took."""
    broker = RedisBroker(client)
    desk = Desk(
        broker.producer, broker.replies, tenant="default", assistant="default", channel="test",
        deadline_seconds=30.0, words=lambda _key, _language: "sorry",
    )  # fmt: skip
    number = next(NUMBERS)
    started = time.monotonic()
    reply = await desk.ask(Message("/language", f"c{number}", f"m{number}", "language", ("de",)))
    assert reply["outcome"] == "answered"
    return time.monotonic() - started


@asynccontextmanager
async def check_calm_logging(employee: InstalledWorker) -> AsyncIterator[None]:
    """Do something bad while inside: work goes on at once after it, and nobody is shouted at."""
    before = len(employee.complaints())
    yield
    assert employee.most_complaints_in_a_second() <= LINES
    assert len(employee.complaints()) - before < 100


async def goes_on(client: Any) -> None:
    assert await time_answer(client) < AGAIN_SECONDS + SLACK_SECONDS * measure_slowness()


async def test_redis_is_killed_and_started_again(
    server: Server, employee: InstalledWorker, client: Any
) -> None:
    await time_answer(client)
    async with check_calm_logging(employee):
        server.kill()
        await wait_until(collect_complaint(employee))
        await asyncio.to_thread(server.start)
        await goes_on(client)


async def flush(_proxy: Proxy, client: Any) -> None:
    await client.flushall()


async def destroy_groups(_proxy: Proxy, client: Any) -> None:
    for role in ROLES:
        await client.xgroup_destroy(f"rd:{{0}}:stream:{role}", "workers")


async def delete_streams(_proxy: Proxy, client: Any) -> None:
    for role in ROLES:
        await client.delete(f"rd:{{0}}:stream:{role}")


async def forget_scripts(_proxy: Proxy, client: Any) -> None:
    await client.script_flush()


async def reset_lines(proxy: Proxy, _client: Any) -> None:
    proxy.reset()


@pytest.mark.parametrize(
    "fault", [flush, destroy_groups, delete_streams, forget_scripts, reset_lines]
)
async def test_work_goes_on_after_redis_lost_what_it_knew(
    fault: Callable[[Proxy, Any], Awaitable[None]],
    proxy: Proxy,
    employee: InstalledWorker,
    client: Any,
) -> None:
    await time_answer(client)

    async with check_calm_logging(employee):
        await fault(proxy, client)
        await goes_on(client)


async def test_every_line_is_half_open(
    proxy: Proxy, employee: InstalledWorker, client: Any
) -> None:
    await time_answer(client)
    async with check_calm_logging(employee):
        assert proxy.freeze() > 1
        seconds = await time_answer(client)
        assert seconds < AGAIN_SECONDS + HALF_OPEN_SLACK_SECONDS * measure_slowness()


@pytest.mark.timeout(120)
async def test_a_partition_turns_readiness_red_and_work_goes_on_after_it(
    proxy: Proxy, employee: InstalledWorker, client: Any
) -> None:
    await time_answer(client)
    assert employee.unready() == ""
    async with check_calm_logging(employee):
        proxy.part()
        async with within(RED_SECONDS + SLACK_SECONDS):
            await wait_until(lambda: is_red(employee), patience_seconds=2 * RED_SECONDS)
        proxy.heal()
        await goes_on(client)
        await wait_until(lambda: _green(employee))


@pytest.mark.long
@pytest.mark.timeout(180)
async def test_a_partition_of_a_minute_is_logged_calmly_and_ends(
    proxy: Proxy, employee: InstalledWorker, client: Any
) -> None:
    await time_answer(client)
    async with check_calm_logging(employee):
        proxy.part()
        await asyncio.sleep(PARTITION_SECONDS)  # noqa: TID251 - the partition lasts this long
        proxy.heal()
        await goes_on(client)


@pytest.mark.long
@pytest.mark.timeout(120)
async def test_a_server_that_stands_still_is_noticed_and_work_goes_on_after_it(
    server: Server, employee: InstalledWorker, client: Any
) -> None:
    await time_answer(client)
    async with check_calm_logging(employee):
        server.stop()
        try:
            await wait_until(lambda: is_red(employee), patience_seconds=2 * RED_SECONDS)
        finally:
            server.go_on()
        await goes_on(client)
        await wait_until(lambda: _green(employee), patience_seconds=RED_SECONDS)


def test_a_start_with_a_server_that_evicts_says_why(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with Server(tmp_path / "server", "--maxmemory-policy", "allkeys-lru") as server:
        ended = refdesk(tmp_path, "worker", "--role", "command", redis_url=server.url)

    assert ended.returncode == 1
    assert "expected maxmemory-policy noeviction" in ended.stderr
    assert "found allkeys-lru" in ended.stderr
    assert ended.stderr.count("\n") == 1


def collect_complaint(employee: InstalledWorker) -> Callable[[], Any]:
    before = len(employee.complaints())

    async def look() -> bool:
        return len(employee.complaints()) > before

    return look


async def is_red(employee: InstalledWorker) -> bool:
    return "no response from Redis" in await asyncio.to_thread(employee.unready)


async def _green(employee: InstalledWorker) -> bool:
    return not await asyncio.to_thread(employee.unready)
