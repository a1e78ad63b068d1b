"""The parts of a run, each of one system: speed, round trips, recovery."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.speed.harness.counting_proxy import Count, counting_proxy
from benchmarks.speed.harness.process_control import (
    ControlledProcess,
    SilentProcessError,
    processes,
)
from benchmarks.speed.harness.server import Server, private_server
from benchmarks.speed.payload import Payload
from benchmarks.speed.report.figures import Alone, Recovery, Row, Speed, Trips, quantile
from benchmarks.speed.systems.port import Setting, System

AT_ONCE = 200
"""Questions in flight, of each process."""
LEASE_SECONDS = 2.0
SETTLING_SECONDS = 2.0
SPARSE = 50
WARMING = 3
SPARSE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Spans:
    """How long a run looks, in seconds; `alone` is also a number of questions at most."""

    alone: float
    questions: int
    warm: float
    window: float
    idle: float = 0.0
    recovery: float = 0.0
    lanes: int = 1


@contextmanager
def record_error(row: Row) -> Iterator[None]:
    """Keep the error of one system from the others; the table shows it."""
    try:
        yield
    except (SilentProcessError, ValueError) as error:
        row.error = _reason(str(error))
        sys.stderr.write(f"{row.system} failed: {error}\n")


def _reason(error_output: str) -> str:
    """Return the line of a traceback that names the error."""
    lines = [line.strip(" |+-") for line in error_output.splitlines()]
    named = [line for line in lines if "Error" in line.split(":")[0]] or lines
    return named[-1] if named else "ended without a word"


def measure_speed(row: Row, system: System, payload: Payload, number: int, spans: Spans) -> None:
    """Measure many at once on that many processes; with one, a question alone before that."""
    with private_server() as server:
        setting = Setting(server.url, server.url, payload, str(server.folder))
        with processes(system, setting, number) as started:
            alone = _alone(started[0], spans) if number == 1 else None
            row.add(_many(system, started, server, spans), alone)


def _alone(one: ControlledProcess, spans: Spans) -> Alone:
    one.request("alone", questions=WARMING, seconds=SPARSE_SECONDS)
    one.receive()
    one.request("alone", questions=spans.questions, seconds=spans.alone)
    found = one.receive()
    times, picked_up = found["answered_ms"], found["picked_up_ms"]
    return Alone(len(times), quantile(times, 0.5), quantile(times, 0.99), quantile(picked_up, 0.95))


def _many(
    system: System, started: Sequence[ControlledProcess], server: Server, spans: Spans
) -> Speed:
    _crowd(started, spans)
    for one in started:
        one.request("window", seconds=spans.window)
    began, used = time.perf_counter(), server.processor_seconds()
    found = [one.receive() for one in started]
    redis_share = (server.processor_seconds() - used) / (time.perf_counter() - began)
    if not system.broker:
        redis_share = 0.0
    rate = sum(one["answered"] / one["seconds"] for one in found)
    client_share = sum(one["processor_seconds"] / one["seconds"] for one in found)
    return Speed(
        processes=len(started),
        questions_a_second=rate,
        client_ms=1000 * client_share / rate if rate else 0.0,
        redis_ms=1000 * redis_share / rate if rate else 0.0,
        redis_share=redis_share,
        waited_share=sum(one["waited_seconds"] / one["seconds"] for one in found) / len(found),
        megabytes=max(one.resident_megabytes() for one in started),
    )


def _crowd(started: Sequence[ControlledProcess], spans: Spans) -> None:
    # The more questions there are, the longer it takes until the crowd moves evenly.
    for one in started:
        one.request("crowd", at_once=AT_ONCE, seconds=spans.warm * len(started))
    for one in started:
        one.receive()


def measure_trips(rows: Sequence[tuple[Row, System]], payload: Payload, spans: Spans) -> None:
    """Count round trips: all systems idle side by side, then each alone."""
    with ExitStack() as stack:
        watched = [
            (row, *stack.enter_context(_behind_proxy(system, payload))) for row, system in rows
        ]
        time.sleep(SETTLING_SECONDS)
        before = [count.turns for _, _, count in watched]
        time.sleep(spans.idle)
        idle = [count.turns - so_far for (_, _, count), so_far in zip(watched, before, strict=True)]
        for (row, one, count), turns in zip(watched, idle, strict=True):
            with record_error(row):
                sparse = _sparse(one, count)
                row.trips = Trips(sparse, _saturate(one, count, spans), turns / spans.idle)


@contextmanager
def _behind_proxy(system: System, payload: Payload) -> Iterator[tuple[ControlledProcess, Count]]:
    """Run a process whose workers connect through a proxy, and whose client does not."""
    with private_server() as server:
        listen = server.folder / "proxy.sock"
        with counting_proxy(str(listen), str(server.socket)) as count:
            setting = Setting(f"unix://{listen}", server.url, payload, str(server.folder))
            with processes(system, setting) as (one,):
                yield one, count


def _sparse(one: ControlledProcess, count: Count) -> float:
    one.request("alone", questions=WARMING, seconds=SPARSE_SECONDS)
    one.receive()
    before = count.turns
    one.request("alone", questions=SPARSE, seconds=SPARSE_SECONDS)
    answered = len(one.receive()["answered_ms"])
    return (count.turns - before) / answered


def _saturate(one: ControlledProcess, count: Count, spans: Spans) -> float:
    _crowd([one], spans)
    before, began = count.turns, time.perf_counter()
    one.request("window", seconds=spans.window)
    found = one.receive()
    turns = (count.turns - before) / (time.perf_counter() - began)
    rate = found["answered"] / found["seconds"]
    return float(turns / rate) if rate else 0.0


def start_recovery(system: System, spans: Spans) -> "subprocess.Popen[str]":
    """Begin to kill; several systems may be killed at once, for they mostly wait."""
    arguments = (system.module, str(LEASE_SECONDS), str(spans.recovery), str(spans.lanes))
    command = [sys.executable, "-m", "benchmarks.speed.harness.recovery", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def read_recovery(killing: "subprocess.Popen[str]") -> Recovery | None:
    """Return what was found, or None where nothing was."""
    output, _ = killing.communicate()
    if killing.returncode or not output:
        return None
    found = json.loads(output.splitlines()[-1])
    leases, missed = found["leases"], int(found["missed"])
    kills = len(leases) + missed
    if not leases:
        return Recovery(kills, missed, 0.0, 0.0)
    return Recovery(kills, missed, quantile(leases, 0.5), quantile(leases, 0.99))
