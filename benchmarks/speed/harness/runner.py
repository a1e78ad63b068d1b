"""Runs the parts for every system, side by side, and gathers the report."""

import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from benchmarks.speed.harness.parts import (
    Spans,
    measure_speed,
    measure_trips,
    read_recovery,
    record_error,
    start_recovery,
)
from benchmarks.speed.harness.server import private_server
from benchmarks.speed.payload import Payload, payloads
from benchmarks.speed.report.figures import Report, Row
from benchmarks.speed.systems.catalogue import is_installed, versions
from benchmarks.speed.systems.port import System

Pair = tuple[Row, System]
COMPARED = frozenset({"refdesk", "faststream", "raw limit"})
"""Their ratios are to be reached, and a machine that others share is never twice as fast."""


@dataclass(frozen=True, slots=True)
class Mode:
    """How much is measured, how long, and how many times with one process and the first payload.

    `more_turns` are of those alone whose ratios are to be reached: see `COMPARED`.
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
        Mode("quick", ("4 kB",), (1, 4), Spans(0.6, 100, 0.4, 1.0, 3.0, 7.0, 2)),
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
    """Measure; systems take turns within each part, so that a busy minute meets all of them."""
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
    """Return who is measured when: all in turn, then those that are compared, there and back."""
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
    """Return the systems on Redis whose speed could be measured."""
    found = ((report.row(system.name, payload), system) for system in systems if system.broker)
    return [(row, system) for row, system in found if row is not None and row.speeds]


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
