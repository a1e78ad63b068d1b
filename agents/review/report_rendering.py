"""Renders a report as DOCX, HTML and PDF; the same report always yields the same bytes.

DOCX is a WordprocessingML package without macros, fields, or pictures; HTML is a single page
without scripts, pictures, or external links. PDF requires the optional `reportlab` (the extra
`pdf`). Its font contains the Latin letters of Western languages. Missing letters become "?", and
the last line of the report states how many there are.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html import escape
from io import BytesIO
from itertools import groupby
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from agents.review.requirements import ReviewError
from citations.links import Base
from citations.printed_report import (
    LineForm,
    PrintedReport,
    ReportTable,
    ReportText,
    put_on_line,
    write_line,
)

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_P = "http://schemas.openxmlformats.org/package/2006"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_WIDTH = 9_638
"""The width of the text on an A4 page with margins of 2 cm, in twentieths of a point."""
_TYPES = (
    f'{_HEAD}<Types xmlns="{_P}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
    'relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.document.main+xml"/>'
    '<Override PartName="/word/styles.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.styles+xml"/></Types>'
)
_ROOT = (
    f'{_HEAD}<Relationships xmlns="{_P}/relationships"><Relationship Id="rId1" '
    f'Type="{_R}/officeDocument" Target="word/document.xml"/></Relationships>'
)
_STYLES = (
    ("Title", 32, 1, 0, 200),
    ("Heading1", 26, 1, 240, 120),
    ("Normal", 20, 0, 0, 80),
    ("Cell", 16, 0, 0, 40),
)
"""The name, size in half points, weight, and space before and after (in twentieths of a point) of
each style.

