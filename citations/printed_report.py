"""A printable report of paragraphs, lists, and tables, which can be rendered to files."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from citations.links import Base, keep_own_link
from citations.verbatim import STRUCK, find_struck
from envelope.encoding import remove_hidden_characters

_SPACES = re.compile(r"\s+")
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|!~]|&(?=#?\w{1,31};))")
_LINE_MARK = re.compile(r"\A( ?\d{1,9}|(?= ?[-+]) ?)([.)+-])")


@dataclass(frozen=True, slots=True)
class LineForm:
    """How a format writes plain text, written text as bold or struck out, a link (its text and its
    target), and a place behind a text; `has_anchors` is true if it can link to an anchor.
    """

    escape: Callable[[str], str]
    bold: Callable[[str], str]
    struck: Callable[[str], str]
    link: Callable[[str, str], str]
    place: Callable[[str, str], str] = "{} ({})".format
    has_anchors: bool = True


def put_on_line(text: str) -> str:
    """Return a text without hidden characters and with single spaces, also at its ends."""
    return _SPACES.sub(" ", remove_hidden_characters(text))


def _escape(text: str) -> str:
    return _LINE_MARK.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", put_on_line(text)))


_MARKDOWN = LineForm(_escape, "**{}**".format, "~~{}~~".format, "[{}]({})".format)


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


def write_line(text: ReportText, form: LineForm, base: Base) -> str:
    """Return a text without its further lines; only links to our own pages (below `base`) are
    kept. Text between `~~` is struck out.
    """
    link = keep_own_link(text.link, base)
    is_linked = bool(link) and (form.has_anchors or not link.startswith("#"))

    def write_link(shown: str) -> str:
        return form.link(shown, link) if is_linked else shown

    words = ""
    for start, end, is_struck in _list_struck(text.text):
        own = "".join(_write_pieces(text, start, end, form))
        words += form.struck(own) if is_struck else own
    if not text.place:
        return write_link(words)
    place = write_link(form.escape(put_on_line(text.place)))
    return form.place(words, place) if words else place


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


def _list_struck(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the start and end of each piece of a text, and whether it is struck out."""
    start, is_struck = 0, False
    marks = re.finditer(STRUCK, text)
    for mark, (is_mark, is_next_struck) in zip(marks, find_struck(text), strict=True):
        if is_mark:
            yield start, mark.start(), is_struck
            start, is_struck = mark.end(), is_next_struck
    yield start, len(text), is_struck


def _write_pieces(text: ReportText, start: int, end: int, form: LineForm) -> Iterator[str]:
    """Yield the plain and the bold pieces of a part of a text."""
    for first, last in (*text.marks, (end, end)):
        for until, is_bold in ((min(first, end), False), (min(last, end), True)):
            if start < until:
                written = form.escape(put_on_line(text.text[start:until]))
                yield form.bold(written) if is_bold else written
                start = until
