"""Answers very many questions while workers come and go: Redis holds no more than before."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.speed.endurance.results import Check, RunResult
from benchmarks.speed.endurance.worker_fleet import (
    AGAIN,
    PATIENCE_SECONDS,
    READY,
    TEXT,
    WorkerFleet,
    Workers,
    desk_of,
)
from benchmarks.speed.redis_server import private_redis
from broker.keys import GROUP, SHARDS, stream_key
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from envelope.role import Role
from gateway.desk import Message

WORKERS = 2
KILL_EVERY = 10
"""Each so-manieth restart is a SIGKILL, the others are SIGTERM."""
LEASE_SECONDS = 3.0
SETTLED_SECONDS = 60.0
CLOSE_TO = 1.05
LONG_TEXT = " ".join([TEXT] * 60)
"""Every second question is so long that Redis keeps its frame apart from what travels."""
MORE_CONSUMERS = 10


@dataclass(frozen=True, slots=True)
class Bounded:
    """How many questions and restarts; `open` questions travel at once, records live for `ttl`.

    `warm`: questions before the baseline. What is made once is made by then, such as streams and
    scripts.
    """

    questions: int = 1_000_000
    restarts: int = 1_000
    open: int = 128
    ttl_seconds: float = 15.0
    deadline_seconds: float = 120.0
    warm: int = 2000

    @property
    def patience_seconds(self) -> float:
        """How long it may take until everything with a time to live is gone."""
        return self.deadline_seconds + self.ttl_seconds + SETTLED_SECONDS


@dataclass
class Progress:
    """How far the run is."""

    answered: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    most_memory: int = 0
    most_consumers: int = 0
    restarts: int = 0
    seconds: float = 0.0
    consumers: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def count(self) -> None:
        """Count one more answer."""
        self.answered += 1
        async with self.changed:
            self.changed.notify_all()

    async def is_reached(self, answered: int) -> None:
        """Wait until that many are answered."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.answered >= answered)


async def run(wanted: Bounded) -> RunResult:
    """Return what was measured; prints how far it is."""
    with private_redis() as url:
        fleet = WorkerFleet(url, lease_seconds=LEASE_SECONDS, ttl_seconds=wanted.ttl_seconds)
        client: Any = connect(url)
        await client.mset({AGAIN: 0, READY: 0})
        numbers = itertools.count()
        try:
            warm = Progress()
            await _run_workers(
                fleet,
                client,
                replace(wanted, questions=wanted.warm, restarts=2 * KILL_EVERY),
                numbers,
                warm,
            )
            before = await wait_until_settled(client, wanted.patience_seconds)
            print(f"baseline: {before}", flush=True)
            progress = Progress()
            await _run_workers(fleet, client, wanted, numbers, progress)
            after = await wait_until_settled(client, wanted.patience_seconds)
            print(f"afterwards: {after}", flush=True)
            again = int(await client.get(AGAIN) or 0)
        finally:
            await client.aclose()
    return _make_result(wanted, before, after, progress, again)


async def _run_workers(
    fleet: WorkerFleet, client: Any, wanted: Bounded, numbers: Iterator[int], progress: Progress
) -> None:
    """Answer that many questions with that many restarts; at the end nobody is connected."""
    await client.set(READY, 0)
    workers, broker = Workers(fleet), fleet.broker()
    try:
        for _ in range(WORKERS):
            await workers.start()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_watch(client, progress, began))
            restarting = tasks.create_task(_restart(workers, wanted, progress))
            await _answer_many(broker, numbers, wanted, progress)
            progress.seconds = time.perf_counter() - began
            await restarting
            watching.cancel()
        progress.consumers = (await glance(client)).consumers
    finally:
        await workers.close()
        await broker.close()


