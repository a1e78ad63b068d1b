"""Executes requests of other processes in the process that owns an index."""

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
"""How often the progress of an ingestion is published."""
MOST_NOTES = 1000
"""Maximum number of notes about files, per kind, that are returned to the requesting process."""
REPLACED = (
    "the index was replaced by an index with another embedding model; restart this "
    "process to use the new index"
)

Ingest = Callable[[OpenIndex, Sequence[FetchedSource], ProgressReport], Awaitable[IngestionResult]]
"""Ingests sources into an index that this process owns."""


class IngestionHandler:
    """Ingests, lists and removes documents for other processes.

    `own` is the tenant and assistant of `knowledge`; `ingest` reads sources into an index. Progress
    is written to the request's journal as drafts, unless `drafts` is None.
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
        """Execute the request in the payload: an ingestion, or an action on documents."""
        question = delivery.question
        knowledge = self._knowledge.of(question.tenant, question.assistant, own=self._own)
        if knowledge is None:
            error = (
                f"this process does not serve the assistant {question.assistant!r} of "
                f"{question.tenant!r}"
            )
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
        sources = [
            FetchedSource.model_validate(source) for source in read_list(payload.get(SOURCES))
        ]
        report = ProgressReport()
        async with open_tasks() as tasks:
            publishing = tasks.create_task(self._publish_progress(delivery, report))
            result = await self._ingest_sources(knowledge, sources, report)
            publishing.cancel()
        shown = replace(
            result,
            warned=result.warned[:MOST_NOTES],
            skipped=result.skipped[:MOST_NOTES],
            left_out=result.left_out[:MOST_NOTES],
        )
        fields: Fields = RESULT.dump_python(shown, mode="json")
        return fields

    async def _publish_progress(self, delivery: Delivery, report: ProgressReport) -> None:
        """Write the progress to the journal of the request every second, replacing the previous
        draft.

        Raises `IngestionStopped` if the request has ended.
        """
        last = ""
        while self._drafts is not None:
            await asyncio.sleep(PROGRESS_SECONDS)
            progress: Fields = {"draft": report.root, COUNTS: list(report.counts)}
            try:
                last = await self._drafts.write_draft(delivery, progress, replaces=last)
            except BrokerUnavailableError:
                # The next update includes this progress.
                continue
            if not last:
                raise IngestionStopped("it was stopped")
