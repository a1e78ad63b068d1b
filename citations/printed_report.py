"""A printable report of paragraphs, lists, and tables, which can be rendered to files."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from citations.links import Base, keep_own_link
from envelope.encoding import remove_hidden_characters

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|!~])")
_LINE_MARK = re.compile(r"\A(\d{1,9})([.)])|\A([-+])")


@dataclass(frozen=True, slots=True)
class ReportText:
    """A piece of text with an optional `link` to its location.

    `place` is printed after the text and carries the link. `marks` are bold spans. `is_detail`
    marks a nested item below the previous one. `more` contains further lines.
    """

    text: str
    link: str = ""
    is_detail: bool = False
    place: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    more: tuple["ReportText", ...] = ()


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table; the first row is the header. `shares` are the column widths, which sum to 1."""

    rows: tuple[tuple[ReportText, ...], ...]
    shares: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportPart:
    """A part with its heading. Paragraphs come first, then items, then the table."""

    heading: str
    paragraphs: tuple[ReportText, ...] = ()
    items: tuple[ReportText, ...] = ()
    table: ReportTable | None = None


@dataclass(frozen=True, slots=True)
class PrintedReport:
    """A report. `notice` is printed first, for example to state that no model is in use."""

    title: str
    language: str
    parts: tuple[ReportPart, ...]
    notice: str = ""


def split_marks(text: ReportText) -> Iterable[tuple[str, bool]]:
    """Yield each piece of a text, and whether it is bold."""
    end = 0
    for start, stop in text.marks:
        if end < start:
            yield text.text[end:start], False
        yield text.text[start:stop], True
        end = stop
    yield text.text[end:], False


def render_markdown(report: PrintedReport, *, base: Base = "") -> str:
    """Render the report as Markdown; only links to our own pages (below `base`) are kept."""
    lines = [f"# {_escape(report.title)}", ""]
    if report.notice:
        lines += [f"**{_escape(report.notice)}**", ""]
    for part in report.parts:
        lines += [f"## {part.heading}", ""]
        for paragraph in part.paragraphs:
            lines += [_render(paragraph, base), ""]
        if part.items:
            marks = ("  -" if item.is_detail else "-" for item in part.items)
            items = (_render(item, base) for item in part.items)
            lines += [*(f"{mark} {item}" for mark, item in zip(marks, items, strict=True)), ""]
        if part.table is not None:
            lines += [*_render_table(part.table, base), ""]
    return "\n".join(lines).rstrip() + "\n"


def _render_table(table: ReportTable, base: Base) -> Iterator[str]:
    for number, row in enumerate(table.rows):
        yield f"| {' | '.join(_render(cell, base) for cell in row)} |"
        if number == 0:
            yield f"|{'---|' * len(row)}"


def _render(text: ReportText, base: Base) -> str:
    return "<br>".join(_render_line(line, base) for line in (text, *text.more))


def _render_line(text: ReportText, base: Base) -> str:
    link = keep_own_link(text.link, base)
    words = "".join(_mark(piece, is_marked) for piece, is_marked in split_marks(text))
    if not text.place:
        return f"[{words}]({link})" if link else words
    place = f"[{_escape(text.place)}]({link})" if link else _escape(text.place)
    return f"{words} ({place})" if words else place


def _mark(piece: str, is_marked: bool) -> str:
    if is_marked:
        return f"**{_escape(piece)}**"
    edges = (piece[: len(piece) - len(piece.lstrip())], piece[len(piece.rstrip()) :])
    before, after = (" " if edge else "" for edge in edges)
    return f"{before}{_escape(piece)}{after if piece.strip() else ''}"


def _escape(text: str) -> str:
    plain = _MARKUP.sub(r"\\\1", " ".join(remove_hidden_characters(text).split()))
    return _LINE_MARK.sub(lambda mark: f"{mark[1] or ''}\\{mark[2] or mark[3]}", plain)
