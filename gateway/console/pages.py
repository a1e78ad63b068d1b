"""Fills the templates of the console."""

from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from gateway.public_path import public_path
from records.record import Record

PATH = "/console"
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    # Without a referrer at all, browsers state no origin for a form.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_ANSWERS = MarkdownIt("zero").enable(
    ["backticks", "blockquote", "code", "emphasis", "fence", "heading", "hr", "list", "table"]
)
"""What answers may contain; links and images stay text, and HTML is escaped."""


def _open_table(*_: object) -> str:
    """Return the beginning of a table that a keyboard can scroll."""
    return '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>\n'


def _close_table(*_: object) -> str:
    return "</table></div>\n"


_ANSWERS.add_render_rule("table_open", _open_table)
_ANSWERS.add_render_rule("table_close", _close_table)


def render_answer(text: str) -> Markup:
    """Return an answer in Markdown as inert HTML."""
    return Markup(_ANSWERS.render(text))  # noqa: S704 - markdown-it escapes all text


def fill(template: str, **values: Any) -> bytes:
    """Return a page; every value is escaped unless it is `Markup`."""
    return _environment().get_template(template).render(values).encode()


def show_page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """Return a page as a response."""
    page = fill(template, **values, path=f"{public_path(request)}{PATH}")
    return Response(page, status_code=status, media_type="text/html", headers=HEADERS)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(str(files("gateway.console") / "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "moment": _moment,
        "dollars": _dollars,
        "seconds": _seconds,
        "query": urlencode,
        "address": _address,
    }
    return environment


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def _dollars(cost: Decimal | None) -> str:
    if cost is None:
        return "unknown"
    return f"${cost:.4f}" if 0 < cost < 1 else f"${cost:.2f}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} s"


def _address(record: Record) -> str:
    """Return the query that names a record."""
    return urlencode(
        {
            "tenant": record.tenant,
            "assistant": record.assistant,
            "conversation": record.conversation_id,
            "message": record.message_id,
        }
    )
