"""The routes for the owner's programs: the documents of an index, and the gaps in them.

The reader for cited documents is in a different module: `gateway.http.routes.documents`.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel, Field, StringConstraints

from gateway.api_keys import Scope
from gateway.console.gap_export import GapList, report_gap
from gateway.http.access import Principal
from gateway.http.context import AssistantName, HttpChannel, require_scope
from gateway.http.errors import InvalidRequestError, unknown
from gateway.http.routes.attachments import UPLOAD, FileName, read_upload
from gateway.port import CatalogEntry, CatalogSelection, DocumentWriter
from records.gaps import STATES, GapFinder

BASE = "/v1/documents"
LONGEST_ID = 2_000
LONGEST_PATTERN = 500
MOST_PATTERNS = 20
MOST_PER_PAGE = 500
PER_PAGE = 100

DocumentId = Annotated[
    str,
    Path(
        min_length=1,
        max_length=LONGEST_ID,
        description="the id of a document, which may contain slashes; encode `%` as `%25`",
        examples=["handbook/hr/leave"],
    ),
]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_PATTERN)]
Patterns = Annotated[
    list[Pattern] | None,
    Query(
        alias="pattern",
        max_length=MOST_PATTERNS,
        description="an id, a source, a web address, a folder in one of these, or a pattern of "
        "these with `*`, `?` and `[...]`; repeatable",
        examples=[["handbook/hr"]],
    ),
]
State = Annotated[
    str, Query(pattern=f"^({'|'.join(STATES)})?$", description="only gaps of this state")
]


class IndexedDocument(BaseModel):
    """A document of the index, without its text."""

    id: str = Field(examples=["handbook/hr/leave"])
    title: str
    source: str = Field(description="the file, relative to the ingested folder")
    url: str | None = Field(None, description="URL of the document, if it has one")
    language: str = Field(description="ISO 639-1")
    kind: str | None = Field(None, description="changelog or index; omitted for other pages")
    chunks: int = Field(description="number of passages")
    version: str | None = Field(None, description="the version that the document states")
    groups: list[str] = Field([], description="groups that may read the document; empty: everybody")


class DocumentPage(BaseModel):
    """A page of the list, by id."""

    documents: list[IndexedDocument]
    total: int = Field(description="number of all documents that the patterns select")
    next: str | None = Field(
        None, description="value of `after` for the next page; null: last page"
    )


class RemovedDocuments(BaseModel):
    """The result of a removal by pattern."""

    removed: int = Field(description="number of removed documents")


class FailedFile(BaseModel):
    """A file, or a document in it, that was not written."""

    source: str
    reason: str


class WrittenDocuments(BaseModel):
    """The result of an upload."""

    written: int = Field(description="number of documents of the file that are new or changed")
    unchanged: int = Field(description="number of documents that were already in the index")
    failed: list[FailedFile] = Field(
        [], description="files that could not be read, with the reason"
    )


class Catalog:
    """Lists, writes, and removes the documents of the assistants that a caller may use."""

    def __init__(self, channel: HttpChannel, documents: DocumentWriter) -> None:
        self._channel = channel
        self._documents = documents

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(tags=["documents"])
        operator = Depends(require_scope(self._channel, Scope.DOCUMENTS))
        self._add_readers(router, operator)
        self._add_removers(router, operator)
        self._add_writer(router)
        return router

    def _add_writer(self, router: APIRouter) -> None:
        writer = Depends(require_scope(self._channel, Scope.WRITE))

        @router.post(
            BASE, status_code=201, openapi_extra=UPLOAD, summary="Write a document into the index"
        )
        async def write_document(
            caller: Annotated[Principal, writer],
            request: Request,
            name: FileName,
            assistant: AssistantName = None,
        ) -> WrittenDocuments:
            """Store the file in the request body under its name, which may include folders, and
            index it. It replaces a file with the same name.
            """
            own = self._name(caller, assistant)
            data = await read_upload(request)
            result = await self._documents.write(*own, name, data)
            if result.refused:
                raise InvalidRequestError(result.refused, code="invalid_request", param="name")
            return WrittenDocuments(
                written=result.written,
                unchanged=result.unchanged,
                failed=[FailedFile(source=place, reason=why) for place, why in result.failures],
            )

    def _add_readers(self, router: APIRouter, operator: Any) -> None:
        @router.get(BASE, response_model_exclude_none=True, summary="List documents")
        async def list_documents(
            caller: Annotated[Principal, operator],
            assistant: AssistantName = None,
            pattern: Patterns = None,
            after: Annotated[str, Query(max_length=LONGEST_ID)] = "",
            limit: Annotated[int, Query(ge=1, le=MOST_PER_PAGE)] = PER_PAGE,
        ) -> DocumentPage:
            """List the documents of an assistant, for all groups, in pages."""
            selection = _by_patterns(pattern)
            name = self._name(caller, assistant)
            entries, total = await self._documents.find(
                *name, selection, after=after, limit=limit + 1
            )
            page = [_show(entry) for entry in entries[:limit]]
            following = page[-1].id if len(entries) > limit else None
            return DocumentPage(documents=page, total=total, next=following)

        @router.get(
            f"{BASE}/{{document_id:path}}",
            response_model_exclude_none=True,
            summary="Show a document of the index",
        )
        async def show_document(
            caller: Annotated[Principal, operator],
            document_id: DocumentId,
            assistant: AssistantName = None,
        ) -> IndexedDocument:
            """Return the entry of one document."""
            selection = CatalogSelection(ids=(document_id,))
            name = self._name(caller, assistant)
            entries, _ = await self._documents.find(*name, selection, limit=1)
            if not entries:
                raise unknown("document")
            return _show(entries[0])

    def _add_removers(self, router: APIRouter, operator: Any) -> None:
        @router.delete(BASE, summary="Remove documents by pattern")
        async def remove_documents(
            caller: Annotated[Principal, operator],
            assistant: AssistantName = None,
            pattern: Patterns = None,
        ) -> RemovedDocuments:
            """Remove all documents that match the patterns from the index. Files are kept."""
            if not pattern:
                raise InvalidRequestError(
                    "specify at least one pattern of the documents to remove",
                    code="invalid_request",
                    param="pattern",
                )
            name = self._name(caller, assistant)
            count = await self._documents.remove(*name, _by_patterns(pattern))
            return RemovedDocuments(removed=count)

        @router.delete(
            f"{BASE}/{{document_id:path}}", status_code=204, summary="Remove a document by id"
        )
        async def remove_document(
            caller: Annotated[Principal, operator],
            document_id: DocumentId,
            assistant: AssistantName = None,
        ) -> Response:
            """Remove a document from the index if it exists. Its file is kept."""
            name = self._name(caller, assistant)
            await self._documents.remove(*name, CatalogSelection(ids=(document_id,)))
            return Response(status_code=204)

    def _name(self, caller: Principal, assistant: str | None) -> tuple[str, str]:
        """Return the tenant and the assistant. Raises `InvalidRequestError` if the name is
        invalid.
        """
        question = self._channel.desk(caller, assistant).name_question("-", "-")
        return question.tenant, question.assistant


def gaps_router(channel: HttpChannel, gaps: GapFinder) -> APIRouter:
    """Return the route."""
    router = APIRouter(tags=["gaps"])
    operator = Depends(require_scope(channel, Scope.DOCUMENTS))

    @router.get("/v1/gaps", summary="List gaps in the documents")
    async def list_gaps(
        caller: Annotated[Principal, operator], assistant: AssistantName = None, state: State = ""
    ) -> GapList:
        """Return the questions that were refused, ended with an unanswered clarification, or were
        rated as not helpful, grouped by meaning.
        """
        question = channel.desk(caller, assistant).name_question("-", "-")
        listed = await gaps.find((question.tenant, question.assistant))
        return GapList(gaps=[report_gap(gap) for gap in listed if state in ("", gap.state)])

    return router


def _by_patterns(patterns: Sequence[str] | None) -> CatalogSelection:
    return CatalogSelection(patterns=tuple(patterns) if patterns else None)


def _show(entry: CatalogEntry) -> IndexedDocument:
    return IndexedDocument(
        id=entry.id,
        title=entry.title,
        source=entry.source,
        url=entry.url,
        language=entry.language,
        kind=entry.kind or None,
        chunks=entry.chunks,
        version=entry.version or None,
        groups=list(entry.groups),
    )
