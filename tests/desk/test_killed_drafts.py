"""A worker that is killed while it drafts an answer: another one drafts and answers it again."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from broker.transport.connect import connect
from deploy.assembly.runtime import ROLES, connect_runtime, desk
from tests.desk.test_answers_on_the_wire import FIRST, asks_the_server, make_judgement
from tests.desk.test_streamed_answers import SECOND, StreamedQuestion, make_stream
from tests.support.app_harness import AppHarness, command, environment, settings_of
from tests.support.model_server import ModelServer
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.redis, pytest.mark.timeout(180)]
LEASE_SECONDS = 4.0


@asynccontextmanager
async def run_worker(data: Path, **settings: object) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker process of all roles while inside; it is killed, never asked to stop."""
    variables = {
        name: json.dumps(value) if isinstance(value, dict) else str(value)
        for name, value in settings.items()
    }
    process = await asyncio.create_subprocess_exec(
        *command("worker", "--role", *ROLES),
        cwd=data,
        env=environment(data, pythonunbuffered="1", **variables),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert b"working as" in await process.stdout.readline()
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
async def empty_redis(redis_url: str) -> str:
    """A Redis without a key."""
    client = connect(redis_url)
    await client.flushall()
    await client.aclose()
    return redis_url


def find_grandchildren(pid: int) -> list[int]:
    """Return the processes that the fork server of a worker has started."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            parents[int(stat.parent.name)] = int(fields[1])
    return [child for child, parent in parents.items() if parents.get(parent) == pid]


async def test_a_worker_killed_in_a_draft_loses_and_doubles_nothing(
    library: Path, empty_redis: str, server: ModelServer
) -> None:
    held, held_again = asyncio.Event(), asyncio.Event()
    server.will_send(
        make_stream(f"{SECOND} [1] {FIRST} [1]", gate=("choose New", held)),
        make_stream(f"{FIRST} [1] {SECOND} [1]", gate=(SECOND[:8], held_again)),
        make_judgement(),
    )
    shared = {**asks_the_server(server), "redis_url": empty_redis, "lease_seconds": LEASE_SECONDS}
    settings = settings_of(library, **shared)
    own = {"domain_name": settings.domain_name, "domain_scope": settings.domain_scope}

    async with connect_runtime(settings) as post, asyncio.TaskGroup() as tasks:
        client = post.endpoint.client()
        asked = StreamedQuestion(AppHarness(settings, post.broker, desk(post, "test"), client))
        following = tasks.create_task(asked.follow())
        async with run_worker(library, **shared, **own) as killed:
            await wait_until(lambda: bool(asked.drafts))
            killed.kill()
            await killed.wait()
        # Only the worker that was killed waited for it.
        held.set()
        async with run_worker(library, **shared, **own) as second_worker:
            await wait_until(lambda: asked.drafts[-1] == f"{FIRST} [1]")
            isolated = find_grandchildren(second_worker.pid)
            held_again.set()
            text = await following
        await client.aclose()

    # The second run was a suspect, so that its draft came from a separate process.
    assert isolated
    assert [entry.kind for entry in asked.entries].count("finished") == 1
    assert text == f"{FIRST} [1] {SECOND} [1]"
    drafts = [event.data for event in asked.events if event.name == "draft"]
    _, second = dict.fromkeys(data["draft"] for data in drafts)
    # The draft of the second run has a new name, and begins at its first character.
    assert asked.drafts[0] == f"{SECOND} [1]"
    assert asked.drafts[-1] == text
    assert next(data["offset"] for data in drafts if data["draft"] == second) == 0
    runs = [entry.fields["role"] for entry in asked.entries if entry.kind == "agent_run"]
    assert runs.count("response") == runs.count("quality") == 1
    assert [request.method for request in server.received] == ["POST"] * 3
