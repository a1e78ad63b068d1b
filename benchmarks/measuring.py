"""How a flow is measured: one question alone, then many at once."""

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

ALONE = 100
MANY = 3000
OPEN = 256
TEXT = "How do I configure routing rules? " + "x" * 4000
"""A question of about 4 kB."""

Ask = Callable[[str], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured of one system."""

    questions_a_second: float
    alone_p50_ms: float
    alone_p99_ms: float
    processor_share: float

    def fields(self) -> dict[str, float]:
        """Return the figures by name."""
        return asdict(self)


async def measured(ask: Ask, *, alone: int = ALONE, many: int = MANY) -> Figures:
    """Return the figures of a system that answers questions by `ask(name)`."""
    # As many at once as later: connections are made before the clock runs.
    await _many(ask, 2 * OPEN, "warm")
    times = sorted([await _timed(ask, f"alone-{number}") for number in range(alone)])
    began, used = time.perf_counter(), _processor_seconds()
    await _many(ask, many, "many")
    seconds = time.perf_counter() - began
    return Figures(
        questions_a_second=many / seconds,
        alone_p50_ms=times[alone // 2] * 1000,
        alone_p99_ms=times[int(alone * 0.99) - 1] * 1000,
        processor_share=(_processor_seconds() - used) / seconds,
    )


async def _timed(ask: Ask, name: str) -> float:
    began = time.perf_counter()
    await ask(name)
    return time.perf_counter() - began


async def _many(ask: Ask, many: int, kind: str) -> None:
    names = iter(range(many))

    async def client() -> None:
        for number in names:
            await ask(f"{kind}-{number}")

    async with asyncio.TaskGroup() as tasks:
        for _ in range(OPEN):
            tasks.create_task(client())


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
