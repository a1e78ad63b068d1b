"""The route that searches the documents for other programs."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from gateway.api_keys import Scope
from gateway.http.access import Principal
from gateway.http.context import AssistantName, HttpChannel, require_scope
from gateway.http.library import LONGEST_QUERY, MOST_PASSAGES, CallersLibrary
from gateway.port import FoundPassage


class SearchQuery(BaseModel, frozen=True, extra="forbid"):
    """A search of the documents that the key may read."""

    query: str = Field(
        min_length=1,
        max_length=LONGEST_QUERY,
        description="a question or key words, in any language",
        examples=["How do I configure routing rules?"],
    )
    limit: int = Field(10, ge=1, le=MOST_PASSAGES, description="maximum number of passages")


class SearchHit(FoundPassage, frozen=True):
    """A passage of a document, as it stands there, with its place."""

    link: str | None = Field(
        None,
        description="link that opens the document at its heading, as in the sources of an answer",
    )


class SearchAnswer(BaseModel):
    """The passages that were found, best first; nobody judged whether they answer the query."""

    passages: list[SearchHit]
    quality: str = Field(description="`excellent`, `good` or `poor`, by the index's calibration")
    total: int = Field(description="number of all passages that were found")
    corrected: str | None = Field(None, description="the query with its spelling corrected")
    fallbacks: list[str] = Field([], description="parts of the search that failed")


class SearchRoutes:
    """Searches the documents of the assistants that a caller may ask."""

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
            counts as a question; no model writes an answer."""
            found, linked = await self._library.search(
                caller, assistant, wanted.query, limit=wanted.limit
            )
            return SearchAnswer(
                passages=[SearchHit(**one.passage.model_dump(), link=one.link) for one in linked],
                quality=found.quality,
                total=found.total,
                corrected=found.corrected,
                fallbacks=[*found.fallbacks],
            )

        return router
