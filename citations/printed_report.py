"""A printable report of paragraphs, lists, and tables, which can be rendered to files."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from citations.links import Base, keep_own_link
from envelope.encoding import remove_hidden_characters

_SPACES = re.compile(r"\s+")
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|!~])")
_LINE_MARK = re.compile(r"\A( ?\d{1,9}|(?= ?[-+]) ?)([.)+-])")


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


@dataclass(frozen=True, slots=True)
class LineForm:
    """How a format writes plain text, bold text, a link (its text and its target), and a place
    behind a text; `has_anchors` is true if it can link to an anchor.
    """

    escape: Callable[[str], str]
    bold: Callable[[str], str]
    link: Callable[[str, str], str]
    place: Callable[[str, str], str] = "{} ({})".format
    has_anchors: bool = True


def write_line(text: ReportText, form: LineForm, base: Base) -> str:
    """Return a text without its further lines; only links to our own pages (below `base`) are
    kept.
    """
    link = keep_own_link(text.link, base)
    is_linked = bool(link) and (form.has_anchors or not link.startswith("#"))

    def write_link(shown: str) -> str:
        return form.link(shown, link) if is_linked else shown

    words = "".join(
        form.bold(piece) if is_bold else form.escape(piece) for piece, is_bold in _split(text)
    )
    if not text.place:
        return write_link(words)
    place = write_link(form.escape(put_on_line(text.place)))
    return form.place(words, place) if words else place


def put_on_line(text: str) -> str:
    """Return a text without hidden characters and with single spaces, also at its ends."""
    return _SPACES.sub(" ", remove_hidden_characters(text))


def render_markdown(report: PrintedReport, *, base: Base = "") -> str:
    """Render the report as Markdown; only links to our own pages (below `base`) are kept."""
    lines = [f"# {_escape(report.title)}", ""]
    if report.notice:
        lines += [f"**{_escape(report.notice)}**", ""]
    for part in report.parts:
        lines += [f"## {part.heading}", ""]
        for paragraph in part.paragraphs:
            lines += [_render(paragraph, base).strip(), ""]
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
    return "<br>".join(write_line(line, _MARKDOWN, base) for line in (text, *text.more))


def _split(text: ReportText) -> Iterator[tuple[str, bool]]:
    """Yield each piece of a text, and whether it is bold."""
    end = 0
    for start, stop in (*text.marks, (len(text.text), len(text.text))):
        yield from ((put_on_line(piece), False) for piece in (text.text[end:start],) if piece)
        yield from ((put_on_line(piece), True) for piece in (text.text[start:stop],) if piece)
        end = stop


def _escape(text: str) -> str:
    return _LINE_MARK.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", put_on_line(text)))


_MARKDOWN = LineForm(_escape, lambda text: f"**{_escape(text)}**", "[{}]({})".format)
