"""The route where people read a cited document, opened at the cited heading.

The text of documents is treated as data. Only Markdown blocks and inline code are rendered, so that
a document cannot contain HTML; the page's policy would block it as well. A URL on a host that the
owner trusts becomes a link, even if it is the target of a labelled link. Pictures are loaded only
from the index of this server.
"""

import base64
import hashlib
from collections.abc import Collection, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from importlib.resources import files
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Path, Request, Response
from jinja2 import Environment, Template
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor

from broker.errors import BrokerUnavailableError
from citations.addresses import find_addresses, host_and_port
from citations.verbatim import as_markdown
from gateway.http.access import Principal, choose_language
from gateway.http.context import HttpChannel, may_see
from gateway.http.errors import (
    ForbiddenError,
    HttpError,
    LimitedError,
    UnauthorizedError,
    away,
    waiting_headers,
)
from gateway.http.links import CITED, EARLIER_PATH, PATH, TICKET_FORM, Citation, is_picture
from gateway.http.review_documents import StoredAttachments
from gateway.port import Documents, ReadableDocument, ReadableSection, StoredPicture
from gateway.review_ports import ReportForm, ReportRenderer
from gateway.static_files import read_design
from knowledge.search.section_text import write_section

Ticket = Annotated[str, Path(description="token in the `link` of a source")]
HTML = "text/html"
EXAMPLE = '<!doctype html><html lang="en"><title>Routing rules</title><h1>Routing rules</h1>'
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox"
)
_NOTICE: dict[str, object] = {HTML: {"schema": {"type": "string"}}}
_PAGES: dict[int | str, dict[str, object]] = {
    200: {
        "description": "The document.",
        "content": {HTML: {"schema": {"type": "string"}, "example": EXAMPLE}},
    },
    404: {
        "description": "An expired or invalid link.",
        "content": _NOTICE,
    },
    429: {"description": "The rate limit of the link's key is exceeded.", "content": _NOTICE},
    503: {"description": "The index is unavailable.", "content": _NOTICE},
}

PictureId = Annotated[str, Path(max_length=200, description="token in the `link` of a picture")]
_PICTURES: dict[int | str, dict[str, object]] = {
    200: {"description": "The picture.", "content": {"image/*": {}}},
    404: {"description": "An expired or invalid link, or a picture of another document."},
    429: {"description": "The rate limit of the link's key is exceeded."},
    503: {"description": "The index is unavailable."},
}


class _TicketConvertor(Convertor[str]):
    """Matches tickets in earlier links, but no document ids at the same path."""

    regex = TICKET_FORM

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("ticket", _TicketConvertor())
MOST_CHARACTERS = 400_000
"""A longer document is truncated, because browsers would not display it well."""
LONGEST_LINE = 20_000
"""A longer line is shown without formatting."""
RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur", "yi"})
_READ = ("backticks", "escape", "fence", "list", "newline", "strikethrough", "table")
REGION = '<div class="table" tabindex="0" role="region" aria-label="{}">{}'
"""Wide tables can be scrolled, also with the keyboard, and are announced by screen readers."""


class _Renderer(RendererHTML):
    """Makes scrollable elements accessible with the keyboard."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return super().fence(tokens, idx, options, env).replace("<pre>", PRE, 1)

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        return super().code_block(tokens, idx, options, env).replace("<pre>", PRE, 1)

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Any) -> str:
        address = tokens[idx].content
        if host_and_port(address) not in env["link_hosts"]:
            return super().code_inline(tokens, idx, options, env)
        return _link(address)

    def text(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, env: Any) -> str:
        content, shown, end = tokens[idx].content, "", 0
        for address in find_addresses(content):
            if host_and_port(address.text) in env["link_hosts"]:
                shown += escapeHtml(content[end : address.start]) + _link(address.text)
                end = address.end
        return shown + escapeHtml(content[end:])

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
_BLOCKS = MarkdownIt("zero", {"breaks": True}, renderer_cls=_Renderer).enable(list(_READ))


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; `level` is 2 to 6."""

    text: str
    level: int


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A section of the page; `id` is empty if another section already uses it."""

    id: str
    headings: tuple[Heading, ...]
    body: Markup
    cited: bool
    pictures: tuple[tuple[str, str], ...] = ()


def reader_router(
    channel: HttpChannel,
    documents: Documents | None,
    *,
    attachments: StoredAttachments | None = None,
    reports: ReportRenderer | None = None,
    unavailable: Sequence[type[Exception]] = (),
) -> APIRouter:
    """Return the route. A link contains its own authorization, see `gateway.http.links`.

    Links are opened by people, so errors are shown as a page. `attachments` provides the documents
    of conversations, and `reports` renders review reports; `unavailable` are the errors of stores
    that do not respond.
    """
    router = APIRouter(tags=["documents"])
    gone: tuple[type[Exception], ...] = (BrokerUnavailableError, *unavailable)

    @router.get(
        f"{EARLIER_PATH}{{ticket:ticket}}", response_class=Response, include_in_schema=False
    )
    @router.get(
        f"{PATH}{{ticket}}",
        responses=_PAGES,
        response_class=Response,
        summary="Read a cited document",
    )
    async def read_document(request: Request, ticket: Ticket) -> Response:
        """Show the document that a source's `link` opens, with the cited part marked."""
        citation = channel.links.read(ticket)
        document: ReadableDocument | None = None
        try:
            if citation is not None and citation.message_id:
                report = await _render_report(channel, reports, request, citation)
                if report is not None:
                    return _page(report, policy=_REPORT_POLICY)
            elif citation is not None:
                document = await _find_document(channel, documents, attachments, request, citation)
        except LimitedError as error:
            return _later(channel, request, error)
        except gone:
            return _later(channel, request, away())
        if document is None:
            return _page(_notice(channel, request, "reader_gone"), status=404)
        cited = channel.words("reader_cited", document.language)
        make_page = partial(
            document_page,
            document,
            cited=cited,
            shortened=channel.words("reader_shortened", document.language),
            ticket=ticket,
            link_hosts=channel.link_hosts,
        )
        return _page(await run_in_threadpool(make_page))

    add_picture_route(router, channel, documents, gone)
    return router


