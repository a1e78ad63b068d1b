"""Draws the plots of a report."""

from collections.abc import Callable
from pathlib import Path

from benchmarks.speed.report.bars import Bars, drawing
from benchmarks.speed.report.figures import Report, Row

Figure = Callable[[Row], float | None]


def draw(report: Report, folder: Path) -> dict[str, str]:
    """Write the plots into `folder`; return their names by title."""
    rows = [row for row in report.rows if row.payload == next(iter(report.sizes)) and row.speeds]
    numbers = sorted({number for row in rows for number in row.speeds})
    plots = (
        (
            "benchmarks-speed.svg",
            "Questions a second, 200 in flight a process (more is better)",
            [_processes(number) for number in numbers],
            "{:.0f}",
        ),
        (
            "benchmarks-processor.svg",
            "Processor time of a question, ms (less is better)",
            [("clients", _client), ("Redis", _redis)],
            "{:.2f}",
        ),
        (
            "benchmarks-alone.svg",
            "One question alone, ms (less is better)",
            [("p50", _p50), ("p99", _p99)],
            "{:.1f}",
        ),
    )
    written = {}
    for name, title, series, form in plots:
        groups = [Bars(row.system, [figure(row) for _, figure in series]) for row in rows]
        svg = drawing(title, [name for name, _ in series], groups, form)
        (folder / name).write_text(svg, "utf-8")
        written[title] = name
    return written


def _processes(number: int) -> tuple[str, Figure]:
    name = f"{number} process{'es' if number > 1 else ''}"
    return name, lambda row: row.rate(number)


def _client(row: Row) -> float | None:
    return row.speeds[1].client_ms if 1 in row.speeds else None


def _redis(row: Row) -> float | None:
    return row.speeds[1].redis_ms or None if 1 in row.speeds else None


def _p50(row: Row) -> float | None:
    return None if row.alone is None else row.alone.p50


def _p99(row: Row) -> float | None:
    return None if row.alone is None else row.alone.p99
