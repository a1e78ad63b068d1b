"""Renders a document as an inert page: no script, no request, no form.

The text of documents is data. Only blocks and inline code of Markdown are rendered, so that a
document contains no link, no image and no HTML; the page's policy would block them as well.
"""

import base64
import hashlib
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from jinja2 import Environment, Template
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup

from gateway.http.links import CITED
from gateway.port import ReadableDocument, ReadableSection

MOST_CHARACTERS = 400_000
"""A longer document is cut, because a browser would not display it well."""
LONGEST_LINE = 20_000
"""A longer line is shown without formatting."""
RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur", "yi"})
_READ = ("backticks", "blockquote", "code", "fence", "hr", "list", "table")
REGION = '<div class="table" tabindex="0" role="region" aria-label="{}">{}'
"""Wide tables scroll, also by keys; a screen reader announces the table."""


class _Renderer(RendererHTML):
    """Makes scrolling elements reachable by keys."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return super().fence(tokens, idx, options, env).replace("<pre>", PRE, 1)

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return super().code_block(tokens, idx, options, env).replace("<pre>", PRE, 1)

    def table_open(
        self,
        tokens: Sequence[Token],
        idx: int,
        options: OptionsDict,
        env: MutableMapping[str, Any],
    ) -> str:
        name = escape(str(env.get("name", "")))
        return REGION.format(name, self.renderToken(tokens, idx, options, env))

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return f"{self.renderToken(tokens, idx, options, env)}</div>"


PRE = '<pre tabindex="0">'
_BLOCKS = MarkdownIt("zero", renderer_cls=_Renderer).enable(list(_READ))


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; `level` is 2 to 6."""

    text: str
    level: int


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A section of the page; `id` is empty if another part has it already."""

    id: str
    headings: tuple[Heading, ...]
    body: Markup
    cited: bool


def document_page(document: ReadableDocument, *, cited: str) -> bytes:
    """Return the page of a document; the label `cited` is above the cited part."""
    return _fill_template(
        title=document.title,
        crumbs=[crumb for crumb in document.crumbs if crumb != document.title],
        language=document.language,
        parts=list(_parts(document)),
        cited=cited,
        cited_id=CITED,
        notice="",
    )


def notice_page(title: str, notice: str, *, language: str) -> bytes:
    """Return a page with a notice."""
    return _fill_template(
        title=title, crumbs=[], language=language, parts=[], cited="", cited_id="", notice=notice
    )


@cache
def policy() -> str:
    """Return the Content-Security-Policy of the pages."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; sandbox"
    )


def _parts(document: ReadableDocument) -> Iterator[DocumentPart]:
    above: tuple[str, ...] = ()
    taken, left = {CITED}, MOST_CHARACTERS
    for section in document.sections:
        name = section.anchor or ""
        text = section.text[: max(0, left)]
        left -= len(text)
        if not text and not section.cited:
            continue
        yield DocumentPart(
            id="" if name in taken else name,
            headings=tuple(_headings(section.heading_path, above)),
            body=_body(section, text, document.title),
            cited=section.cited,
        )
        taken.add(name)
        above = section.heading_path


def _headings(path: tuple[str, ...], above: tuple[str, ...]) -> Iterator[Heading]:
    """Yield the headings that were not shown yet: one without text has no separate section."""
    known = 0
    while known < min(len(path), len(above)) and path[known] == above[known]:
        known += 1
    for depth in range(min(known, len(path) - 1) if path else 0, len(path)):
        yield Heading(path[depth], min(depth + 2, 6))


def _body(section: ReadableSection, text: str, title: str) -> Markup:
    name = section.heading_path[-1] if section.heading_path else title
    if section.heading_path and text.strip() == name:
        return Markup("")
    if any(len(line) > LONGEST_LINE for line in text.split("\n")):
        return Markup("<p>{}</p>").format(text)
    # markdown-it escapes all text that is not a block.
    return Markup(_BLOCKS.render(text, {"name": name}))  # noqa: S704


@cache
def _template() -> Template:
    source = files(__package__).joinpath("document.html").read_text()
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)


@cache
def _style() -> str:
    return files(__package__).joinpath("document.css").read_text()


def _fill_template(*, language: str, **values: object) -> bytes:
    direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"
    style = Markup(_style())  # noqa: S704 # our own file
    page = _template().render(language=language, direction=direction, style=style, **values)
    return page.encode(errors="replace")
