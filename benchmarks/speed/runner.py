"""Runs the parts of the benchmark for every system, side by side, and returns the report."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import IO, Any

from benchmarks.speed.payload import Payload, payloads
from benchmarks.speed.redis_server import Count, Server, counting_proxy, private_server
from benchmarks.speed.systems.port import Setting, System, is_installed, versions
from benchmarks.speed.tables import Alone, Recovery, Report, Row, Speed, Trips, quantile

AT_ONCE = 200
"""Number of questions in flight per process."""
LEASE_SECONDS = 2.0
SETTLING_SECONDS = 9.0
"""Time before a process counts as idle: the duration of its first blocking reads, one per role in
sequence.
"""
SPARSE = 50
WARMING = 3
SPARSE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Spans:
    """Durations of a run in seconds; `alone` also limits the number of questions."""

    alone: float
    questions: int
    warm: float
    window: float
    idle: float = 0.0
    recovery: float = 0.0
    lanes: int = 1


@contextmanager
def record_error(row: Row) -> Iterator[None]:
    """Record the error of one system without affecting the others; the table shows it."""
    try:
        yield
    except (SilentProcessError, ValueError) as error:
        row.error = _reason(str(error))
        sys.stderr.write(f"{row.system} failed: {error}\n")


def _reason(error_output: str) -> str:
    """Return the line of a traceback that states the error."""
    lines = [line.strip(" |+-") for line in error_output.splitlines()]
    named = [line for line in lines if "Error" in line.split(":")[0]] or lines
    return named[-1] if named else "ended without output"


def measure_speed(row: Row, system: System, payload: Payload, number: int, spans: Spans) -> None:
    """Measure many concurrent questions with this number of processes; with one process, first a
    single question.
    """
    with private_server() as server:
        setting = Setting(server.url, server.url, payload, str(server.folder))
        with processes(system, setting, number) as started:
            alone = _alone(started[0], spans) if number == 1 else None
            row.add(_many(system, started, server, spans), alone)


class SilentProcessError(Exception):
    """A process ended or did not respond; the error contains the end of its output."""


@dataclass(frozen=True, slots=True)
class ControlledProcess:
    """A process that runs the measurements on itself."""

    process: "subprocess.Popen[str]"
    journal: IO[str]

    def request(self, name: str, **arguments: object) -> None:
        """Request a measurement; further processes can receive requests before the first one
        responds.
        """
        if self.process.stdin is None:
            raise RuntimeError("expected a pipe")
        try:
            self.process.stdin.write(json.dumps([name, arguments]) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._silent() from None

    def receive(self) -> Any:
        """Return the result of the process."""
        if self.process.stdout is None:
            raise RuntimeError("expected a pipe")
        line = self.process.stdout.readline()
        if not line:
            raise self._silent()
        return json.loads(line)

    def _silent(self) -> SilentProcessError:
        self.journal.seek(0)
        return SilentProcessError(self.journal.read()[-2000:])

    def resident_megabytes(self) -> float:
        """Return the resident memory of the process, in units of 1,000,000 bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii").splitlines()
        resident = next(line for line in status if line.startswith("VmRSS:"))
        return int(resident.split()[1]) * 1024 / 1_000_000


def _alone(process: ControlledProcess, spans: Spans) -> Alone:
    process.request("alone", questions=WARMING, seconds=SPARSE_SECONDS)
    process.receive()
    process.request("alone", questions=spans.questions, seconds=spans.alone)
    measured = process.receive()
    times, picked_up = measured["answered_ms"], measured["picked_up_ms"]
    return Alone(len(times), quantile(times, 0.5), quantile(times, 0.99), quantile(picked_up, 0.95))


def _many(
    system: System, started: Sequence[ControlledProcess], server: Server, spans: Spans
) -> Speed:
    _crowd(started, spans)
    for process in started:
        process.request("window", seconds=spans.window)
    began, used = time.perf_counter(), server.processor_seconds()
    measured = [process.receive() for process in started]
    redis_share = (server.processor_seconds() - used) / (time.perf_counter() - began)
    if not system.broker:
        redis_share = 0.0
    rate = sum(item["answered"] / item["seconds"] for item in measured)
    client_share = sum(item["processor_seconds"] / item["seconds"] for item in measured)
    return Speed(
        processes=len(started),
        questions_a_second=rate,
        client_ms=1000 * client_share / rate if rate else 0.0,
        redis_ms=1000 * redis_share / rate if rate else 0.0,
        redis_share=redis_share,
        waited_share=sum(item["waited_seconds"] / item["seconds"] for item in measured)
        / len(measured),
        megabytes=max(process.resident_megabytes() for process in started),
    )


