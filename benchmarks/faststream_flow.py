"""The same journey on FastStream: a manager and eight roles on Redis Streams, no guarantees.

Each role is a subscriber with a consumer group that publishes back to the manager; nothing is
journaled, ordered, recovered or checked.
"""

import asyncio
import json
import logging
import sys

from faststream.redis import RedisBroker, StreamSub

from benchmarks.idle_agents import WRITES
from benchmarks.measuring import TEXT, Figures, measured

ROLES = [role.value for role in WRITES]


def build(url: str, waiting: dict[str, "asyncio.Future[None]"]) -> RedisBroker:
    """Return a broker with its subscribers."""
    broker = RedisBroker(url, logger=logging.getLogger("silent"), max_connections=2000)

    def sub(name: str) -> StreamSub:
        return StreamSub(name, group="workers", consumer="bench", max_records=64, last_id=">")

    @broker.subscriber(stream=sub("manager"), max_workers=64)
    async def manage(message: dict[str, object]) -> None:
        step = int(str(message["step"]))
        if step == len(ROLES):
            waiting.pop(str(message["name"])).set_result(None)
            return
        await broker.publish({**message, "step": step + 1}, stream=ROLES[step])

    def add(role: str) -> None:
        writes = WRITES_BY_NAME[role]

        @broker.subscriber(stream=sub(role), max_workers=64)
        async def work(message: dict[str, object]) -> None:
            await broker.publish({**message, **writes}, stream="manager")

    for role in ROLES:
        add(role)
    return broker


WRITES_BY_NAME = {role.value: writes for role, writes in WRITES.items()}


async def figures(url: str) -> Figures:
    """Return what was measured."""
    logging.getLogger("silent").setLevel(logging.CRITICAL)
    waiting: dict[str, asyncio.Future[None]] = {}
    broker = build(url, waiting)

    async def ask(name: str) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting[name] = done
        await broker.publish({"name": name, "text": TEXT, "step": 0}, stream="manager")
        await done

    await broker.start()
    try:
        return await measured(ask)
    finally:
        await broker.stop()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(figures(sys.argv[1])).fields()))