async def _answer_many(
    broker: RedisBroker, numbers: Iterator[int], wanted: Bounded, progress: Progress
) -> None:
    """Ask that many questions, that many at once, and wait for each answer."""
    desk = desk_of(broker, "endurance", wanted.deadline_seconds)
    patience = wanted.deadline_seconds + PATIENCE_SECONDS
    left = iter(range(wanted.questions))

    async def ask() -> None:
        for _ in left:
            number = next(numbers)
            text = LONG_TEXT if number % 2 else TEXT
            message = Message(text, f"talk-{number}", f"message-{number}")
            await desk.submit(message)
            reply = await broker.replies.await_reply(desk.question(message), block_seconds=patience)
            progress.outcomes[str(reply["outcome"]) if reply is not None else "none"] += 1
            await progress.count()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(wanted.open):
            tasks.create_task(ask())


async def _restart(workers: Workers, wanted: Bounded, progress: Progress) -> None:
    """Restart the oldest worker each time a share of the questions is answered."""
    for number in range(1, wanted.restarts + 1):
        await progress.is_reached(number * wanted.questions // (wanted.restarts + 1))
        await workers.replace_oldest(kill=number % KILL_EVERY == 0)
        progress.restarts = number


async def _watch(client: Any, progress: Progress, began: float) -> None:
    while True:
        held = await glance(client)
        progress.most_memory = max(progress.most_memory, held.memory)
        progress.most_consumers = max(progress.most_consumers, held.consumers)
        seconds = time.perf_counter() - began
        print(
            f"{seconds:.0f} s: {progress.answered} answered ({progress.answered / seconds:.0f}/s), "
            f"{progress.restarts} restarts, {held.memory / 1e6:.1f} MB, {held.keys} keys, "
            f"{held.consumers} consumers of one role, {dict(progress.outcomes)}",
            flush=True,
        )
        await asyncio.sleep(5)


async def without_end(client: Any) -> list[str]:
    """Return the keys that have no time to live."""
    keys = [key async for key in client.scan_iter(count=MANY)]
    ends = [await client.pttl(key) for key in keys]
    return [key.decode() for key, end in zip(keys, ends, strict=True) if end == -1]


@dataclass(frozen=True, slots=True)
class Holds:
    """What Redis holds; bytes.

    `memory` is all that it uses, without its `diagnostics`: the slow log (of 128 commands) and how
    long each command took. It keeps these of whatever it is asked, however little that is, so they
    are emptied before one looks. `bare` is what it used when it started; of the rest, `of_keys`
    is that of all keys, `scripts` and `clients` are those of the scripts and connections it knows.
    """

    memory: int
    keys: int
    consumers: int
    without_end: tuple[str, ...] = ()
    diagnostics: int = 0
    bare: int = 0
    of_keys: int = 0
    scripts: int = 0
    clients: int = 0


def _make_result(
    wanted: Bounded, before: Holds, after: Holds, progress: Progress, again: int
) -> RunResult:
    lasting = [
        key
        for key in after.without_end
        if ":stream:" not in key and key not in (SHARDS, READY, AGAIN)
    ]
    figures: dict[str, object] = {
        "questions": wanted.questions,
        "worker restarts": progress.restarts,
        "of these SIGKILL": progress.restarts // KILL_EVERY,
        "questions a second": wanted.questions / progress.seconds,
        "outcomes": dict(progress.outcomes),
        "handlers started again": again,
        **_parts(before, after),
        "most memory (MB)": progress.most_memory / 1e6,
        "keys before": before.keys,
        "keys after": after.keys,
        "most consumers of one role": progress.most_consumers,
        "times to live (s)": wanted.ttl_seconds,
    }
    lost = wanted.questions - progress.outcomes["answered"]
    return RunResult(
        "Bounded memory",
        figures,
        [
            Check(
                "memory, after against before", after.memory / before.memory, "at most", CLOSE_TO
            ),
            Check(
                "memory of the keys, after against before",
                after.of_keys / before.of_keys,
                "at most",
                CLOSE_TO,
            ),
            Check("keys, after against before", after.keys / before.keys, "at most", CLOSE_TO),
            Check(
                "consumers beyond the living",
                progress.consumers - WORKERS,
                "at most",
                MORE_CONSUMERS,
            ),
            Check("keys without end that are no streams", len(lasting), "at most", 0),
            Check("questions without an answer", lost, "at most", 0),
        ],
    )


def _parts(before: Holds, after: Holds) -> dict[str, object]:
    """Return where the memory is, before and after."""
    parts = {
        "memory": (before.memory, after.memory),
        "of it the bare server": (before.bare, after.bare),
        "of it the keys": (before.of_keys, after.of_keys),
        "of it the scripts": (before.scripts, after.scripts),
        "of it the connections": (before.clients, after.clients),
        "not in it: slow log and times of commands, emptied before each look": (
            before.diagnostics,
            after.diagnostics,
        ),
    }
    return {
        f"{what} (kB)": f"{first / 1e3:.1f} before, {last / 1e3:.1f} after"
        for what, (first, last) in parts.items()
    }


STEP_SECONDS = 0.1
LOOKS = 5
MANY = 1000
"""That many keys are not looked at one by one: most of them still have a time to live."""
CLOSE_BYTES = 20_000
"""Two looks that differ by less saw the same; buffers of clients come and go."""
FEW = 2
"""Keys that may still have a time to live when all is quiet: what outlives a record by a moment."""


async def glance(client: Any) -> Holds:
    """Return what costs nothing to know, while everything goes on; diagnostics included."""
    memory = int((await client.info("memory"))["used_memory"])
    consumers = 0
    for role in Role:
        for group in await _groups(client, stream_key(role.value, 0)):
            consumers = max(consumers, int(group["consumers"]))
    return Holds(memory, await client.dbsize(), consumers)


async def wait_until_settled(client: Any, seconds: float) -> Holds:
    """Wait, at most so long, until what has a time to live is gone; return what is left."""
    await _quiet(client, seconds)
    held, with_diagnostics = await glance(client), await _memory(client)
    await client.execute_command("MEMORY", "PURGE")
    await client.execute_command("SLOWLOG", "RESET")
    await client.execute_command("CONFIG", "RESETSTAT")
    memory = await _memory(client)
    stats = await _stats(client)
    keys = [key async for key in client.scan_iter(count=MANY)]
    sizes = [int(await client.memory_usage(key, samples=0) or 0) for key in keys]
    return Holds(
        memory,
        held.keys,
        held.consumers,
        tuple(sorted(await without_end(client))),
        with_diagnostics - memory,
        int(stats["startup.allocated"]),
        sum(sizes),
        int(stats["lua.caches"]),
        int(stats["clients.normal"]),
    )


async def _quiet(client: Any, seconds: float) -> None:
    until = time.monotonic() + seconds
    held, same = await glance(client), 0
    while time.monotonic() < until and same < LOOKS:
        await asyncio.sleep(STEP_SECONDS)
        now = await glance(client)
        mortal = now.keys - len(await without_end(client)) if now.keys < MANY else now.keys
        quiet = mortal <= FEW and abs(now.memory - held.memory) < CLOSE_BYTES
        same = same + 1 if quiet else 0
        held = now


async def _memory(client: Any) -> int:
    """Return the middle of a few looks."""
    found = []
    for _ in range(LOOKS):
        found.append(int((await client.info("memory"))["used_memory"]))
        await asyncio.sleep(STEP_SECONDS)
    return sorted(found)[LOOKS // 2]


async def _stats(client: Any) -> dict[str, Any]:
    statistics = await client.execute_command("MEMORY", "STATS")
    pairs = (
        statistics.items()
        if isinstance(statistics, dict)
        else zip(statistics[::2], statistics[1::2], strict=True)
    )
    return {name.decode() if isinstance(name, bytes) else name: value for name, value in pairs}


async def _groups(client: Any, stream: str) -> list[dict[str, Any]]:
    if not await client.exists(stream):
        return []
    found = await client.xinfo_groups(stream)
    return [group for group in found if group["name"] == GROUP.encode()]
