"""Renders the templates of the console."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode, urlsplit

from fastapi import Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from envelope.question import Question
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
LABELS = {
    "answered": "Answered",
    "written": "Answered",
    "passages": "Passages shown",
    "clarification": "Asked back",
    "refused": "Not answered",
    "failed": "Failed",
    "superseded": "Replaced by a later message",
    "unresolved": "Not resolved",
    "insufficient_context": "not in the documents",
    "out_of_scope": "outside the topic",
    "scope_unclear": "topic not clear",
    "ambiguous_query": "could mean several things",
    "quality_insufficient": "the answer was not good enough",
    "no_model": "no model is set up",
    "internal_fault": "a fault of this server",
    "deadline": "out of time",
    "dead_letter": "given up after several attempts",
    "person": "asked for a person",
    "person_done": "asked for a person, done",
    "http": "API",
    "openai": "API, as OpenAI",
    "widget": "Website",
    "mcp": "Programs (MCP)",
    "slack": "Slack",
    "telegram": "Telegram",
    "cli": "Terminal",
    "console": "Console",
    "search": "Search",
    "tool_loop": "Tools",
    "review": "Review of a document",
    "swarm": "Research in parts",
    "courtesy": "Greeting",
    "command": "Command",
    "source": "address",
    "origins": "websites",
    "up": "Helpful",
    "down": "Not helpful",
}
"""Readable names of outcomes, reasons, channels, ways and ratings; other values are shown with
spaces instead of underscores.
"""
_ANSWERS = MarkdownIt("zero", {"breaks": True}).enable(
    [
        "backticks", "blockquote", "code", "emphasis", "escape", "fence", "heading", "hr", "list",
        "newline", "strikethrough", "table",
    ]
)  # fmt: skip
"""Allowed Markdown in answers; links and images stay text, and HTML is escaped."""


def _open_item(_: object, tokens: Sequence[Token], place: int, options: object, env: object) -> str:
    """Return the tag of an item with its own number; items that are all written as "1." are
    counted.
    """
    number = tokens[place].info
    return f'<li value="{int(number)}">' if number and int(number) != 1 else "<li>"


def _open_table(*_: object) -> str:
    """Return the opening tags of a table that can be scrolled with the keyboard."""
    return '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>\n'


def _close_table(*_: object) -> str:
    return "</table></div>\n"


_ANSWERS.add_render_rule("list_item_open", _open_item)
_ANSWERS.add_render_rule("table_open", _open_table)
_ANSWERS.add_render_rule("table_close", _close_table)


def render_answer(text: str) -> Markup:
    """Return a Markdown answer as inert HTML."""
    return Markup(_ANSWERS.render(text))  # noqa: S704 - markdown-it escapes all text


def render_line(text: str) -> Markup:
    """Return one line of Markdown, such as the description of a setting, as inert HTML."""
    return Markup(_ANSWERS.renderInline(text))  # noqa: S704 - markdown-it escapes all text


def fill(template: str, **values: Any) -> bytes:
    """Return a rendered page; every value is escaped unless it is `Markup`."""
    components = _environment().get_template("macros.html").make_module(values)
    return _environment().get_template(template).render(values, ui=components).encode()


def show_page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """Return a page as a response."""
    page = fill(template, **values, path=f"{public_path(request)}{PATH}")
    return Response(page, status_code=status, media_type="text/html", headers=HEADERS)


def show_notice(
    request: Request, title: str, text: str, status: int = 200, **values: Any
) -> Response:
    """Return a page with a single notice; `fields` are included in a form that is sent to
    `action`.
    """
    usual = {"fields": {}, "kept": {}, "action": "", "back": ""}
    values = {**usual, **values, "is_error": status >= 400}
    return show_page(request, "notice.html", status, title=title, text=text, **values)


def label(name: str) -> str:
    """Return the readable name of an outcome, a reason, a channel, a way or a rating."""
    return LABELS.get(name) or name.replace("_", " ")


def times(count: int) -> str:
    """Return a count as text, such as "3 times"."""
    return "once" if count == 1 else f"{count} times"


def find_back(request: Request, page: str = "") -> str:
    """Return the path of a console page or, without `page`, of the console page from which the
    request was sent.

    The path of the first page is returned if the request was not sent from the console.
    """
    base = f"{public_path(request)}{PATH}"
    if page:
        return f"{base}/{page}"
    came = urlsplit(request.headers.get("referer", ""))
    if came.netloc != request.headers.get("host") or not came.path.startswith(base):
        return base
    return f"{came.path}?{came.query}" if came.query else came.path


def message_fields_of(message: Record | Question) -> dict[str, str]:
    """Return the fields that identify a message in URLs and forms."""
    return {
        "tenant": message.tenant,
        "assistant": message.assistant,
        "conversation": message.conversation_id,
        "message": message.message_id,
    }


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
        "share": _share,
        "change": _change,
        "label": label,
        "times": times,
        "line": render_line,
        "answer": render_answer,
        "query": urlencode,
        "address": _address,
    }
    return environment


@pass_context
def _moment(context: Context, at: float) -> Markup:
    """Return a time in the time zone of the console."""
    moment = datetime.fromtimestamp(at, context.get("zone") or UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(timespec="minutes"), f"{moment:%Y-%m-%d %H:%M}"
    )


def _dollars(cost: Decimal | None) -> str:
    if cost is None:
        return "unknown"
    return f"${cost:.4f}" if 0 < cost < 1 else f"${cost:.2f}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} s"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:.0f} %"


def _change(now: float | None, before: float | None, unit: str = "%") -> str:
    """Return how a figure changed, in percent, or in percentage points for `unit="points"`."""
    if now is None or before is None or (unit == "%" and not before):
        return ""
    change = float(now - before) * 100 if unit == "points" else float(now / before - 1) * 100
    rounded = round(change)
    unit = "point" if unit == "points" and abs(rounded) == 1 else unit
    sign = "+" if rounded > 0 else "−" if rounded < 0 else "±"
    return f"{sign}{abs(rounded)} {unit}"


def _address(record: Record) -> str:
    """Return the query string that identifies a record."""
    return urlencode(message_fields_of(record))