Word processors define their own formats for some names, such as "Text"; "Normal" is the plain style
in all of them.
"""
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "overflow-wrap:anywhere}.table{overflow-x:auto;overflow-wrap:normal}"
    "table{border-collapse:collapse;width:100%}th,td{border:1px solid #767676;padding:.3rem .5rem;"
    "text-align:left;vertical-align:top}table{font-size:.9em}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_PROPERTIES = re.compile(r"<w:r>(?:<w:rPr>((?:<w:[^<>]{1,80}/>){1,9})</w:rPr>)?")
_FONT, _BOLD = "Vera", "VeraBd"
_MARGIN = 56.0
_HTML = LineForm(
    escape,
    "<strong>{}</strong>".format,
    "<s>{}</s>".format,
    lambda shown, link: f'<a href="{escape(link)}">{shown}</a>',
    "{} <small>({})</small>".format,
)


class MissingPdfLibraryError(ReviewError):
    """`reportlab` is not installed; the message states which extra to install."""


class _Writer:
    def __init__(self, base: Base) -> None:
        self._base = base
        self._targets: dict[str, str] = {}
        bold, struck = partial(_style, "<w:b/>"), partial(_style, "<w:strike/>")
        self._form = LineForm(_run, bold, struck, self._link, _place_runs, has_anchors=False)

    def write(self, report: PrintedReport) -> Iterator[str]:
        yield self._paragraph(ReportText(report.title), "Title")
        if report.notice:
            notice = ReportText(report.notice, marks=((0, len(report.notice)),))
            yield self._paragraph(notice, "Normal")
        for part in report.parts:
            yield self._paragraph(ReportText(part.heading), "Heading1")
            for paragraph in part.paragraphs:
                yield self._paragraph(paragraph, "Normal")
            for item in part.items:
                yield self._paragraph(item, "Normal", indent=850 if item.is_detail else 425)
            if part.table is not None:
                yield self._table(part.table)

    def make_relationships(self) -> str:
        """Return the part that contains the link targets."""
        links = "".join(
            f'<Relationship Id="{name}" Type="{_R}/hyperlink" Target="{escape(target)}" '
            'TargetMode="External"/>'
            for target, name in self._targets.items()
        )
        return (
            f'{_HEAD}<Relationships xmlns="{_P}/relationships"><Relationship Id="rStyles" '
            f'Type="{_R}/styles" Target="styles.xml"/>{links}</Relationships>'
        )

    def _table(self, table: ReportTable) -> str:
        columns = len(table.rows[0])
        shares = table.shares or (1 / columns,) * columns
        widths = [round(share * _WIDTH) for share in shares]
        grid = "".join(f'<w:gridCol w:w="{width}"/>' for width in widths)
        rows = "".join(
            self._row(row, widths, is_header=at == 0) for at, row in enumerate(table.rows)
        )
        sides = "".join(
            f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="808080"/>'
            for side in ("top", "left", "bottom", "right", "insideH", "insideV")
        )
        return (
            f'<w:tbl><w:tblPr><w:tblW w:w="{_WIDTH}" w:type="dxa"/><w:tblBorders>{sides}'
            '</w:tblBorders><w:tblLayout w:type="fixed"/></w:tblPr>'
            f"<w:tblGrid>{grid}</w:tblGrid>{rows}</w:tbl>"
        )

    def _row(self, row: tuple[ReportText, ...], widths: list[int], *, is_header: bool) -> str:
        cells = []
        for cell, width in zip(row, widths, strict=True):
            if is_header:
                cell = ReportText(cell.text, marks=((0, len(cell.text)),))
            lines = "".join(
                self._paragraph(report_text, "Cell") for report_text in (cell, *cell.more)
            )
            cells.append(
                f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/></w:tcPr>{lines}</w:tc>'
            )
        repeated = "<w:tblHeader/>" if is_header else ""
        return f"<w:tr><w:trPr><w:cantSplit/>{repeated}</w:trPr>{''.join(cells)}</w:tr>"

    def _paragraph(self, text: ReportText, style: str, *, indent: int = 0) -> str:
        left = f'<w:ind w:left="{indent}"/>' if indent else ""
        runs = write_line(text, self._form, self._base)
        return f'<w:p><w:pPr><w:pStyle w:val="{style}"/>{left}</w:pPr>{runs}</w:p>'

    def _link(self, runs: str, link: str) -> str:
        name = self._targets.setdefault(link, f"rLink{len(self._targets) + 1}")
        blue = _style('<w:color w:val="0563C1"/><w:u w:val="single"/>', runs)
        return f'<w:hyperlink r:id="{name}">{blue}</w:hyperlink>'


class _Letters:
    """Replaces letters that the font does not contain, and counts them."""

    def __init__(self, known: frozenset[int]) -> None:
        self._known = known
        self.lacking = 0

    def replace(self, text: str) -> str:
        self.lacking += sum(ord(sign) not in self._known for sign in text)
        return "".join(sign if ord(sign) in self._known else "?" for sign in text)


def render_docx(report: PrintedReport, *, base: Base = "") -> bytes:
    """Return the file; only links to our own reader are kept (`base` is its URL)."""
    writer = _Writer(base)
    body = "".join(writer.write(report))
    document = (
        f'{_HEAD}<w:document xmlns:w="{_W}" xmlns:r="{_R}"><w:body>{body}<w:sectPr>'
        '<w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1134" w:right="1134" w:bottom="1134" '
        'w:left="1134" w:header="0" w:footer="0" w:gutter="0"/></w:sectPr></w:body></w:document>'
    )
    files = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _ROOT,
        "word/document.xml": document,
        "word/styles.xml": _make_styles(report.language),
        "word/_rels/document.xml.rels": writer.make_relationships(),
    }
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(ZipInfo(name), text.encode(), ZIP_DEFLATED)
    return buffer.getvalue()


def render_html(report: PrintedReport, *, base: Base = "") -> str:
    """Return the page; only links to our own reader are kept (`base` is its URL)."""
    title = escape(put_on_line(report.title))
    lines = [
        "<!doctype html>",
        f'<html lang="{escape(report.language, quote=True)}">',
        '<head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{title}</title><style>{_STYLE}</style></head>",
        f"<body><main><h1>{title}</h1>",
    ]
    if report.notice:
        lines.append(f"<p><strong>{escape(put_on_line(report.notice))}</strong></p>")
    for part in report.parts:
        lines.append(f"<section><h2>{escape(put_on_line(part.heading))}</h2>")
        lines += [f"<p>{_render_html(paragraph, base)}</p>" for paragraph in part.paragraphs]
        if part.items:
            lines.append(_render_items(part.items, base))
        if part.table is not None:
            lines += _render_table(part.table, base)
        lines.append("</section>")
    lines.append("</main></body></html>")
    return "\n".join(lines) + "\n"


def render_pdf(report: PrintedReport, *, base: Base = "") -> bytes:
    """Return the file; raises `MissingPdfLibraryError`. The same report always results in the same
    bytes.
    """
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

    def write(text: str) -> str:
        return escape(letters.replace(text), quote=True)

    bold, struck = f"<font name='{_BOLD}'>{{}}</font>".format, "<strike>{}</strike>".format
    form = LineForm(write, bold, struck, _link_pdf, has_anchors=False)

    def make_paragraph(text: ReportText, style: str, mark: str = "") -> Any:
        return Paragraph(f"{mark}{write_line(text, form, base)}", styles[style])

    story: list[Any] = [make_paragraph(ReportText(report.title), "title")]
    if report.notice:
        story.append(make_paragraph(ReportText(report.notice), "notice"))
    for part in report.parts:
        story += [Spacer(1, 8), make_paragraph(ReportText(part.heading), "heading")]
        story += [make_paragraph(paragraph, "text") for paragraph in part.paragraphs]
        story += [
            make_paragraph(item, "detail" if item.is_detail else "text", "• ")
            for item in part.items
        ]
        if part.table is not None:
            width = A4[0] - 2 * _MARGIN
            story.append(_make_pdf_table(part.table, make_paragraph, width))
    if letters.lacking:
        note = f"{letters.lacking} characters are not in the font and are shown as ?"
        story.append(make_paragraph(ReportText(note), "text"))
    buffer = BytesIO()
    page = SimpleDocTemplate(
        buffer, pagesize=A4, leftMargin=_MARGIN, rightMargin=_MARGIN, topMargin=_MARGIN,
        bottomMargin=_MARGIN, title=letters.replace(put_on_line(report.title).strip()), invariant=1,
    )  # fmt: skip
    page.build(story)
    return buffer.getvalue()


def _run(text: str) -> str:
    clean = "".join(sign if sign.isprintable() else " " for sign in text)
    return f'<w:r><w:t xml:space="preserve">{escape(clean)}</w:t></w:r>'


def _style(properties: str, runs: str) -> str:
    """Return runs with further properties; the schema requires bold, struck and colour in order."""
    return _PROPERTIES.sub(rf"<w:r><w:rPr>\1{properties}</w:rPr>", runs)


def _place_runs(runs: str, place: str) -> str:
    return f"{runs}{_run(' (')}{place}{_run(')')}"


def _make_styles(language: str) -> str:
    styles = "".join(_make_style(*style, escape(language, quote=True)) for style in _STYLES)
    return f'{_HEAD}<w:styles xmlns:w="{_W}">{styles}</w:styles>'


def _make_style(name: str, size: int, bold: int, before: int, after: int, language: str) -> str:
    default = ' w:default="1"' if name == "Normal" else ""
    shown = name.replace("Heading1", "heading 1")
    return (
        f'<w:style w:type="paragraph" w:styleId="{name}"{default}><w:name w:val="{shown}"/>'
        f'<w:pPr>{"<w:keepNext/>" * bold}<w:spacing w:before="{before}" w:after="{after}"/></w:pPr>'
        '<w:rPr><w:rFonts w:ascii="Calibri" '
        f'w:hAnsi="Calibri" w:cs="Calibri"/>{"<w:b/>" * bold}<w:sz w:val="{size}"/>'
        f'<w:lang w:val="{language}"/></w:rPr></w:style>'
    )


def _render_items(items: Sequence[ReportText], base: Base) -> str:
    """Return a list in which details are nested lists below their items."""
    parts: list[str] = []
    for is_detail, own in groupby(items, key=lambda item: item.is_detail):
        listed = "".join(f"<li>{_render_html(report_text, base)}</li>" for report_text in own)
        if is_detail and parts:
            parts[-1] = f"{parts[-1].removesuffix('</li>')}<ul>{listed}</ul></li>"
        else:
            parts.append(listed)
    return f"<ul>{''.join(parts)}</ul>"


def _render_table(table: ReportTable, base: Base) -> Iterator[str]:
    # On a narrow screen, the table scrolls instead of the page, also with the keyboard.
    yield '<div class="table" tabindex="0"><table>'
    for number, row in enumerate(table.rows):
        opening, closing = ('<th scope="col">', "</th>") if number == 0 else ("<td>", "</td>")
        cells = "".join(f"{opening}{_render_html(cell, base)}{closing}" for cell in row)
        yield f"<tr>{cells}</tr>"
    yield "</table></div>"


def _render_html(text: ReportText, base: Base) -> str:
    return "<br>".join(write_line(line, _HTML, base) for line in (text, *text.more))


def _register_fonts() -> frozenset[int]:
    """Return the characters that both fonts contain."""
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    known: set[int] = set()
    for name in (_FONT, _BOLD):
        font = TTFont(name, f"{name}.ttf")
        pdfmetrics.registerFont(font)
        own = set(font.face.charToGlyph)
        known = own if not known else known & own
    return frozenset(known)


def _make_pdf_table(table: ReportTable, make_paragraph: Callable[..., Any], width: float) -> Any:
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


def _link_pdf(shown: str, link: str) -> str:
    return f'<a href="{escape(link)}" color="blue">{shown}</a>'
