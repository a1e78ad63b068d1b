"""Executes the requests of other processes to the owner of an index."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from broker.values import Delivery, Fields, Finish, Settlement
from envelope.envelope import Envelope
from envelope.json_values import read_list
from envelope.outcome import Outcome
from envelope.role import Role
from knowledge.errors import KnowledgeError
from knowledge.ingestion_report import IngestionResult
from knowledge.open_index import OpenIndex
from knowledge.owner_requests import (
    DOCUMENTS,
    RESULT,
    SOURCES,
    OwnerRequest,
    act_on_documents,
    act_on_library,
)
from knowledge.source_registry import FetchedSource

MOST_NOTES = 1000
"""The most warnings about files that the owner's process returns to the command."""
REPLACED = (
    "an index with another embedding model has replaced its index; restart it, so that it answers "
    "from the new one"
)

Ingest = Callable[[OpenIndex, Sequence[FetchedSource]], Awaitable[IngestionResult]]
"""Reads sources into an index that this process owns."""


class IngestionHandler:
    """Ingests, lists and removes documents for other processes.

    `own` is the assistant of `knowledge`, `ingest` reads sources into an index.
    """

    role = Role.INGESTION

    def __init__(self, own: tuple[str, str], knowledge: OpenIndex, ingest: Ingest) -> None:
        self._own = own
        self._knowledge = knowledge
        self._ingest_sources = ingest
        self._one_at_a_time = asyncio.Lock()

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        """Execute the request of the payload: ingest paths, or list or remove documents."""
        question = delivery.question
        knowledge = self._knowledge.of(question.tenant, question.assistant, own=self._own)
        if knowledge is None:
            error = f"it serves no assistant {question.assistant!r} of {question.tenant!r}"
            return Finish(Outcome.FAILED, {"outcome": "failed", "error": error})
        if knowledge.is_replaced():
            return Finish(Outcome.FAILED, {"outcome": "failed", "error": REPLACED})
        try:
            await knowledge.follow()
            if DOCUMENTS in envelope.payload:
                request = OwnerRequest.model_validate(envelope.payload)
                fields = await self._act(knowledge, request)
            else:
                async with self._one_at_a_time:
                    fields = await self._ingest(knowledge, envelope.payload)
        except KnowledgeError as error:
            return Finish(Outcome.FAILED, {"outcome": "failed", "error": str(error)})
        return Finish(Outcome.ANSWERED, {"outcome": "answered", **fields})

    async def _act(self, knowledge: OpenIndex, request: OwnerRequest) -> Fields:
        if request.action in ("search", "read", "browse"):
            return await act_on_library(knowledge, request)
        return await act_on_documents(knowledge.index, request)

    async def _ingest(self, knowledge: OpenIndex, payload: Fields) -> Fields:
        sources = [FetchedSource.model_validate(one) for one in read_list(payload.get(SOURCES))]
        result = await self._ingest_sources(knowledge, sources)
        shown = replace(
            result,
            warned=result.warned[:MOST_NOTES],
            skipped=result.skipped[:MOST_NOTES],
            left_out=result.left_out[:MOST_NOTES],
        )
        fields: Fields = RESULT.dump_python(shown, mode="json")
        return fields
