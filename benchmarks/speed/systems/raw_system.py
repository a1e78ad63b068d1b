"""The raw limit: only reads and writes entries in batches with redis-py.

There are two loops, so that one prepares a batch while the other waits. Each loop reads up to
`AT_ONCE` entries of each of the nine streams in one `XREADGROUP`, then acknowledges, deletes and
adds entries in one pipeline: two round trips for a batch. The content of the question is passed on
without being parsed, next to its name and step.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from benchmarks.speed.payload import ROLES
from benchmarks.speed.systems.port import Ask, Setting, Watch
from broker.transport.connect import connect

GROUP = "workers"
AT_ONCE = 256
LOOPS = 2
BLOCK_MS = 2000
STREAMS = ("manager", *ROLES)


@asynccontextmanager
async def harness(setting: Setting, watch: Watch) -> AsyncIterator[Ask]:
    """Open the system; it connects as Refdesk does."""
    client = connect(setting.client_url)
    encoded = _encode(setting)

    async def ask(name: str) -> None:
        await client.xadd("manager", {"name": name, "step": 0, "message": encoded(0)})

    worker = connect(setting.worker_url)
    await _group(worker)
    async with asyncio.TaskGroup() as tasks:
        loops = [tasks.create_task(_work(worker, watch, encoded)) for _ in range(LOOPS)]
        yield ask
        for loop in loops:
            loop.cancel()
    await worker.aclose()
    await client.aclose()


def _encode(setting: Setting) -> Callable[[int], bytes]:
    """Return a function that returns the encoded question after a number of roles have written."""
    message = setting.payload.opening("-")
    frames = [json.dumps(message).encode()]
    for role in ROLES:
        message |= setting.payload.writes[role]
        frames.append(json.dumps(message).encode())
    return frames.__getitem__


async def _group(client: Redis) -> None:
    for stream in STREAMS:
        try:
            await client.xgroup_create(stream, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise


async def _work(client: Redis, watch: Watch, encoded: Callable[[int], bytes]) -> None:
    consumer = f"worker-{os.getpid()}-{id(asyncio.current_task())}"
    streams: dict[Any, Any] = dict.fromkeys(STREAMS, ">")
    while True:
        taken: Any = await client.xreadgroup(
            GROUP, consumer, streams, count=AT_ONCE, block=BLOCK_MS
        )
        if not taken:
            continue
        pipeline = client.pipeline(transaction=False)
        for stream, entries in taken:
            ids = [entry_id for entry_id, _ in entries]
            for _, fields in entries:
                to, sent = _send(stream, fields, watch, encoded)
                if to:
                    pipeline.xadd(to, sent)
            pipeline.xack(stream, GROUP, *ids)
            pipeline.xdel(stream, *ids)
        await pipeline.execute()


def _send(
    stream: bytes, fields: dict[bytes, bytes], watch: Watch, encoded: Callable[[int], bytes]
) -> tuple[str, Any]:
    """Return the destination and the new state of an entry; no destination once it is finished."""
    name, step = fields[b"name"], int(fields[b"step"])
    if stream != b"manager":
        watch.worked()
        return "manager", {"name": name, "step": step, "message": encoded(step)}
    if step == 0:
        watch.started(name.decode())
    if step == len(ROLES):
        watch.finished(name.decode())
        return "", {}
    return ROLES[step], {"name": name, "step": step + 1, "message": fields[b"message"]}
