"""Searches and reads documents for other programs, subject to their groups and limits, and adds
links.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from broker.values import Fields
from gateway.api_keys import Scope
from gateway.http.access import Principal
from gateway.http.context import AssistantName, HttpChannel, require_scope
from gateway.http.errors import ForbiddenError, unknown
from gateway.port import SearchableLibrary
from gateway.text import clean_text
from knowledge.library.shown import LibraryDocument, LibraryFindings, LibraryPassage

MOST_PASSAGES = 50
LONGEST_QUERY = 2_000


@dataclass(frozen=True, slots=True)
class LinkedPassage:
    """A passage, and the link that opens its document at its heading."""

    passage: LibraryPassage
    link: str | None


class CallersLibrary:
    """The documents of an assistant that a caller may read; raises `HttpError`.

    Callers who may ask may also search, because answers show the same passages. A search counts as
    a question. Public keys are rejected, because a search does not belong to a conversation that a
    visitor opened.
    """

    def __init__(self, channel: HttpChannel, library: SearchableLibrary) -> None:
        self._channel = channel
        self._library = library

    async def search(
        self, caller: Principal, assistant: str | None, query: str, *, limit: int
    ) -> tuple[LibraryFindings, Sequence[LinkedPassage]]:
        """Return the results of a search, and its passages with their links."""
        tenant, name = self._enter(caller, assistant)
        wanted = clean_text(query, longest=LONGEST_QUERY)
        await self._channel.guard.admit_question(caller, once=uuid4().hex)
        findings = await self._library.search(
            tenant, name, wanted, groups=caller.groups, limit=limit
        )
        question = self._channel.desk(caller, name).name_question("-", "-")
        opens = self._channel.links.of(caller, question)
        linked = [
            LinkedPassage(
                passage,
                opens(_as_source(passage.chunk_id, passage.url, passage.path, passage.anchor)),
            )
            for passage in findings.passages
        ]
        return findings, linked

    async def read(
        self, caller: Principal, assistant: str | None, document_id: str
    ) -> tuple[LibraryDocument, str | None]:
        """Return a document and the link that opens it. A document of other groups is treated as
        nonexistent.
        """
        tenant, name = self._enter(caller, assistant)
        document = await self._library.read(tenant, name, document_id, groups=caller.groups)
        if document is None:
            raise unknown("document")
        question = self._channel.desk(caller, name).name_question("-", "-")
        source = _as_source(document.first_chunk_id, document.url, document.source, None)
        return document, self._channel.links.of(caller, question)(source)

    async def browse(
        self, caller: Principal, assistant: str | None, *, after: str, limit: int
    ) -> Sequence[LibraryDocument]:
        """Return the documents that come after an id, without their text."""
        tenant, name = self._enter(caller, assistant)
        return await self._library.browse(
            tenant, name, groups=caller.groups, after=after, limit=limit
        )

    def _enter(self, caller: Principal, assistant: str | None) -> tuple[str, str]:
        caller.need(Scope.ASK)
        refuse_public(caller)
        question = self._channel.desk(caller, assistant).name_question("-", "-")
        return question.tenant, question.assistant


class SearchQuery(BaseModel, frozen=True, extra="forbid"):
    """A search in the documents that the key may read."""

    query: str = Field(
        min_length=1,
        max_length=LONGEST_QUERY,
        description="question or keywords, in any language",
        examples=["How do I configure routing rules?"],
    )
    limit: int = Field(10, ge=1, le=MOST_PASSAGES, description="maximum number of passages")


class SearchHit(LibraryPassage, frozen=True):
    """An unchanged passage of a document, with its location."""

    link: str | None = Field(
        None,
        description="link to the passage in the document, as in the sources of an answer",
    )


class SearchAnswer(BaseModel):
    """The passages found, best first. Whether they answer the query has not been checked."""

    passages: list[SearchHit]
    quality: str = Field(
        description="`excellent`, `good` or `poor`, according to the calibration of the index"
    )
    total: int = Field(description="total number of passages found")
    corrected: str | None = Field(None, description="the query with its spelling corrected")
    fallbacks: list[str] = Field([], description="parts of the search that failed")


class SearchRoutes:
    """Searches the documents of the assistants that a caller may use."""

    def __init__(self, channel: HttpChannel, library: CallersLibrary) -> None:
        self._channel = channel
        self._library = library

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(tags=["documents"])
        ask = Depends(require_scope(self._channel, Scope.ASK))

        @router.post("/v1/search", response_model_exclude_none=True, summary="Search the documents")
        async def search_documents(
            caller: Annotated[Principal, ask], wanted: SearchQuery, assistant: AssistantName = None
        ) -> SearchAnswer:
            """Return passages of the documents that the groups of the caller may read. A search
            counts as a question, but no model writes an answer.
            """
            findings, linked = await self._library.search(
                caller, assistant, wanted.query, limit=wanted.limit
            )
            return SearchAnswer(
                passages=[
                    SearchHit(**passage.passage.model_dump(), link=passage.link)
                    for passage in linked
                ],
                quality=findings.quality,
                total=findings.total,
                corrected=findings.corrected,
                fallbacks=[*findings.fallbacks],
            )

        return router


def refuse_public(caller: Principal) -> None:
    """Raise `ForbiddenError` for a public key."""
    if caller.public:
        raise ForbiddenError(
            "this request requires a secret key; a public key can only be used for "
            "conversations on its websites",
            code="secret_key_required",
        )


def _as_source(chunk_id: str, url: str | None, path: str, anchor: str | None) -> Fields:
    return {"chunk_id": chunk_id, "url": url, "path": path, "anchor": anchor}
