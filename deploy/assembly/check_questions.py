"""Collects the questions of an assistant for checks, and checks how an ingestion changes their
results.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import structlog

from config.settings import Settings
from deploy.assembly.languages import language_of, make_detector
from deploy.assembly.model_choice import find_context_tokens
from deploy.assembly.open_records import FILE, connect_records, finding_gaps
from deploy.errors import CommandError
from knowledge.checks import CheckQuestion, MakeRequest, Snapshot, compare, take_snapshot
from knowledge.errors import KnowledgeError
from knowledge.open_index import OpenIndex
from knowledge.port import SearchRequest

if TYPE_CHECKING:
    from records.store import RecordStore

log = structlog.get_logger("ingestion")


def searching_as_for_answers(settings: Settings, groups: tuple[str, ...] = ()) -> MakeRequest:
    """Return a function that makes the same search as for the answer to a question."""
    detect = language_of(make_detector(settings.refdesk_data), settings.default_language)
    context_tokens = find_context_tokens(settings)

    def make_request(question: CheckQuestion) -> SearchRequest:
        return SearchRequest(
            question=question.text,
            text=question.text,
            language=question.language or detect(question.text),
            limit=settings.search_results_limit,
            # Composing a context takes longer than the search, and only facts need it.
            context_tokens=context_tokens if question.facts else 0,
            groups=tuple({*groups, *question.groups}),
            reranked=True,
        )

    return make_request


async def collect_questions(settings: Settings, opened: OpenIndex) -> list[CheckQuestion]:
    """Return the questions of an assistant: marked, verified, and most frequent ones, and gaps.

    Raises `CommandError`, `RecordsUnavailableError` and `EmbeddingFailed`.
    """
    from knowledge.calibration.queries import find_foreign_questions
    from records.checks import CheckStore, find_asked, list_gaps, list_verified, read_answered
    from records.verified import VerifiedStore

    # A database file is not created for a check.
    is_there = settings.records_url is not None or (settings.refdesk_data / FILE).exists()
    if not (settings.keeps_records and is_there):
        return []
    name = settings.assistant_key
    unrelated = find_foreign_questions(settings.default_language) or find_foreign_questions("en")
    async with _open_store(settings) as store:
        marked = await asyncio.to_thread(CheckStore(store).list_marked, name)
        verified = await asyncio.to_thread(VerifiedStore(store).list_of, name)
        answered = await asyncio.to_thread(read_answered, store, name, time.time())
        asked = await find_asked(answered, opened.embedder.embed_questions, unrelated)
        async with finding_gaps(settings, store, opened.embedder) as finder:
            gaps = list_gaps(await finder.find(name))
    return [*marked, *list_verified(answer.answer for answer in verified), *asked, *gaps]


@asynccontextmanager
async def checking(
    settings: Settings, opened: OpenIndex, sources: Sequence[str]
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Check how the enclosed ingestion changes the results of the questions; the console shows
    them.

    Provides the callback that the ingestion calls before its first change. A failed check is logged
    and does not affect the ingestion.
    """
    from records.checks import CheckStore

    began: tuple[list[CheckQuestion], Snapshot] | None = None
    make_request = searching_as_for_answers(settings)

    async def begin() -> None:
        nonlocal began
        with _logging_failure(sources):
            questions = await collect_questions(settings, opened)
            if questions:
                began = questions, await take_snapshot(opened, questions, make_request)

    yield begin
    if began is None:
        return
    questions, before = began
    with _logging_failure(sources):
        after = await take_snapshot(opened, questions, make_request, since=before)
        result = await asyncio.to_thread(compare, questions, before, after)
        if result.added or result.changed or result.removed:
            async with _open_store(settings) as store:
                name = settings.assistant_key
                await asyncio.to_thread(CheckStore(store).save, name, sources, result)


@asynccontextmanager
async def _open_store(settings: Settings) -> AsyncIterator["RecordStore"]:
    store = connect_records(settings.records_url, settings.refdesk_data)
    try:
        await asyncio.to_thread(store.prepare)
        yield store
    finally:
        await asyncio.to_thread(store.close)


@contextmanager
def _logging_failure(sources: Sequence[str]) -> Iterator[None]:
    """Log and suppress the errors of a failed check inside the context."""
    from records.store import RecordsUnavailableError

    try:
        yield
    except (CommandError, KnowledgeError, RecordsUnavailableError) as error:
        log.warning("check_not_made", sources=list(sources), error=str(error))
