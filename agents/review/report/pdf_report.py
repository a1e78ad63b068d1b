"""Renders a report as PDF, with the optional `reportlab` (the extra `pdf`).

The font is the one that `reportlab` carries; it has the Latin letters of Western languages. Letters
that it lacks become "?", and the last line of the report says how many.
"""

from collections.abc import Callable
from html import escape
from io import BytesIO
from typing import Any

from agents.review.errors import ReviewError
from citations.links import Base, keep_own_link
from citations.printed_report import PrintedReport, ReportTable, ReportText, split_marks
from envelope.encoding import remove_hidden_characters

_FONT, _BOLD = "Vera", "VeraBd"
_MARGIN = 56.0


class MissingPdfLibraryError(ReviewError):
    """`reportlab` is not installed; the message names the extra."""


def render_pdf(report: PrintedReport, *, base: Base = "") -> bytes:
    """Return the file; raises `MissingPdfLibraryError`. The same report gives the same bytes."""
    try:
        from reportlab.lib.pagesizes import A4
        from reportlab.lib.styles import ParagraphStyle
        from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer
    except ImportError as error:
        raise MissingPdfLibraryError(
            "expected reportlab for PDF, found none: pip install 'refdesk[pdf]'"
        ) from error
    letters = _Letters(_register_fonts())
    styles = {
        name: ParagraphStyle(name, fontName=font, fontSize=size, leading=size * 1.35, spaceAfter=4)
        for name, font, size in (
            ("title", _BOLD, 16), ("notice", _BOLD, 9), ("heading", _BOLD, 12), ("text", _FONT, 9),
            ("detail", _FONT, 9), ("cell", _FONT, 7.5),
        )
    }  # fmt: skip
    styles["detail"].leftIndent = 14

    def make_paragraph(text: ReportText, style: str, mark: str = "") -> Any:
        return Paragraph(f"{mark}{_render(text, base, letters.replace)}", styles[style])

    story: list[Any] = [make_paragraph(ReportText(report.title), "title")]
    if report.notice:
        story.append(make_paragraph(ReportText(report.notice), "notice"))
    for part in report.parts:
        story += [Spacer(1, 8), make_paragraph(ReportText(part.heading), "heading")]
        story += [make_paragraph(one, "text") for one in part.paragraphs]
        story += [
            make_paragraph(one, "detail" if one.is_detail else "text", "• ") for one in part.items
        ]
        if part.table is not None:
            width = A4[0] - 2 * _MARGIN
            story.append(_make_table(part.table, make_paragraph, width))
    if letters.lacking:
        note = f"{letters.lacking} characters are not in the font and are shown as ?"
        story.append(make_paragraph(ReportText(note), "text"))
    buffer = BytesIO()
    page = SimpleDocTemplate(
        buffer, pagesize=A4, leftMargin=_MARGIN, rightMargin=_MARGIN, topMargin=_MARGIN,
        bottomMargin=_MARGIN, title=letters.replace(report.title), invariant=1,
    )  # fmt: skip
    page.build(story)
    return buffer.getvalue()


class _Letters:
    """Replaces letters that the font lacks, and counts them."""

    def __init__(self, known: frozenset[int]) -> None:
        self._known = known
        self.lacking = 0

    def replace(self, text: str) -> str:
        plain = " ".join(remove_hidden_characters(text).split())
        self.lacking += sum(ord(sign) not in self._known for sign in plain)
        return "".join(sign if ord(sign) in self._known else "?" for sign in plain)


def _register_fonts() -> frozenset[int]:
    """Return the characters that both fonts have."""
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    known: set[int] = set()
    for name in (_FONT, _BOLD):
        font = TTFont(name, f"{name}.ttf")
        pdfmetrics.registerFont(font)
        own = set(font.face.charToGlyph)
        known = own if not known else known & own
    return frozenset(known)


def _make_table(table: ReportTable, make_paragraph: Callable[..., Any], width: float) -> Any:
    from reportlab.lib import colors
    from reportlab.platypus import LongTable, TableStyle

    columns = len(table.rows[0])
    shares = table.shares or (1 / columns,) * columns
    rows = [
        [[make_paragraph(line, "cell") for line in (cell, *cell.more)] for cell in row]
        for row in table.rows
    ]
    style = TableStyle(
        [("GRID", (0, 0), (-1, -1), 0.5, colors.grey), ("VALIGN", (0, 0), (-1, -1), "TOP")]
    )
    return LongTable(rows, colWidths=[share * width for share in shares], repeatRows=1, style=style)


def _render(text: ReportText, base: Base, replace: Callable[[str], str]) -> str:
    words = "".join(
        f"<font name='{_BOLD}'>{_escape(piece, replace)}</font>"
        if is_marked
        else _escape(piece, replace)
        for piece, is_marked in split_marks(text)
    )
    if not text.place:
        return _link(words, text.link, base)
    place = _link(_escape(text.place, replace), text.link, base)
    return f"{words} ({place})" if words else place


def _escape(text: str, replace: Callable[[str], str]) -> str:
    before, after = (" " if text[at : at + 1].isspace() else "" for at in (0, len(text) - 1))
    return escape(f"{before}{replace(text)}{after}", quote=True)


def _link(shown: str, target: str, base: Base) -> str:
    link = keep_own_link(target, base)
    if not link or link.startswith("#"):
        return shown
    return f'<a href="{escape(link, quote=True)}" color="blue">{shown}</a>'
