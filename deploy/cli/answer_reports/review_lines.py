"""Formats the result of a review for a terminal of 80 columns: the matrix, then the answer."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pydantic import JsonValue

from deploy.cli.markdown_tables import columns
from deploy.cli.printing import WIDTH, reply_lines
from deploy.cli.trace_lines import list_agent_costs

if TYPE_CHECKING:
    from deploy.assembly.gateways.report_rendering import Report

_MARKS = {"COMPLIANT": "ok  ", "VIOLATION": "FAIL", "GAP": "GAP ", "UNDECIDED": "?   "}


def list_review_lines(reply: Mapping[str, JsonValue], report: "Report | None") -> Iterator[str]:
    """Yield a line for each requirement with its verdict, and the lines of the answer."""
    if report is not None:
        yield from list_matrix_lines(report)
        yield ""
    yield from reply_lines(reply)
    usage = reply.get("model_usage")
    if isinstance(usage, dict):
        yield from list_agent_costs(usage)


def list_matrix_lines(report: "Report") -> Iterator[str]:
    """Yield a line for each requirement: verdict, number, place in the law, requirement."""
    for one in getattr(report, "requirements", ()):
        mark = _MARKS.get(one.status, one.status)
        place = one.law.heading.rpartition(" > ")[2]
        yield _cut(f"{mark} {one.number:>3}  {place}: {one.requirement}")


def _cut(line: str) -> str:
    while columns(line) > WIDTH:
        line = f"{line[:-2]}…"
    return line
