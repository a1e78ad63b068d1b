"""The route where people read a cited document, at the heading that was cited."""

from typing import Annotated

import structlog
from fastapi import APIRouter, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from gateway.http.document_page import document_page, notice_page, policy
from gateway.http.door import Door
from gateway.http.errors import ForbiddenError, UnauthorizedError
from gateway.http.language import preferred_language
from gateway.http.links import LONGEST_TICKET, PATH, Citation
from gateway.port import Documents, ReadableDocument

Ticket = Annotated[
    str,
    Path(
        max_length=LONGEST_TICKET,
        pattern=r"^[A-Za-z0-9=._-]+$",
        description="as it stands in the `link` of a source",
    ),
]
HTML = "text/html"
EXAMPLE = '<!doctype html><html lang="en"><title>Routing rules</title><h1>Routing rules</h1>'
_PAGES: dict[int | str, dict[str, object]] = {
    200: {
        "description": "The document.",
        "content": {HTML: {"schema": {"type": "string"}, "example": EXAMPLE}},
    },
    404: {
        "description": "A link that is not good any more, or never was.",
        "content": {HTML: {"schema": {"type": "string"}}},
    },
}


def reader_router(door: Door, documents: Documents) -> APIRouter:
    """Return the route; a link is its own key, see `gateway.http.links`."""
    router = APIRouter(tags=["documents"])

    @router.get(
        f"{PATH}{{ticket}}",
        responses=_PAGES,
        response_class=Response,
        summary="Read a cited document",
    )
    async def read_document(request: Request, ticket: Ticket) -> Response:
        """Show the document that a source's `link` opens, the cited part marked."""
        citation = door.links.read(ticket)
        found = None if citation is None else await _found(door, documents, request, citation)
        if found is None:
            language = preferred_language(request)
            title = door.words("reader_gone_title", language)
            gone = door.words("reader_gone", language)
            return _page(notice_page(title, gone, language=language))
        cited = door.words("reader_cited", found.language)
        body = await run_in_threadpool(document_page, found, cited=cited)
        return _page(body, status=200)

    return router


async def _found(
    door: Door, documents: Documents, request: Request, citation: Citation
) -> ReadableDocument | None:
    """Return the document, for whom it still may be shown; raises `LimitedError`."""
    try:
        caller = await door.guard.link_holder(request, citation.key_id)
    except (UnauthorizedError, ForbiddenError):
        return None
    structlog.contextvars.bind_contextvars(tenant=citation.tenant, key=citation.key_id or None)
    allowed = citation.assistant in door.assistants(caller)
    if caller.tenant != citation.tenant or not allowed:
        return None
    await door.guard.admit(caller)
    return await documents.citing(citation.tenant, citation.assistant, citation.chunk_id)


def _page(body: bytes, *, status: int = 404) -> Response:
    headers = {"Content-Security-Policy": policy(), "X-Robots-Tag": "noindex"}
    return Response(body, status, headers, f"{HTML}; charset=utf-8")
