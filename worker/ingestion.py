"""Executes the requests of other processes to the owner of an index."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from broker.errors import BrokerUnavailableError
from broker.ports import DraftWriter
from broker.values import Delivery, Fields, Finish, Settlement
from envelope.envelope import Envelope
from envelope.json_values import read_list
from envelope.outcome import Outcome
from envelope.role import Role
from knowledge.errors import IngestionStopped, KnowledgeError
from knowledge.ingestion_report import IngestionResult, ProgressReport
from knowledge.open_index import OpenIndex
from knowledge.ordered_tasks import open_tasks
from knowledge.owner_requests import (
    COUNTS,
    DOCUMENTS,
    RESULT,
    SOURCES,
    OwnerRequest,
    act_on_documents,
    act_on_library,
)
from knowledge.source_registry import FetchedSource

PROGRESS_SECONDS = 1.0
"""How often the progress of an ingestion is told."""
MOST_NOTES = 1000
"""The most warnings about files that the owner's process returns to the command."""
REPLACED = (
    "an index with another embedding model has replaced its index; restart it, so that it answers "
    "from the new one"
)

Ingest = Callable[[OpenIndex, Sequence[FetchedSource], ProgressReport], Awaitable[IngestionResult]]
"""Reads sources into an index that this process owns."""


class IngestionHandler:
    """Ingests, lists and removes documents for other processes.

    `own` is the assistant of `knowledge`, `ingest` reads sources into an index. The journal of a
    request has the progress as drafts; without `drafts` nobody is told.
    """

    role = Role.INGESTION

    def __init__(
        self,
        own: tuple[str, str],
        knowledge: OpenIndex,
        ingest: Ingest,
        drafts: DraftWriter | None = None,
    ) -> None:
        self._own = own
        self._knowledge = knowledge
        self._ingest_sources = ingest
        self._drafts = drafts
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
                    fields = await self._ingest(delivery, knowledge, envelope.payload)
        except KnowledgeError as error:
            return Finish(Outcome.FAILED, {"outcome": "failed", "error": str(error)})
        return Finish(Outcome.ANSWERED, {"outcome": "answered", **fields})

    async def _act(self, knowledge: OpenIndex, request: OwnerRequest) -> Fields:
        if request.action in ("search", "read", "browse"):
            return await act_on_library(knowledge, request)
        return await act_on_documents(knowledge.index, request)

    async def _ingest(self, delivery: Delivery, knowledge: OpenIndex, payload: Fields) -> Fields:
        sources = [FetchedSource.model_validate(one) for one in read_list(payload.get(SOURCES))]
        report = ProgressReport()
        async with open_tasks() as tasks:
            telling = tasks.create_task(self._tell(delivery, report))
            result = await self._ingest_sources(knowledge, sources, report)
            telling.cancel()
        shown = replace(
            result,
            warned=result.warned[:MOST_NOTES],
            skipped=result.skipped[:MOST_NOTES],
            left_out=result.left_out[:MOST_NOTES],
        )
        fields: Fields = RESULT.dump_python(shown, mode="json")
        return fields

    async def _tell(self, delivery: Delivery, report: ProgressReport) -> None:
        """Write the progress into the journal of a request, each in the place of the one before.

        Raises `IngestionStopped` when the request has ended: nobody waits for its result.
        """
        last = ""
        while self._drafts is not None:
            await asyncio.sleep(PROGRESS_SECONDS)
            told: Fields = {"draft": report.root, COUNTS: list(report.counts)}
            try:
                last = await self._drafts.write_draft(delivery, told, replaces=last)
            except BrokerUnavailableError:
                # The next one tells more.
                continue
            if not last:
                raise IngestionStopped("it was stopped")
