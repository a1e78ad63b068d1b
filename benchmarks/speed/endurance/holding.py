"""Reports what a Redis holds, and which of it belongs to the broker."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from broker.keys import GROUP, stream_key
from envelope.role import Role

STEP_SECONDS = 0.1
LOOKS = 5
MANY = 1000
"""That many keys are not looked at one by one: most of them still have a time to live."""
CLOSE_BYTES = 20_000
"""Two looks that differ by less saw the same; buffers of clients come and go."""
FEW = 2
"""Keys that may still have a time to live when all is quiet: what outlives a record by a moment."""


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


async def without_end(client: Any) -> list[str]:
    """Return the keys that have no time to live."""
    keys = [key async for key in client.scan_iter(count=MANY)]
    ends = [await client.pttl(key) for key in keys]
    return [key.decode() for key, end in zip(keys, ends, strict=True) if end == -1]


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
