"""Renders a report as one HTML page without scripts, pictures or foreign links."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from citations.links import Base, keep_own_link
from citations.printed_report import PrintedReport, ReportTable, ReportText, split_marks
from envelope.encoding import remove_hidden_characters

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}th,td{border:1px solid #767676;padding:.3rem .5rem;"
    "text-align:left;vertical-align:top}table{font-size:.9em}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render_html(report: PrintedReport, *, base: Base = "") -> str:
    """Return the page; only links to our own reader remain (`base` is its address)."""
    title = _escape(report.title)
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
        lines.append(f"<p><strong>{_escape(report.notice)}</strong></p>")
    for part in report.parts:
        lines.append(f"<section><h2>{_escape(part.heading)}</h2>")
        lines += [f"<p>{_render(one, base)}</p>" for one in part.paragraphs]
        if part.items:
            lines.append(_render_items(part.items, base))
        if part.table is not None:
            lines += _render_table(part.table, base)
        lines.append("</section>")
    lines.append("</main></body></html>")
    return "\n".join(lines) + "\n"


def _render_items(items: Sequence[ReportText], base: Base) -> str:
    """Return a list, in which details are a list below their item."""
    parts: list[str] = []
    for is_detail, own in groupby(items, key=lambda one: one.is_detail):
        listed = "".join(f"<li>{_render(one, base)}</li>" for one in own)
        if is_detail and parts:
            parts[-1] = f"{parts[-1].removesuffix('</li>')}<ul>{listed}</ul></li>"
        else:
            parts.append(listed)
    return f"<ul>{''.join(parts)}</ul>"


def _render_table(table: ReportTable, base: Base) -> Iterator[str]:
    yield "<table>"
    for number, row in enumerate(table.rows):
        opening, closing = ('<th scope="col">', "</th>") if number == 0 else ("<td>", "</td>")
        cells = "".join(f"{opening}{_render(cell, base)}{closing}" for cell in row)
        yield f"<tr>{cells}</tr>"
    yield "</table>"


def _render(text: ReportText, base: Base) -> str:
    return "<br>".join(_render_line(one, base) for one in (text, *text.more))


def _render_line(text: ReportText, base: Base) -> str:
    words = "".join(
        f"<strong>{_escape(piece)}</strong>" if is_marked else _escape(piece)
        for piece, is_marked in split_marks(text)
    )
    if not text.place:
        return _link(words, text.link, base)
    place = _link(_escape(text.place), text.link, base)
    return f"{words} <small>({place})</small>" if words else place


def _link(shown: str, target: str, base: Base) -> str:
    link = keep_own_link(target, base)
    return f'<a href="{escape(link, quote=True)}">{shown}</a>' if link else shown


def _escape(text: str) -> str:
    clean = remove_hidden_characters(text)
    before, after = (" " if clean[at : at + 1].isspace() else "" for at in (0, len(clean) - 1))
    return escape(f"{before}{' '.join(clean.split())}{after}", quote=True)
