"""Collects the questions of an assistant for checks, and checks what an ingestion does to them."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
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


class _IngestionCheck:
    """The questions of an assistant before and after an ingestion."""

    def __init__(self, settings: Settings, opened: OpenIndex, sources: Sequence[str]) -> None:
        self._settings = settings
        self._opened = opened
        self._sources = sources
        self._questions: Sequence[CheckQuestion] = ()
        self.store: RecordStore | None = None
        self.before: Snapshot | None = None

    async def attempt(self, step: Callable[[], Awaitable[None]]) -> None:
        """Run a step; log why it failed."""
        from records.store import RecordsUnavailableError

        try:
            await step()
        except (CommandError, KnowledgeError, RecordsUnavailableError) as error:
            log.warning("check_not_made", sources=list(self._sources), error=str(error))

    async def begin(self) -> None:
        """Search for the questions before the ingestion, if there are any."""
        settings = self._settings
        self.store = connect_records(settings.records_url, settings.refdesk_data)
        await asyncio.to_thread(self.store.prepare)
        embedder = self._opened.embedder
        self._questions = await collect_questions(settings, self.store, embedder)
        if self._questions:
            options = make_options(settings)
            self.before = await take_snapshot(self._opened, self._questions, options)

    async def end(self) -> None:
        """Search for them again, and store the result if documents differ."""
        from records.checks import CheckStore

        if self.before is None or self.store is None:
            return
        options = make_options(self._settings)
        after = await take_snapshot(self._opened, self._questions, options, since=self.before)
        result = await asyncio.to_thread(compare, self._questions, self.before, after)
        if result.added or result.changed or result.removed:
            name, store = self._settings.assistant_key, CheckStore(self.store)
            await asyncio.to_thread(store.save, name, self._sources, result)


def make_options(settings: Settings, groups: tuple[str, ...] = ()) -> SearchOptions:
    """Return how questions are searched for: as the search of an answer."""
    return SearchOptions(
        limit=settings.search_results_limit,
        context_tokens=find_context_tokens(settings),
        language_of=language_of(make_detector(settings.refdesk_data), settings.default_language),
        groups=groups,
    )


def has_records(settings: Settings) -> bool:
    """Return whether there are records; a database file is not made for a check."""
    is_there = settings.records_url is not None or (settings.refdesk_data / FILE).exists()
    return settings.keeps_records and is_there


async def collect_questions(
    settings: Settings, store: "RecordStore", embedder: "Embedder"
) -> list[CheckQuestion]:
    """Return the questions of an assistant: marked, verified, most asked, and its gaps.

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
    return [*marked, *list_verified(one.answer for one in verified), *asked, *gaps]


@asynccontextmanager
async def checking(
    settings: Settings, opened: OpenIndex, sources: Sequence[str]
) -> AsyncIterator[Callable[[], Awaitable[None]] | None]:
    """Check what the ingestion inside does to the questions; the console shows the result.

    Provides what the ingestion calls before it changes something; None without records. A check
    that cannot be made is logged, and leaves the ingestion alone.
    """
    if not has_records(settings):
        yield None
        return
    check = _IngestionCheck(settings, opened, sources)
    try:
        yield partial(check.attempt, check.begin)
        if check.before is not None:
            await check.attempt(check.end)
    finally:
        if check.store is not None:
            await asyncio.to_thread(check.store.close)
