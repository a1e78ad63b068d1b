"""Publishes drafts of an answer while a model writes it.

Publishing never fails a run, and delays it by at most `WRITE_SECONDS` per draft.
"""

import asyncio
from collections.abc import Callable

import structlog

from broker.errors import BrokerUnavailableError
from broker.ports import DraftWriter
from broker.values import Delivery
from envelope.encoding import escape_surrogates
from envelope.sources import AnswerDraft

log = structlog.get_logger("worker")

MOST_DRAFTS = 200
"""Maximum number of drafts per run; each has at least one more sentence than the previous one."""
LONGEST_DRAFT = 32_000
"""Maximum number of characters of a draft; a longer answer is shown only once it is complete."""
WRITE_SECONDS = 1.0
NOT_WRITTEN = "draft_not_written"


class RunDrafts:
    """Publishes the drafts of one run; see `envelope.run.DraftPublisher`."""

    def __init__(
        self, writer: DraftWriter, count_fallback: Callable[[str, str], None], delivery: Delivery
    ) -> None:
        self._writer = writer
        self._count_fallback = count_fallback
        self._delivery = delivery
        self._last = ""
        """The id of the latest draft in the journal."""
        self._count = 0
        self._is_over = False

    async def publish(self, draft: AnswerDraft) -> None:
        """Write a draft to the journal, replacing the previous one of this run.

        After a failure, the run publishes no more drafts; the complete answer is delivered anyway.
        """
        if self._is_over:
            return
        if self._count >= MOST_DRAFTS or len(draft.text) > LONGEST_DRAFT:
            self._is_over = True
            return
        self._count += 1
        delivery = self._delivery
        name = f"{draft.attempt}.{delivery.entry_id}.{delivery.count}.{draft.writing}"
        fields = {
            **draft.model_dump(mode="json", exclude={"writing"}),
            "text": escape_surrogates(draft.text),
            "draft": name,
        }
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                written = await self._writer.write_draft(delivery, fields, replaces=self._last)
        except (BrokerUnavailableError, TimeoutError) as error:
            self._is_over = True
            self._count_fallback(delivery.role, NOT_WRITTEN)
            log.warning(NOT_WRITTEN, role=delivery.role, error=type(error).__name__)
            return
        self._last, self._is_over = written, not written
