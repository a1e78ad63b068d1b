"""The tool `format_report`."""

from pydantic import BaseModel, Field

from citations.printed_report import (
    PrintedReport,
    ReportPart,
    ReportTable,
    ReportText,
    render_markdown,
)
from tools.calls import ToolCaller
from tools.tool import Tool

_MOST_PARTS, _MOST_LINES, _MOST_CELLS = 20, 200, 12


class GivenPart(BaseModel, frozen=True, extra="forbid"):
    """A part of a report, with paragraphs first, then a list, then a table."""

    heading: str = Field(min_length=1, max_length=200, description="without a number")
    paragraphs: tuple[str, ...] = Field(
        default=(), max_length=_MOST_LINES, description="text before the list"
    )
    items: tuple[str, ...] = Field(default=(), max_length=_MOST_LINES, description="a list")
    rows: tuple[tuple[str, ...], ...] = Field(
        default=(), max_length=_MOST_LINES, description="a table; the first row is its header"
    )


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """The parts of a report, in order."""

    title: str = Field(min_length=1, max_length=300, description="title of the report")
    parts: tuple[GivenPart, ...] = Field(
        min_length=1, max_length=_MOST_PARTS, description="sections in the order of the report"
    )


class Output(BaseModel, frozen=True):
    """The report as Markdown."""

    markdown: str
    parts: int
    characters: int


class FormatReport(Tool[Inputs, Output]):
    """Formats findings as a Markdown report, without changing their wording.

    The result is not a source, because the caller wrote it. Markup and links in the text are
    escaped.
    """

    name = "format_report"
    aliases = ("write_report", "render_report")
    description = (
        "Format existing findings as a Markdown report: headings, paragraphs, lists, tables."
    )
    inputs = Inputs
    output = Output

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        parts = tuple(_make_part(number, part) for number, part in enumerate(inputs.parts, 1))
        report = PrintedReport(title=inputs.title, language=caller.language, parts=parts)
        markdown = render_markdown(report)
        return Output(markdown=markdown, parts=len(parts), characters=len(markdown))

    def render(self, output: Output) -> str:
        return output.markdown


def _make_part(number: int, given: GivenPart) -> ReportPart:
    width = min(max((len(row) for row in given.rows), default=0), _MOST_CELLS)
    rows = tuple(
        tuple(ReportText(cell) for cell in (*row, *[""] * width)[:width]) for row in given.rows
    )
    return ReportPart(
        heading=f"{number}. {' '.join(given.heading.split())}",
        paragraphs=tuple(map(ReportText, given.paragraphs)),
        items=tuple(map(ReportText, given.items)),
        table=ReportTable(rows) if rows else None,
    )
