"""Publishes drafts of the answer that a run is writing.

A draft is a courtesy: it never fails the run, and never holds it up for longer than a moment.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import structlog

from broker.errors import BrokerUnavailableError
from broker.ports import DraftWriter
from broker.values import Delivery
from envelope.encoding import escape_surrogates
from envelope.sources import AnswerDraft

log = structlog.get_logger("worker")

MOST_DRAFTS = 200
"""Drafts of one run; each has at least one sentence more than the one before."""
LONGEST_DRAFT = 32_000
"""In characters; the rest of a longer answer is shown when it is complete."""
WRITE_SECONDS = 1.0
NOT_WRITTEN = "draft_not_written"


@dataclass(slots=True)
class _DraftedRun:
    """The drafts of one run; `last` is the id of the one that is in the journal."""

    delivery: Delivery
    last: str = ""
    count: int = 0
    is_over: bool = False


_present: ContextVar[_DraftedRun | None] = ContextVar("drafted_run", default=None)


@contextmanager
def draft_for(delivery: Delivery) -> Iterator[None]:
    """Publish the drafts of the block for this delivery."""
    token = _present.set(_DraftedRun(delivery))
    try:
        yield
    finally:
        _present.reset(token)


class RunDrafts:
    """The publisher that agents receive; see `agents.agent.DraftPublisher`."""

    def __init__(self, writer: DraftWriter, count_fallback: Callable[[str, str], None]) -> None:
        self._writer = writer
        self._count_fallback = count_fallback

    async def publish(self, draft: AnswerDraft) -> None:
        """Write a draft in the place of the run's draft before; outside of a run nothing happens.

        After a failure the run publishes nothing more, because its answer is about to come whole.
        """
        run = _present.get()
        if run is None or run.is_over:
            return
        if run.count >= MOST_DRAFTS or len(draft.text) > LONGEST_DRAFT:
            run.is_over = True
            return
        run.count += 1
        delivery = run.delivery
        name = f"{draft.attempt}.{delivery.entry_id}.{delivery.count}.{draft.writing}"
        fields = {
            **draft.model_dump(mode="json", exclude={"writing"}),
            "text": escape_surrogates(draft.text),
            "draft": name,
        }
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                written = await self._writer.write_draft(delivery, fields, replaces=run.last)
        except (BrokerUnavailableError, TimeoutError) as error:
            run.is_over = True
            self._count_fallback(delivery.role, NOT_WRITTEN)
            log.warning(NOT_WRITTEN, role=delivery.role, error=type(error).__name__)
            return
        run.last, run.is_over = written, not written
