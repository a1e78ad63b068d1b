"""Reads what Redis and the processors do, once in a while."""

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.speed.endurance.worker_fleet import Workers
from broker.transport.connect import connect

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Gauges:
    """What was read; `memory` are bytes that Redis uses, in order of time.

    `processors` is the share of all processors that the run used, `machine` what every program did.
    """

    memory: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    processors: float = 0.0
    machine: float = 0.0

    def growth(self) -> float:
        """Return the memory of the last third of the time over that of the middle one."""
        third = len(self.memory) // 3
        if third == 0:
            return 1.0
        return statistics.mean(self.memory[-third:]) / statistics.mean(
            self.memory[third : 2 * third]
        )


@asynccontextmanager
async def watching(url: str, workers: Workers, *, every: float = 0.5) -> AsyncIterator[Gauges]:
    """Fill the gauges while inside."""
    gauges = Gauges()
    client: Any = connect(url)
    info = await client.info()
    began, pids = time.perf_counter(), [int(info["process_id"]), os.getpid()]
    pids += [process.pid for process in workers.running if process.pid is not None]
    used, (busy, all_ticks) = _read_used_seconds(pids), _machine()

    async def read() -> None:
        while True:
            info = await client.info()
            gauges.memory.append(int(info["used_memory"]))
            gauges.keys.append(await client.dbsize())
            await asyncio.sleep(every)

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(read())
        yield gauges
        reading.cancel()
    seconds = (time.perf_counter() - began) * (os.cpu_count() or 1)
    gauges.processors = (_read_used_seconds(pids) - used) / seconds
    busy_then, all_then = _machine()
    gauges.machine = (busy_then - busy) / max(1, all_then - all_ticks)
    await client.aclose()


def _machine() -> tuple[int, int]:
    """Return the ticks in which the processors did something, and all ticks; 0 where unknown."""
    try:
        line = Path("/proc/stat").read_text("ascii").splitlines()[0]
    except OSError:
        return 0, 0
    ticks = [int(value) for value in line.split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def _read_used_seconds(pids: Sequence[int]) -> float:
    """Return the processor seconds that these processes used so far."""
    ticks = 0
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text("ascii")
        except OSError:
            continue
        # The name in brackets may hold spaces; what follows it does not.
        values = stat.rpartition(")")[2].split()
        ticks += int(values[11]) + int(values[12])
    return ticks / TICKS
