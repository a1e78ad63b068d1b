"""Answers very many questions while workers come and go: Redis holds no more than before."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.endurance.askers import PATIENCE_SECONDS, TEXT, desk_of
from benchmarks.endurance.crew import AGAIN, READY, Crew, Workers
from benchmarks.endurance.told import Check, Told
from benchmarks.server import private_redis
from broker.connecting import connect
from broker.keys import GROUP, SHARDS, stream_key
from broker.redis_broker import RedisBroker
from envelope.role import Role
from gateway.desk import Message

WORKERS = 2
KILL_EVERY = 10
"""Each so-manieth restart is a SIGKILL, the others are SIGTERM."""
LEASE_SECONDS = 3.0
SETTLED_SECONDS = 60.0
STEP_SECONDS = 0.3
CLOSE_TO = 1.05
MORE_CONSUMERS = 10


@dataclass(frozen=True, slots=True)
class Bounded:
    """How many questions and restarts; `open` questions travel at once, records live for `ttl`.

    `warm`: questions before the baseline. What is made once is made by then, such as Redis' own
    histogram of how long each command takes.
    """

    questions: int = 1_000_000
    restarts: int = 1_000
    open: int = 128
    ttl_seconds: float = 15.0
    deadline_seconds: float = 120.0
    warm: int = 2000


@dataclass(frozen=True, slots=True)
class Holds:
    """What Redis holds."""

    memory: int
    keys: int
    consumers: int
    without_end: tuple[str, ...]


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

    async def reached(self, answered: int) -> None:
        """Wait until so many are answered."""
        async with self.changed:
            await self.changed.wait_for(lambda: self.answered >= answered)


async def run(wanted: Bounded) -> Told:
    """Return what was measured; prints how far it is."""
    with private_redis() as url:
        crew = Crew(url, lease_seconds=LEASE_SECONDS, ttl_seconds=wanted.ttl_seconds)
        client: Any = connect(url)
        await client.mset({AGAIN: 0, READY: 0})
        numbers = itertools.count()
        try:
            warm = Progress()
            await _worked(
                crew,
                client,
                replace(wanted, questions=wanted.warm, restarts=2 * KILL_EVERY),
                numbers,
                warm,
            )
            await _settled(client, wanted)
            before = await _settled(client, wanted)
            print(f"baseline: {before}", flush=True)
            progress = Progress()
            await _worked(crew, client, wanted, numbers, progress)
            after = await _settled(client, wanted)
            again = int(await client.get(AGAIN) or 0)
        finally:
            await client.aclose()
    return _told(wanted, before, after, progress, again)


async def _worked(
    crew: Crew, client: Any, wanted: Bounded, numbers: Iterator[int], progress: Progress
) -> None:
    """Answer so many questions with so many restarts; at the end nobody is connected any more."""
    await client.set(READY, 0)
    workers, broker = Workers(crew), crew.broker()
    try:
        for _ in range(WORKERS):
            await workers.start()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_watch(client, progress, began))
            restarting = tasks.create_task(_restart(workers, wanted, progress))
            await _answered(broker, numbers, wanted, progress)
            progress.seconds = time.perf_counter() - began
            await restarting
            watching.cancel()
        progress.consumers = (await _holds(client)).consumers
    finally:
        await workers.close()
        await broker.close()


async def _answered(
    broker: RedisBroker, numbers: Iterator[int], wanted: Bounded, progress: Progress
) -> None:
    """Ask so many questions, so many at once, and wait for each answer."""
    desk = desk_of(broker, "endurance", wanted.deadline_seconds)
    patience = wanted.deadline_seconds + PATIENCE_SECONDS
    left = iter(range(wanted.questions))

    async def ask() -> None:
        for _ in left:
            number = next(numbers)
            message = Message(TEXT, f"talk-{number}", f"message-{number}")
            await desk.submit(message)
            reply = await broker.outcome(desk.question(message), block_seconds=patience)
            progress.outcomes[str(reply["outcome"]) if reply is not None else "none"] += 1
            await progress.count()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(wanted.open):
            tasks.create_task(ask())


async def _restart(workers: Workers, wanted: Bounded, progress: Progress) -> None:
    """Restart the oldest worker each time a share of the questions is answered."""
    for number in range(1, wanted.restarts + 1):
        await progress.reached(number * wanted.questions // (wanted.restarts + 1))
        await workers.replace_oldest(kill=number % KILL_EVERY == 0)
        progress.restarts = number


async def _watch(client: Any, progress: Progress, began: float) -> None:
    while True:
        held = await _holds(client)
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


async def _settled(client: Any, wanted: Bounded) -> Holds:
    """Wait until what has a time to live is gone, at most a minute longer; return what is left."""
    until = time.monotonic() + wanted.deadline_seconds + wanted.ttl_seconds + SETTLED_SECONDS
    held = await _holds(client)
    same = 0
    while time.monotonic() < until and same < 5:
        await asyncio.sleep(STEP_SECONDS)
        now = await _holds(client)
        mortal = now.keys - len(await _without_end(client)) if now.keys < 1000 else now.keys
        quiet = mortal <= 2 and abs(now.memory - held.memory) < 20_000
        same = same + 1 if quiet else 0
        held = now
    await client.execute_command("MEMORY", "PURGE")
    memory = []
    for _ in range(5):
        memory.append((await _holds(client)).memory)
        await asyncio.sleep(STEP_SECONDS)
    return Holds(
        sorted(memory)[2], held.keys, held.consumers, tuple(sorted(await _without_end(client)))
    )


async def _holds(client: Any) -> Holds:
    memory = int((await client.info("memory"))["used_memory"])
    consumers = 0
    for role in Role:
        for group in await _groups(client, stream_key(role.value, 0)):
            consumers = max(consumers, int(group["consumers"]))
    return Holds(memory, await client.dbsize(), consumers, ())


async def _groups(client: Any, stream: str) -> list[dict[str, Any]]:
    if not await client.exists(stream):
        return []
    found = await client.xinfo_groups(stream)
    return [group for group in found if group["name"] == GROUP.encode()]


async def _without_end(client: Any) -> list[str]:
    keys = [key async for key in client.scan_iter(count=1000)]
    ends = [await client.pttl(key) for key in keys]
    return [key.decode() for key, end in zip(keys, ends, strict=True) if end == -1]


def _told(wanted: Bounded, before: Holds, after: Holds, progress: Progress, again: int) -> Told:
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
        "memory before (kB)": before.memory / 1e3,
        "memory after (kB)": after.memory / 1e3,
        "most memory (MB)": progress.most_memory / 1e6,
        "keys before": before.keys,
        "keys after": after.keys,
        "most consumers of one role": progress.most_consumers,
        "times to live (s)": wanted.ttl_seconds,
    }
    lost = wanted.questions - progress.outcomes["answered"]
    return Told(
        "Bounded memory",
        figures,
        [
            Check(
                "memory, after against before", after.memory / before.memory, "at most", CLOSE_TO
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