def _crowd(started: Sequence[ControlledProcess], spans: Spans) -> None:
    # The more questions there are, the longer it takes until the crowd moves evenly.
    for process in started:
        process.request("crowd", at_once=AT_ONCE, seconds=spans.warm * len(started))
    for process in started:
        process.receive()


def measure_trips(rows: Sequence[tuple[Row, System]], payload: Payload, spans: Spans) -> None:
    """Count round trips: all systems idle in parallel, then each alone."""
    with ExitStack() as stack:
        watched = [
            (row, *stack.enter_context(_behind_proxy(system, payload))) for row, system in rows
        ]
        time.sleep(SETTLING_SECONDS)
        before = [count.turns for _, _, count in watched]
        time.sleep(spans.idle)
        idle = [count.turns - so_far for (_, _, count), so_far in zip(watched, before, strict=True)]
        for (row, process, count), turns in zip(watched, idle, strict=True):
            with record_error(row):
                sparse = _sparse(process, count)
                row.trips = Trips(sparse, _saturate(process, count, spans), turns / spans.idle)


@contextmanager
def _behind_proxy(system: System, payload: Payload) -> Iterator[tuple[ControlledProcess, Count]]:
    """Run a process whose workers connect through a proxy, and whose client does not."""
    with private_server() as server:
        listen = server.folder / "proxy.sock"
        with counting_proxy(str(listen), str(server.socket)) as count:
            setting = Setting(f"unix://{listen}", server.url, payload, str(server.folder))
            with processes(system, setting) as (one,):
                yield one, count


def _sparse(process: ControlledProcess, count: Count) -> float:
    process.request("alone", questions=WARMING, seconds=SPARSE_SECONDS)
    process.receive()
    before = count.turns
    process.request("alone", questions=SPARSE, seconds=SPARSE_SECONDS)
    answered = len(process.receive()["answered_ms"])
    return (count.turns - before) / answered


def _saturate(process: ControlledProcess, count: Count, spans: Spans) -> float:
    _crowd([process], spans)
    before, began = count.turns, time.perf_counter()
    process.request("window", seconds=spans.window)
    measured = process.receive()
    turns = (count.turns - before) / (time.perf_counter() - began)
    rate = measured["answered"] / measured["seconds"]
    return float(turns / rate) if rate else 0.0


def start_recovery(system: System, spans: Spans) -> "subprocess.Popen[str]":
    """Start killing workers; several systems can be measured at once, because they mostly wait."""
    arguments = (system.module, str(LEASE_SECONDS), str(spans.recovery), str(spans.lanes))
    command = [sys.executable, "-m", "benchmarks.speed.recovery", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def read_recovery(killing: "subprocess.Popen[str]") -> Recovery | None:
    """Return the recovery figures, or None if there are none."""
    output, _ = killing.communicate()
    if killing.returncode or not output:
        return None
    measured = json.loads(output.splitlines()[-1])
    leases, missed = measured["leases"], int(measured["missed"])
    kills = len(leases) + missed
    if not leases:
        return Recovery(kills, missed, 0.0, 0.0)
    return Recovery(kills, missed, quantile(leases, 0.5), quantile(leases, 0.99))


@contextmanager
def processes(
    system: System, setting: Setting, number: int = 1
) -> Iterator[Sequence[ControlledProcess]]:
    """Run processes of the system within the context; they are ready for requests."""
    settings = json.dumps({**asdict(setting), "payload": setting.payload.name})
    command = [sys.executable, "-m", "benchmarks.speed.process", system.module, settings]
    with ExitStack() as stack:
        started = [_start(stack, command) for _ in range(number)]
        for process in started:
            process.receive()
        yield started


def _start(stack: ExitStack, command: Sequence[str]) -> ControlledProcess:
    journal: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - the stack closes it
    stack.enter_context(journal)
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=journal, text=True
    )
    stack.callback(_end, process)
    return ControlledProcess(process, journal)


