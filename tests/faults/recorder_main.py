"""A process that records: `python -m tests.faults.recorder_main REDIS DATABASE LEASE_SECONDS`."""

import asyncio
import sys

from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from envelope.question import Question
from records.recorder import Recorder, RecordRules
from records.store import connect_store

RULES = RecordRules(days={("acme", "desk"): 30.0})


async def find_nothing(_question: Question) -> None:
    """Return no rating: the suite gives none."""


async def record(redis_url: str, database: str, lease_seconds: float) -> None:
    """Record until killed."""
    broker = RedisBroker(connect(redis_url), lease_seconds=lease_seconds)
    store = connect_store(database)
    recorder = Recorder(broker.ended, broker.replies, store, RULES, find_nothing, pause_seconds=0.1)
    await recorder.run()


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1], sys.argv[2], float(sys.argv[3])))
