"""Measures what records cost: `python -m benchmarks.speed.records`.

One process answers a crowd of questions, with and without a second process that records them into
SQLite, in turns. Printed are the medians: questions a second, and the processor time that the
answering process and Redis use for a question, which a busy machine disturbs less.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from benchmarks.speed.payload import payloads
from benchmarks.speed.redis_server import Server, private_server
from benchmarks.speed.runner import AT_ONCE, processes
from benchmarks.speed.systems.port import SYSTEMS, Setting
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from envelope.question import Question
from records.recorder import Recorder, RecordRules
from records.store import Selection, connect_store

FILE = "records.sqlite3"
WARM_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class Cost:
    """Questions and records a second; processor milliseconds of a question, where it is answered
    and in Redis.
    """

    rate: float
    recorded: float
    client_ms: float
    redis_ms: float


def measure(payload: str, seconds: float, *, records: bool) -> Cost:
    """Answer a crowd for some seconds."""
    refdesk = next(system for system in SYSTEMS if system.name == "refdesk")
    with private_server() as server:
        setting = Setting(server.url, server.url, payloads()[payload], str(server.folder))
        with _recording(server, is_on=records), processes(refdesk, setting) as (one,):
            one.request("crowd", at_once=AT_ONCE, seconds=WARM_SECONDS)
            one.receive()
            recorded = _count_records(server)
            used, began = server.processor_seconds(), time.perf_counter()
            one.request("window", seconds=seconds)
            found = one.receive()
            recorded = (_count_records(server) - recorded) / (time.perf_counter() - began)
            redis_share = (server.processor_seconds() - used) / (time.perf_counter() - began)
    rate = found["answered"] / found["seconds"]
    client_share = found["processor_seconds"] / found["seconds"]
    return Cost(rate, recorded, 1000 * client_share / rate, 1000 * redis_share / rate)


def _count_records(server: Server) -> float:
    place = server.folder / FILE
    if not place.exists():
        return 0.0
    with closing(connect_store(f"sqlite:///{place}")) as store:
        return float(len(store.read_figures(Selection())))


@contextmanager
def _recording(server: Server, *, is_on: bool) -> Iterator[None]:
    if not is_on:
        yield
        return
    command = [sys.executable, "-m", "benchmarks.speed.records", "--record", server.url]
    process = subprocess.Popen([*command, str(server.folder)])
    try:
        yield
        if process.poll() is not None:
            raise RuntimeError(f"expected a process that records, it ended: {process.returncode}")
    finally:
        process.kill()
        process.wait()


async def _record(url: str, folder: str) -> None:
    """Record until killed."""
    broker = RedisBroker(connect(url))
    store = connect_store(f"sqlite:///{folder}/{FILE}")

    async def find_nothing(_question: Question) -> None:
        return None

    rules = RecordRules(days={("bench", "bench"): 30.0})
    await Recorder(broker.ended, broker.replies, store, rules, find_nothing).run()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure in turns, and print the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.records")
    parser.add_argument("--turns", type=int, default=7, help="of each kind (default 7)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of a turn (default 3)")
    parser.add_argument("--payload", choices=payloads(), default="4 kB")
    parser.add_argument("--record", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.record:
        asyncio.run(_record(*chosen.record))
        return 0
    found: dict[bool, list[Cost]] = {False: [], True: []}
    for turn in range(chosen.turns * 2):
        records = turn % 2 == 1
        found[records].append(measure(chosen.payload, chosen.seconds, records=records))
    for records, name in ((False, "without records"), (True, "with records")):
        costs = found[records]
        rate = statistics.median(cost.rate for cost in costs)
        client = statistics.median(cost.client_ms for cost in costs)
        redis = statistics.median(cost.redis_ms for cost in costs)
        recorded = statistics.median(cost.recorded for cost in costs)
        print(
            f"{name}: {rate:.0f} questions/s, {recorded:.0f} records/s, {client:.3f} ms client, "
            f"{redis:.3f} ms Redis"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