def add_picture_route(
    router: APIRouter,
    channel: HttpChannel,
    documents: Documents | None,
    gone: tuple[type[Exception], ...],
) -> None:
    """Add the route for pictures in documents, whose links are authorized like document links."""

    @router.get(
        f"{EARLIER_PATH}{{ticket:ticket}}/{{picture}}",
        response_class=Response,
        include_in_schema=False,
    )
    @router.get(
        f"{PATH}{{ticket}}/{{picture}}",
        responses=_PICTURES,
        response_class=Response,
        summary="See a picture of a cited document",
    )
    async def see_picture(request: Request, ticket: Ticket, picture: PictureId) -> Response:
        """Show a picture from a source's `pictures` to everybody who may read its document."""
        try:
            stored_picture = await _find_picture(channel, documents, request, ticket, picture)
        except LimitedError as error:
            return Response(status_code=error.status, headers=waiting_headers(error))
        except gone:
            return Response(status_code=away().status)
        return (
            Response(status_code=404) if stored_picture is None else _show_picture(stored_picture)
        )


def document_page(
    document: ReadableDocument,
    *,
    cited: str,
    shortened: str = "",
    ticket: str = "",
    link_hosts: Collection[str] = (),
) -> bytes:
    """Return the page of a document, with the label `cited` above the cited part, and the notice
    `shortened` if the document is too long to be shown completely.

    Its pictures have URLs below the URL of the page, which ends with the `ticket`. URLs on
    `link_hosts` become links.
    """
    is_long = sum(len(section.text) for section in document.sections) > MOST_CHARACTERS
    return _fill_template(
        title=document.title,
        crumbs=[crumb for crumb in document.crumbs if crumb != document.title],
        language=document.language,
        parts=list(_parts(document, link_hosts)),
        cited=cited,
        cited_id=CITED,
        notice=shortened if is_long else "",
        ticket=ticket,
    )


def notice_page(title: str, notice: str, *, language: str) -> bytes:
    """Return a page with a notice."""
    return _fill_template(
        title=title, crumbs=[], language=language, parts=[], cited="", cited_id="", notice=notice,
        ticket="",
    )  # fmt: skip


