"""Exports gaps over HTTP, as JSON and as CSV."""

import csv
import io
from collections.abc import Iterable

from pydantic import BaseModel, Field

from records.gaps import Gap

MOST_EXAMPLES = 10
_END_CELLS = ";,\t\r\n"
_BEGIN_FORMULAS = frozenset("=+-@＝＋－＠")


class GapReport(BaseModel):
    """Questions with a similar meaning that were not resolved."""

    id: str
    title: str = Field(description="most typical question")
    state: str = Field(description="state of the gap: open, writing or done")
    questions: int = Field(description="number of questions")
    last_week: int = Field(description="number of questions of the last 7 days")
    week_before: int = Field(description="number of questions of the 7 days before that")
    since_change: int = Field(description="number of questions since the state was set")
    refused: int = Field(description="number of refused questions")
    unanswered: int = Field(
        description="number of questions that ended with an unanswered clarification"
    )
    down: int = Field(description="number of answers that were rated down")
    pages: list[str] = Field(description="locations in the documents that the search found")
    examples: list[str] = Field(description="examples of the questions, the most typical first")


class GapList(BaseModel):
    """The gaps of an assistant, the largest first."""

    gaps: list[GapReport]


def report_gap(gap: Gap) -> GapReport:
    """Return a gap in its exported form."""
    return GapReport(
        id=gap.id,
        title=gap.title,
        state=gap.state,
        questions=gap.size,
        last_week=gap.last_week,
        week_before=gap.week_before,
        since_change=gap.since_change,
        refused=gap.reasons.get("refused", 0),
        unanswered=gap.reasons.get("unanswered", 0),
        down=gap.reasons.get("down", 0),
        pages=[" › ".join(page.get("crumbs") or [page.get("title", "")]) for page in gap.pages],
        examples=list(dict.fromkeys(question.text for question in gap.questions))[:MOST_EXAMPLES],
    )


def write_json(gaps: Iterable[Gap]) -> bytes:
    """Return gaps with examples of their questions as JSON."""
    return GapList(gaps=[report_gap(gap) for gap in gaps]).model_dump_json(indent=1).encode()


def write_csv(gaps: Iterable[Gap]) -> bytes:
    """Return gaps as CSV, without text that a spreadsheet would execute as a formula."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(GapReport.model_fields)
    for gap in gaps:
        row = report_gap(gap).model_dump()
        for name in ("pages", "examples"):
            row[name] = "; ".join(map(_make_inert, row[name]))
        cells = (row[name] for name in GapReport.model_fields)
        writer.writerow([_make_inert(cell) if isinstance(cell, str) else cell for cell in cells])
    return text.getvalue().encode()


def _make_inert(text: str) -> str:
    """Return text in which no cell can be interpreted as a formula, wherever a program splits
    it.
    """
    for mark in _BEGIN_FORMULAS:
        for end in _END_CELLS:
            text = text.replace(f"{end}{mark}", f"{end}'{mark}")
    return f"'{text}" if text.lstrip()[:1] in _BEGIN_FORMULAS else text
