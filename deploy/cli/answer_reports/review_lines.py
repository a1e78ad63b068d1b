"""Formats the result of a review for a terminal of 80 columns: the matrix, then the answer."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pydantic import JsonValue

from deploy.cli.answer_reports.agent_costs import list_agent_costs
from deploy.cli.printing import WIDTH, columns, reply_lines

if TYPE_CHECKING:
    from compliance.reporting.report import ReviewReport

_MATRIX = 2
"""The place of the compliance matrix among the parts of a report."""
_MARKS = {"COMPLIANT": "ok  ", "VIOLATION": "FAIL", "GAP": "GAP "}


def list_review_lines(
    reply: Mapping[str, JsonValue], report: "ReviewReport | None"
) -> Iterator[str]:
    """Yield a line for each requirement with its verdict, and the lines of the answer."""
    if report is not None:
        yield from list_matrix_lines(report)
        yield ""
    yield from reply_lines(reply)
    usage = reply.get("model_usage")
    if isinstance(usage, dict):
        yield from list_agent_costs(usage)


def list_matrix_lines(report: "ReviewReport") -> Iterator[str]:
    """Yield a line for each row of the matrix: verdict, id, requirement."""
    table = report.parts[_MATRIX].table if len(report.parts) > _MATRIX else None
    for row in table.rows[1:] if table is not None else ():
        name, requirement, status, *_ = (cell.text for cell in row)
        yield _cut(f"{_MARKS.get(status, status)} {name}  {requirement}")


def _cut(line: str) -> str:
    while columns(line) > WIDTH:
        line = f"{line[:-2]}…"
    return line
