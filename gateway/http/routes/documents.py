"""The route where people read a cited document, at the cited heading."""

from collections.abc import Sequence
from typing import Annotated

import structlog
from fastapi import APIRouter, Path, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor

from broker.errors import BrokerUnavailableError
from gateway.http.access import Principal
from gateway.http.context import HttpChannel, may_see
from gateway.http.error_responses import away, waiting_headers
from gateway.http.errors import ForbiddenError, HttpError, LimitedError, UnauthorizedError
from gateway.http.language import choose_language
from gateway.http.links import EARLIER_PATH, PATH, TICKET_FORM, Citation
from gateway.http.routes.document_page import document_page, notice_page
from gateway.http.routes.document_page import policy as document_policy
from gateway.port import Documents, ReadableDocument
from gateway.reviewing.document_ports import Attachments
from gateway.reviewing.report_ports import ReportForm, ReportRenderer

Ticket = Annotated[str, Path(description="part of the `link` of a source")]
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
    429: {"description": "The key of the link has no requests left.", "content": _NOTICE},
    503: {"description": "The index is unavailable.", "content": _NOTICE},
}


class _TicketConvertor(Convertor[str]):
    """Matches tickets of earlier links, but no ids of documents at the same address."""

    regex = TICKET_FORM

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("ticket", _TicketConvertor())


def reader_router(
    channel: HttpChannel,
    documents: Documents | None,
    *,
    attachments: Attachments | None = None,
    reports: ReportRenderer | None = None,
    unavailable: Sequence[type[Exception]] = (),
) -> APIRouter:
    """Return the route; a link contains its authorization, see `gateway.http.links`.

    A link is opened by a person, so that errors are shown as a page. `attachments` has the
    documents of conversations, `reports` renders those of reviews; `unavailable` are errors of
    stores that do not answer.
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
        """Show the document that a source's `link` opens, the cited part marked."""
        citation = channel.links.read(ticket)
        try:
            if citation is not None and citation.message_id:
                report = await _render_report(channel, reports, request, citation)
                if report is not None:
                    return _page(report, policy=_REPORT_POLICY)
                citation = None
            found = (
                None
                if citation is None
                else await _find_document(channel, documents, attachments, request, citation)
            )
        except LimitedError as error:
            return _later(channel, request, error)
        except gone:
            return _later(channel, request, away())
        if found is None:
            return _page(_notice(channel, request, "reader_gone"), status=404)
        cited = channel.words("reader_cited", found.language)
        return _page(await run_in_threadpool(document_page, found, cited=cited))

    return router


async def _find_document(
    channel: HttpChannel,
    documents: Documents | None,
    attachments: Attachments | None,
    request: Request,
    citation: Citation,
) -> ReadableDocument | None:
    """Return the document if the link's caller may still read it; raises `LimitedError`."""
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
    """Return the caller of a link whose key is still valid; raises `LimitedError`."""
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
    """Return the page of a report whose message the link's caller may still see."""
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
