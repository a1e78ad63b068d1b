"""The process that asks; `python -m benchmarks.speed.branch_failures.asking URL` tells the end."""

import asyncio
import sys

from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from gateway.desk import Desk, Message

LONGEST_SECONDS = 120.0


async def ask(url: str) -> str:
    """Ask one question, and return its outcome."""
    broker = RedisBroker(connect(url))
    desk = Desk(
        broker.producer,
        broker.replies,
        tenant="bench",
        assistant="bench",
        channel="bench",
        deadline_seconds=LONGEST_SECONDS,
        words=lambda _key, language: language,
    )
    reply = await desk.ask(Message("how", "one", "one"))
    await broker.close()
    return str(reply["outcome"])


if __name__ == "__main__":
    sys.stdout.write(f"{asyncio.run(ask(sys.argv[1]))}\n")