@cache
def document_policy() -> str:
    """Return the Content-Security-Policy of the pages."""
    digest = base64.b64encode(hashlib.sha256(document_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; img-src 'self'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'; "
        "frame-ancestors 'none'; sandbox"
    )


@cache
def document_style() -> str:
    """Return the style of the pages."""
    return read_design() + files(__package__).joinpath("document.css").read_text()


async def _find_picture(
    channel: HttpChannel, documents: Documents | None, request: Request, ticket: str, picture: str
) -> StoredPicture | None:
    """Return a picture in the document of a link, if its caller may still read the document."""
    citation = channel.links.read(ticket)
    if citation is None or documents is None or citation.message_id or citation.conversation_id:
        return None
    caller = await _admit_holder(channel, request, citation)
    if caller is None or not is_picture(picture):
        return None
    name = (citation.tenant, citation.assistant, citation.chunk_id)
    return await documents.picture(*name, picture, caller.groups)


def _show_picture(picture: StoredPicture) -> Response:
    """Return a picture in a response that pages with the widget may display, and that browsers
    never execute.
    """
    headers = {
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Cache-Control": "private, max-age=3600",
        "X-Robots-Tag": "noindex",
    }
    return Response(picture.data, 200, headers, picture.media_type)


async def _find_document(
    channel: HttpChannel,
    documents: Documents | None,
    attachments: StoredAttachments | None,
    request: Request,
    citation: Citation,
) -> ReadableDocument | None:
    """Return the document if the caller of the link may still read it; raises `LimitedError`."""
    caller = await _admit_holder(channel, request, citation)
    if caller is None:
        return None
    if citation.conversation_id:
        return (
            None
            if attachments is None
            else await attachments.citing(citation.question, citation.chunk_id, caller.groups)
        )
    if documents is None:
        return None
    return await documents.citing(
        citation.tenant, citation.assistant, citation.chunk_id, caller.groups
    )


async def _admit_holder(
    channel: HttpChannel, request: Request, citation: Citation
) -> Principal | None:
    """Return the caller of a link if their key is still valid; raises `LimitedError`."""
    try:
        caller = await channel.guard.link_holder(request, citation.key_id, citation.groups)
    except (UnauthorizedError, ForbiddenError):
        return None
    structlog.contextvars.bind_contextvars(tenant=citation.tenant, key=citation.key_id or None)
    allowed = citation.assistant in channel.assistants(caller)
    if caller.tenant != citation.tenant or not allowed:
        return None
    await channel.guard.admit(caller, entered=True)
    return caller


async def _render_report(
    channel: HttpChannel, reports: ReportRenderer | None, request: Request, citation: Citation
) -> bytes | None:
    """Return the page of a report if the caller of the link may still see its message."""
    caller = await _admit_holder(channel, request, citation)
    if caller is None or reports is None:
        return None
    question = citation.question
    journal = await channel.replies.read_journal(question)
    if not journal or journal[-1].kind != "finished" or not may_see(caller, journal[0]):
        return None
    report = journal[-1].fields.get("review_report")
    if not isinstance(report, dict):
        return None
    opens = channel.links.of(caller, question)
    return await reports.render(question, report, ReportForm.HTML, opens)


def _later(channel: HttpChannel, request: Request, error: HttpError) -> Response:
    page = _page(_notice(channel, request, "reader_later"), status=error.status)
    page.headers.update(waiting_headers(error))
    return page


def _notice(channel: HttpChannel, request: Request, key: str) -> bytes:
    language = choose_language(request)
    title = channel.words(f"{key}_title", language)
    return notice_page(title, channel.words(key, language), language=language)


def _page(body: bytes, *, status: int = 200, policy: str = "") -> Response:
    headers = {"Content-Security-Policy": policy or document_policy(), "X-Robots-Tag": "noindex"}
    return Response(body, status, headers, f"{HTML}; charset=utf-8")


def _parts(document: ReadableDocument, link_hosts: Collection[str]) -> Iterator[DocumentPart]:
    above: tuple[str, ...] = ()
    taken, left = {CITED}, MOST_CHARACTERS
    for section in document.sections:
        name = section.anchor or ""
        trusted = [link for link in section.links if host_and_port(link[1]) in link_hosts]
        written = write_section([section.text], {0}, {0: trusted}, goes_on=False)
        text = written.text[: max(0, left)]
        for _, caption in section.pictures:
            text = text.replace(f"![{caption}]", "")  # the picture itself is shown
        left -= len(text)
        if not text and not section.cited and not section.pictures:
            continue
        yield DocumentPart(
            id="" if name in taken else name,
            headings=tuple(_headings(section.heading_path, above)),
            body=_body(section, text, document.title, link_hosts),
            cited=section.cited,
            pictures=section.pictures,
        )
        taken.add(name)
        above = section.heading_path


def _link(address: str) -> str:
    shown = escape(address)
    return f'<a href="{shown}" rel="noopener noreferrer nofollow">{shown}</a>'


def _headings(path: tuple[str, ...], above: tuple[str, ...]) -> Iterator[Heading]:
    """Yield the headings that were not shown yet; a heading without text has no separate
    section.
    """
    known = 0
    while known < min(len(path), len(above)) and path[known] == above[known]:
        known += 1
    for depth in range(min(known, len(path) - 1) if path else 0, len(path)):
        yield Heading(path[depth], min(depth + 2, 6))


def _body(section: ReadableSection, text: str, title: str, link_hosts: Collection[str]) -> Markup:
    name = section.heading_path[-1] if section.heading_path else title
    if section.heading_path and text.strip() == name:
        return Markup("")
    if any(len(line) > LONGEST_LINE for line in text.split("\n")):
        return Markup("<p>{}</p>").format(text)
    shown = _BLOCKS.render(as_markdown(text), {"name": name, "link_hosts": link_hosts})
    return Markup(shown)  # noqa: S704 - markdown-it escapes all text that is not a block


@cache
def _template() -> Template:
    source = files(__package__).joinpath("document.html").read_text()
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)


def _fill_template(*, language: str, **values: object) -> bytes:
    direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"
    style = Markup(document_style())  # noqa: S704 # our own file
    page = _template().render(language=language, direction=direction, style=style, **values)
    return page.encode(errors="replace")
