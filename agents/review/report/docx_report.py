"""Renders a report as DOCX: a package of WordprocessingML, without macros, fields or pictures.

The same report gives the same bytes.
"""

from collections.abc import Iterator
from html import escape
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from citations.links import Base, keep_own_link
from citations.printed_report import PrintedReport, ReportTable, ReportText, split_marks
from envelope.encoding import remove_hidden_characters

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_P = "http://schemas.openxmlformats.org/package/2006"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_WIDTH = 9_638
"""Of the text on an A4 page with margins of 2 cm, in twentieths of a point."""
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
"""Names, sizes in half points, bold, space before and after in twentieths of a point.

Word processors have own formats for some names, such as "Text": "Normal" is the plain one in all.
"""


def render_docx(report: PrintedReport, *, base: Base = "") -> bytes:
    """Return the file; only links to our own reader remain (`base` is its address)."""
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


class _Writer:
    def __init__(self, base: Base) -> None:
        self._base = base
        self._targets: dict[str, str] = {}

    def write(self, report: PrintedReport) -> Iterator[str]:
        yield self._paragraph(ReportText(report.title), "Title")
        if report.notice:
            notice = ReportText(report.notice, marks=((0, len(report.notice)),))
            yield self._paragraph(notice, "Normal")
        for part in report.parts:
            yield self._paragraph(ReportText(part.heading), "Heading1")
            for one in part.paragraphs:
                yield self._paragraph(one, "Normal")
            for one in part.items:
                yield self._paragraph(one, "Normal", indent=850 if one.is_detail else 425)
            if part.table is not None:
                yield self._table(part.table)

    def make_relationships(self) -> str:
        """Return the part that has the targets of the links."""
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
            lines = "".join(self._paragraph(one, "Cell") for one in (cell, *cell.more))
            cells.append(
                f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/></w:tcPr>{lines}</w:tc>'
            )
        repeated = "<w:tblHeader/>" if is_header else ""
        return f"<w:tr><w:trPr><w:cantSplit/>{repeated}</w:trPr>{''.join(cells)}</w:tr>"

    def _paragraph(self, text: ReportText, style: str, *, indent: int = 0) -> str:
        left = f'<w:ind w:left="{indent}"/>' if indent else ""
        runs = "".join(_run(piece, is_bold=is_bold) for piece, is_bold in split_marks(text))
        if text.place:
            place = self._link(_run(text.place), text.link)
            runs = f"{runs}{_run(' (')}{place}{_run(')')}" if text.text else place
        else:
            runs = self._link(runs, text.link)
        return f'<w:p><w:pPr><w:pStyle w:val="{style}"/>{left}</w:pPr>{runs}</w:p>'

    def _link(self, runs: str, target: str) -> str:
        link = keep_own_link(target, self._base)
        if not link or link.startswith("#"):
            return runs
        name = self._targets.setdefault(link, f"rLink{len(self._targets) + 1}")
        blue = '<w:rPr><w:color w:val="0563C1"/><w:u w:val="single"/></w:rPr>'
        return (
            f'<w:hyperlink r:id="{name}">{runs.replace("<w:r>", f"<w:r>{blue}", 1)}</w:hyperlink>'
        )


def _run(text: str, *, is_bold: bool = False) -> str:
    bold = "<w:rPr><w:b/></w:rPr>" if is_bold else ""
    clean = "".join(sign if sign.isprintable() else " " for sign in remove_hidden_characters(text))
    return f'<w:r>{bold}<w:t xml:space="preserve">{escape(clean)}</w:t></w:r>'


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
