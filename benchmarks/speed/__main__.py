"""Compares Refdesk with other systems in the same run, and prints the tables.

`python -m benchmarks.speed` takes at most a minute: it measures the throughput, and the latency of
single questions, with one process and 4 kB, or with the payload given by `--payload`. `--quick`
runs short versions of all measurements. `--full` runs all measurements with two payloads, and
repeats those with one process and 4 kB. `--write` writes
`docs/internal/measurements/benchmarks.md`.
"""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.speed import tables
from benchmarks.speed.payload import payloads
from benchmarks.speed.runner import MODES, run
from benchmarks.speed.systems.port import SYSTEMS, System
from benchmarks.speed.tables import Report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the requested measurement."""
    chosen = _parser().parse_args(arguments)
    # So that what was started is ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    mode = MODES[chosen.mode]
    if chosen.payload:
        mode = replace(mode, payloads=(chosen.payload,))
    report = run(mode, _systems(chosen.only))
    if chosen.json:
        print(json.dumps(report.fields(), indent=1))
    else:
        print(_render(report))
    if chosen.write:
        from benchmarks.speed.page import write

        write(report)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.set_defaults(mode="speed")
    for mode, description in (
        ("quick", "all measurements, in two minutes"),
        ("full", "all measurements with both payloads, in 16 minutes"),
    ):
        parser.add_argument(
            f"--{mode}", dest="mode", action="store_const", const=mode, help=description
        )
    parser.add_argument("--only", metavar="NAMES", help="only these systems, separated by commas")
    parser.add_argument("--payload", choices=payloads(), help="this payload alone")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--write", action="store_true", help="write the page")
    return parser


def _systems(only: str | None) -> list[System]:
    known = {system.name.replace(" ", "-"): system for system in SYSTEMS}
    if only is None:
        return list(known.values())
    names = [name.strip() for name in only.split(",")]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"expected names of {', '.join(known)}; found {', '.join(unknown)}")
    return [known[name] for name in names]


def _render(report: Report) -> str:
    parts = [f"{report.date}, {report.machine}, Redis {report.redis}, load {report.load:.1f}"]
    for payload, size in report.sizes.items():
        parts += [f"Payload: {payload} ({size} bytes at its end)", tables.speed(report, payload)]
    first = next(iter(report.sizes))
    if any(row.trips for row in report.rows):
        parts += [tables.broker(report), tables.limit(report, first), tables.guarantees(report)]
    parts.append(tables.goals(report, first))
    return "\n\n".join(part for part in parts if part)


if __name__ == "__main__":
    sys.exit(main())
