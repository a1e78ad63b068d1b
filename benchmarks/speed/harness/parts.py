"""The parts of a run, each of one system: speed, round trips, recovery."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.speed.harness.counting_proxy import Count, counting_proxy
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


class SilentProcessError(Exception):
    """A process ended or said nothing; it carries the end of what it wrote about itself."""


@dataclass(frozen=True, slots=True)
class ControlledProcess:
    """A process that measures itself."""

    process: "subprocess.Popen[str]"
    journal: IO[str]

    def request(self, name: str, **arguments: object) -> None:
        """Ask for a measurement; several processes may be asked before the first answers."""
        if self.process.stdin is None:
            raise RuntimeError("expected a pipe")
        try:
            self.process.stdin.write(json.dumps([name, arguments]) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._silent() from None

    def receive(self) -> Any:
        """Return what it found."""
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
        """Return its resident memory, in units of 1,000,000 bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii").splitlines()
        resident = next(line for line in status if line.startswith("VmRSS:"))
        return int(resident.split()[1]) * 1024 / 1_000_000


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


@contextmanager
def processes(
    system: System, setting: Setting, number: int = 1
) -> Iterator[Sequence[ControlledProcess]]:
    """Run processes of the system while inside; they are ready for requests."""
    settings = json.dumps({**asdict(setting), "payload": setting.payload.name})
    command = [sys.executable, "-m", "benchmarks.speed.harness.process", system.module, settings]
    with ExitStack() as stack:
        started = [_start(stack, command) for _ in range(number)]
        for one in started:
            one.receive()
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
    """Kill it: what it holds is thrown away with its Redis."""
    process.kill()
    process.communicate()