def _end(process: "subprocess.Popen[str]") -> None:
    """Kill the process; its state is discarded with its Redis."""
    process.kill()
    process.communicate()


Pair = tuple[Row, System]
COMPARED = frozenset({"refdesk", "faststream", "raw limit"})
"""Systems whose ratios have goals; alternating turns compensate for the varying speed of a shared
machine.
"""


@dataclass(frozen=True, slots=True)
class Mode:
    """The number and duration of measurements, and the number of turns with one process and the
    first payload.

    `more_turns` applies only to systems with goals for their ratios: see `COMPARED`.
    """

    name: str
    payloads: Sequence[str]
    processes: Sequence[int]
    spans: Spans
    turns: int = 1
    more_turns: int = 0

    @property
    def whole(self) -> bool:
        """Whether round trips and recovery are measured too."""
        return self.spans.idle > 0


MODES = {
    mode.name: mode
    for mode in (
        Mode("speed", ("4 kB",), (1,), Spans(1.5, 200, 1.0, 3.0)),
        Mode("quick", ("4 kB",), (1, 4), Spans(0.6, 100, 0.4, 1.0, 8.0, 7.0, 2)),
        Mode(
            "full",
            ("4 kB", "conversation"),
            (1, 2, 4),
            Spans(2.5, 500, 0.8, 3.0, 8.0, 50.0, 3),
            3,
            9,
        ),
    )
}


def run(mode: Mode, systems: Sequence[System]) -> Report:
    """Run the measurements; systems take turns within each part, so that a busy minute affects all
    of them.
    """
    known = payloads()
    report = _report(mode, [known[name] for name in mode.payloads])
    for name in mode.payloads:
        pairs = _rows(report, systems, name)
        for number in mode.processes:
            turns = _turns(mode, pairs) if number == 1 and name == mode.payloads[0] else pairs
            for row, system in turns:
                _print_progress(f"{system.name}: {name}, {number} process(es)")
                with record_error(row):
                    measure_speed(row, system, known[name], number, mode.spans)
    if mode.whole:
        first = mode.payloads[0]
        queued = _queue(report, systems, first)
        _recover([pair for pair in queued if pair[1].recovers], mode.spans)
        _print_progress("round trips")
        measure_trips(queued, known[first], mode.spans)
    return report


def _turns(mode: Mode, pairs: Sequence[Pair]) -> list[Pair]:
    """Return the order of measurements: all systems in turn, then the compared ones in both
    directions.
    """
    compared = [pair for pair in pairs if pair[1].name in COMPARED]
    there_and_back = (compared if turn % 2 else compared[::-1] for turn in range(mode.more_turns))
    return [*list(pairs) * mode.turns, *chain.from_iterable(there_and_back)]


def _rows(report: Report, systems: Sequence[System], payload: str) -> list[Pair]:
    """Add a row for every system; return those that can be measured."""
    pairs = []
    for system in systems:
        there = is_installed(system)
        row = Row(system.name, payload, versions(system) if there else "not installed")
        report.rows.append(row)
        if there:
            pairs.append((row, system))
    return pairs


def _queue(report: Report, systems: Sequence[System], payload: str) -> list[Pair]:
    """Return the Redis-based systems whose speed could be measured."""
    pairs = ((report.row(system.name, payload), system) for system in systems if system.broker)
    return [(row, system) for row, system in pairs if row is not None and row.speeds]


def _recover(pairs: Sequence[Pair], spans: Spans) -> None:
    _print_progress("recovery: " + ", ".join(system.name for _, system in pairs))
    killing = [(row, start_recovery(system, spans)) for row, system in pairs]
    for row, process in killing:
        row.recovery = read_recovery(process)


def _report(mode: Mode, carried: Sequence[Payload]) -> Report:
    with private_server() as server:
        redis = server.version()
    return Report(
        mode=mode.name,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        machine=f"{os.cpu_count()} processors, Python {platform.python_version()}",
        redis=redis,
        load=os.getloadavg()[0],
        sizes={payload.name: payload.size() for payload in carried},
    )


def _print_progress(what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")
