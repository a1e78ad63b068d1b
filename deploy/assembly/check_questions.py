"""Collects the questions of an assistant for checks, and checks how an ingestion changes their
results.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import structlog

from config.settings import Settings
from deploy.assembly.languages import language_of, make_detector
from deploy.assembly.model_choice import find_context_tokens
from deploy.assembly.open_records import FILE, connect_records, finding_gaps
from deploy.errors import CommandError
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
    """Return the options for searches, which are the same as in the search for an answer."""
    return SearchOptions(
        limit=settings.search_results_limit,
        context_tokens=find_context_tokens(settings),
        language_of=language_of(make_detector(settings.refdesk_data), settings.default_language),
        groups=groups,
    )


def has_records(settings: Settings) -> bool:
    """Return whether there are records; a database file is not created for a check."""
    is_there = settings.records_url is not None or (settings.refdesk_data / FILE).exists()
    return settings.keeps_records and is_there


async def collect_questions(
    settings: Settings, store: "RecordStore", embedder: "Embedder"
) -> list[CheckQuestion]:
    """Return the questions of an assistant: marked, verified, and most frequent ones, and gaps.

    Raises `RecordsUnavailableError` and `EmbeddingFailed`.
    """
    from knowledge.calibration.queries import find_foreign_questions
    from records.checks import CheckStore, find_asked, list_gaps, list_verified, read_answered
    from records.verified import VerifiedStore

    name = settings.assistant_key
    unrelated = find_foreign_questions(settings.default_language) or find_foreign_questions("en")
    marked = await asyncio.to_thread(CheckStore(store).list_marked, name)
    verified = await asyncio.to_thread(VerifiedStore(store).list_of, name)
    answered = await asyncio.to_thread(read_answered, store, name, time.time())
    asked = await find_asked(answered, embedder.embed_questions, unrelated)
    async with finding_gaps(settings, store, embedder) as finder:
        gaps = list_gaps(await finder.find(name))
    return [*marked, *list_verified(answer.answer for answer in verified), *asked, *gaps]


@asynccontextmanager
async def checking(
    settings: Settings, opened: OpenIndex, sources: Sequence[str]
) -> AsyncIterator[Callable[[], Awaitable[None]] | None]:
    """Check how the enclosed ingestion changes the results of the questions; the console shows
    them.

    Provides the callback that the ingestion calls before its first change, or None without records.
    A failed check is logged and does not affect the ingestion.
    """
    from records.checks import CheckStore

    if not has_records(settings):
        yield None
        return
    began: tuple[RecordStore, list[CheckQuestion], Snapshot] | None = None
    options = make_options(settings)
    async with AsyncExitStack() as closing:

        async def begin() -> None:
            nonlocal began
            with _logging_failure(sources):
                store = connect_records(settings.records_url, settings.refdesk_data)
                closing.push_async_callback(asyncio.to_thread, store.close)
                await asyncio.to_thread(store.prepare)
                questions = await collect_questions(settings, store, opened.embedder)
                if questions:
                    began = store, questions, await take_snapshot(opened, questions, options)

        yield begin
        if began is None:
            return
        store, questions, before = began
        with _logging_failure(sources):
            after = await take_snapshot(opened, questions, options, since=before)
            result = await asyncio.to_thread(compare, questions, before, after)
            if result.added or result.changed or result.removed:
                name = settings.assistant_key
                await asyncio.to_thread(CheckStore(store).save, name, sources, result)


@contextmanager
def _logging_failure(sources: Sequence[str]) -> Iterator[None]:
    """Log why a check failed."""
    from records.store import RecordsUnavailableError

    try:
        yield
    except (CommandError, KnowledgeError, RecordsUnavailableError) as error:
        log.warning("check_not_made", sources=list(sources), error=str(error))
