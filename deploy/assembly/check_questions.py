"""Collects the questions of an assistant for checks, and checks what an ingestion does to them."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from config.settings import Settings
from deploy.assembly.languages import language_of, make_detector
from deploy.assembly.model_choice import find_context_tokens
from deploy.assembly.open_records import FILE, connect_records, finding_gaps, keeps_records
from knowledge.checks import (
    CheckQuestion,
    SearchOptions,
    Snapshot,
    compare,
    take_snapshot,
)
from knowledge.errors import KnowledgeError
from knowledge.open_index import OpenIndex

if TYPE_CHECKING:
    from knowledge.embedding import Embedder
    from records.store import RecordStore

log = structlog.get_logger("ingestion")


def make_options(settings: Settings, groups: tuple[str, ...] = ()) -> SearchOptions:
    """Return how questions are searched for: as the search of an answer."""
    return SearchOptions(
        limit=settings.search_results_limit,
        context_tokens=find_context_tokens(settings),
        language_of=language_of(settings, make_detector(settings)),
        groups=groups,
    )


def has_records(settings: Settings) -> bool:
    """Return whether there are records; a database file is not made for a check."""
    is_there = settings.records_url is not None or (settings.refdesk_data / FILE).exists()
    return keeps_records(settings) and is_there


async def collect_questions(
    settings: Settings, store: "RecordStore", embedder: "Embedder", *, with_gaps: bool = True
) -> list[CheckQuestion]:
    """Return the questions of an assistant: marked, verified, most asked, and its gaps.

    Raises `RecordsUnavailableError` and `EmbeddingFailed`.
    """
    from knowledge.calibration.queries import find_foreign_questions
    from records.checks import CheckStore, find_asked, list_gaps, list_verified, read_answered
    from records.verified import VerifiedStore

    name = (settings.tenant, settings.assistant)
    unrelated = find_foreign_questions(settings.default_language) or find_foreign_questions("en")
    marked = await asyncio.to_thread(CheckStore(store).list_marked, name)
    verified = await asyncio.to_thread(VerifiedStore(store).list_of, name)
    answered = await asyncio.to_thread(read_answered, store, name, time.time())
    asked = await find_asked(answered, embedder.embed_questions, unrelated)
    gaps: Sequence[CheckQuestion] = ()
    if with_gaps:
        async with finding_gaps(settings, store, embedder) as finder:
            gaps = list_gaps(await finder.find(name))
    return [*marked, *list_verified(one.answer for one in verified), *asked, *gaps]


@asynccontextmanager
async def checking(
    settings: Settings, opened: OpenIndex, sources: Sequence[str]
) -> AsyncIterator[None]:
    """Check what the ingestion inside does to the questions; the console shows the result.

    A check that cannot be made is logged, and leaves the ingestion alone.
    """
    if not has_records(settings):
        yield
        return
    from records.store import RecordsUnavailableError

    store, options = connect_records(settings), make_options(settings)
    questions: list[CheckQuestion] = []
    before: Snapshot | None = None
    try:
        try:
            await asyncio.to_thread(store.prepare)
            questions = await collect_questions(settings, store, opened.embedder)
            before = await take_snapshot(opened, questions, options) if questions else None
        except (KnowledgeError, RecordsUnavailableError) as error:
            log.warning("check_not_made", sources=list(sources), error=str(error))
        yield
        if before is not None:
            await _save(settings, store, opened, questions, options, before, sources)
    finally:
        await asyncio.to_thread(store.close)


async def _save(
    settings: Settings,
    store: "RecordStore",
    opened: OpenIndex,
    questions: Sequence[CheckQuestion],
    options: SearchOptions,
    before: Snapshot,
    sources: Sequence[str],
) -> None:
    from records.checks import CheckStore
    from records.store import RecordsUnavailableError

    try:
        after = await take_snapshot(opened, questions, options, since=before)
        result = await asyncio.to_thread(compare, questions, before, after)
        if result.added or result.changed or result.removed:
            name = (settings.tenant, settings.assistant)
            await asyncio.to_thread(CheckStore(store).save, name, sources, result)
    except (KnowledgeError, RecordsUnavailableError) as error:
        log.warning("check_not_made", sources=list(sources), error=str(error))
