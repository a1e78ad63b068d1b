"""Measures recovery, due times, deadlines and what poison does to others: one table.

`python -m tests.faults.timing [recovery] [due] [deadlines] [poison] [sweep]`, with real processes
on a separate redis-server; without a name, everything (some minutes).
"""

import asyncio
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from broker.keys import shard_keys
from broker.maintenance.loop import MOVES
from broker.redis_broker import RedisBroker
from tests.conftest import start_redis
from tests.faults.timing import scripted_process
from tests.faults.timing.process_group import ProcessGroup, fleet
from tests.support.waiting import wait_until

SEED = 2026
KILLS = 60
LEASE_SECONDS = 2.0
PENDING = 1_000_000


def say(line: str) -> None:
    """Print a line at once: a run takes minutes."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def row(name: str, figures: Sequence[float], unit: str, factor: float = 1.0) -> None:
    """Print one row of the table."""
    cuts = statistics.quantiles(figures, n=100, method="inclusive")
    median, near, most = (value * factor for value in (cuts[49], cuts[98], max(figures)))
    say(f"| {name} | {len(figures)} | {median:.2f} | {near:.2f} | {most:.2f} | {unit} |")


async def recovery(url: str) -> None:
    """From `kill -9` on an idle system to the start elsewhere, in leases."""
    chance = random.Random(SEED)
    figures = []
    async with fleet(url, LEASE_SECONDS, "worker", "worker", "worker") as system:
        for _ in range(KILLS):
            await system.ask("wait")
            started = await system.start()
            await asyncio.sleep(chance.uniform(0.0, LEASE_SECONDS))
            killed_at = await scripted_process.redis_time(system.client)
            await system.kill(started["pid"])
            again = await system.start()
            figures.append((again["at"] - killed_at) / LEASE_SECONDS)
            await system.hire()
    row("recovery after kill -9, idle", figures, "leases")


async def due(url: str) -> None:
    """From the due time of a delay to the start of its handler."""
    chance = random.Random(SEED)
    figures = []
    async with fleet(url, LEASE_SECONDS, "worker", "worker", "timekeeper") as system:
        for _ in range(25):
            wanted = [chance.uniform(0.05, 2.0) for _ in range(8)]
            asked = [await system.ask(f"later {seconds}") for seconds in wanted]
            times: dict[str, list[float]] = {}
            for start in [await system.start() for _ in range(2 * len(asked))]:
                times.setdefault(start["message"], []).append(start["at"])
            for one, seconds in zip(asked, wanted, strict=True):
                first, second = times[one.message_id]
                figures.append(second - first - seconds)
    row("start after its due time", figures, "ms", 1000)


async def deadlines(url: str) -> None:
    """From a deadline to the outcome, with the workers stopped and one process alive."""
    figures: list[float] = []
    async with fleet(url, LEASE_SECONDS, "worker", "worker", "timekeeper") as system:
        stopped = list(system.members)[:2]
        for _ in range(15):
            asked = [await system.ask("wait", deadline_seconds=1.0) for _ in range(10)]
            behind = [
                await system.ask("work", deadline_seconds=1.0, conversation=one.conversation_id)
                for one in asked
            ]
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            figures += [await system.lateness(one) for one in (*asked, *behind)]
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
    row("outcome after its deadline, workers stopped", figures, "ms", 1000)


async def poison(url: str) -> None:
    """The waits of others, with poison and without, in turns, with processes replaced."""
    figures: dict[str, list[float]] = {"without": [], "beside": [], "beside a kill without": []}
    for _ in range(2):
        for kind, found in figures.items():
            found += await _latencies(url, kind)
    for kind, found in figures.items():
        row(f"a question {kind} poison", found, "ms", 1000)
    beside, killed, without = (
        _near(figures[kind]) for kind in ("beside", "beside a kill without", "without")
    )
    say(f"p99 beside poison: {beside / without:.3f} of that without")
    say(f"p99 beside poison: {beside / killed:.3f} of that beside a process that is killed once")


def _near(figures: Sequence[float]) -> float:
    return statistics.quantiles(figures, n=100, method="inclusive")[98]


async def _latencies(url: str, kind: str) -> list[float]:
    async with fleet(url, LEASE_SECONDS, *["worker"] * 3) as system, asyncio.TaskGroup() as tasks:
        replacing = tasks.create_task(_replace(system))
        asked, began = [], time.monotonic()
        for number in range(800):
            await asyncio.sleep(max(0.0, began + number / 50 - time.monotonic()))
            asked.append(await system.ask("work"))
            if kind == "beside" and number == 200:
                await system.ask("kill")
            if kind == "beside a kill without" and number == 200:
                os.kill(next(iter(system.members)), signal.SIGKILL)
        ends = [await system.end(one) for one in asked]
        starts = [(await system.broker.replies.read_journal(one))[0].at for one in asked]
        figures = [end.at - start for end, start in zip(ends, starts, strict=True)]
        letters = await system.broker.admin.list_dead_letters()
        replacing.cancel()
        again = sum(seconds > LEASE_SECONDS / 2 for seconds in figures)
        say(
            f"{kind} poison: {again} took half a lease or more, buried {_describe_letters(letters)}"
        )
        return figures


async def _replace(system: ProcessGroup) -> None:
    while True:
        await wait_until(system.replace_the_dead, patience_seconds=None)


def _describe_letters(letters: Sequence[Any]) -> list[tuple[str, int]]:
    return [(letter.reason, letter.attempts) for letter in letters]


async def sweep(url: str) -> None:
    """The time of Redis for one sweep among a million entries that living workers hold."""
    system = ProcessGroup(url, 3600.0)
    await system.client.flushall()
    await system.broker.prepare([scripted_process.ROLE.value])
    stream = "rd:{0}:stream:search"
    for _ in range(PENDING // 10_000):
        pipeline = system.client.pipeline(transaction=False)
        for _ in range(10_000):
            pipeline.xadd(stream, {"q": "a/b/c/d", "f": "x", "d": "0", "l": "", "n": "0"})
        pipeline.execute_command(
            "XREADGROUP", "GROUP", "workers", "alive", "COUNT", 10_000, "STREAMS", stream, ">"
        )
        await pipeline.execute()
    figures = await _sweeps(system.broker, system.client)
    row(f"a sweep beside {PENDING} pending", figures, "ms", 1000)
    # With a short lease all of it is what a dead worker held; nobody else is to sweep.
    await system.client.delete(shard_keys(0).duty)
    figures = await _sweeps(scripted_process.broker_of(url, 0.001), system.client)
    row(f"a sweep that gives back {MOVES} of {PENDING}", figures, "ms", 1000)
    await system.client.flushall()
    await system.broker.close()
    await system.client.aclose()


async def _sweeps(broker: RedisBroker, client: Any, number: int = 200) -> list[float]:
    figures = []
    for _ in range(number):
        await client.config_resetstat()
        await broker.maintenance.rescuer.sweep()
        stats = await client.info("commandstats")
        scripts = [stats.get(f"cmdstat_{name}", {}).get("usec", 0) for name in ("evalsha", "eval")]
        figures.append(sum(scripts) / 1e6)
    return figures


PARTS: dict[str, Callable[[str], Coroutine[Any, Any, None]]] = {
    "recovery": recovery,
    "due": due,
    "deadlines": deadlines,
    "poison": poison,
    "sweep": sweep,
}


def main(names: Sequence[str]) -> None:
    """Measure the named parts."""
    say("| what | times | p50 | p99 | most | unit |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.sock"
        server = start_redis(path)
        try:
            for name in names or PARTS:
                asyncio.run(PARTS[name](f"unix://{path}"))
        finally:
            server.terminate()
            server.wait(10)


if __name__ == "__main__":
    main(sys.argv[1:])
