"""Assembles the records: the database, the rules of retention, and the task that writes them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from broker.ports import Broker
from config.settings import Settings
from deploy.errors import CommandError
from envelope.question import Question
from gateway.conversations import Conversations
from memory.http_state import Feedback, RedisSessionStore

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from deploy.assembly.runtime import Runtime
    from knowledge.embedding import Embedder
    from records.gaps import GapFinder
    from records.recorder import Recorder
    from records.store import RecordStore

FILE = "records.sqlite3"


class Records:
    """The operations of channels on the records of a conversation, if records are kept."""

    def __init__(self, settings: Settings, broker: Broker) -> None:
        self._settings = settings
        self._broker = broker

    async def announce_rating(self, question: Question) -> None:
        """Have the rating of an answer recorded."""
        if self._settings.keeps_records:
            await self._broker.ended.announce(question, "rated")

    async def forget(self, question: Question) -> int:
        """Delete the records of the question's conversation, also those of an earlier setting.

        Returns their number.

        A process on another machine that keeps a database of its own is told, and deletes them too.
        """
        await self._broker.ended.announce(question, "forgotten")
        is_there = self._settings.records_url is not None
        if is_there or (self._settings.refdesk_data / FILE).exists():
            return await asyncio.to_thread(self._forget, question)
        return 0

    def _forget(self, question: Question) -> int:
        store = connect_records(self._settings.records_url, self._settings.refdesk_data)
        try:
            store.prepare()
            return store.forget(question)
        finally:
            store.close()


class _LazyEmbedder:
    def __init__(self, settings: Settings, given: "Embedder | None") -> None:
        self._settings = settings
        self._given = given
        self._own: Embedder | None = None
        self._making = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return await (await self._find()).embed_questions(texts)

    async def _find(self) -> "Embedder":
        if self._given is not None:
            return self._given
        async with self._making:
            if self._own is None:
                from deploy.assembly.knowledge import make_embedder

                self._own = await asyncio.to_thread(make_embedder, self._settings)
            return self._own

    async def close(self) -> None:
        if self._own is not None:
            from deploy.assembly.knowledge import close_embedder

            await close_embedder(self._own)


def connect_records(url: SecretStr | None, data_folder: Path) -> "RecordStore":
    """Return the store of the records; raises `CommandError` for an unusable `RECORDS_URL`."""
    from records.store import RecordsUrlError, connect_store

    place = f"sqlite:///{(data_folder / FILE).resolve()}"
    try:
        return connect_store(place if url is None else url.get_secret_value())
    except RecordsUrlError as error:
        raise CommandError(f"RECORDS_URL: {error}") from error


def make_conversations(
    settings: Settings,
    broker: Broker,
    client: "Redis",
    *,
    ttl_seconds: int = 1,
    ttl_of: Callable[[Question], int] | None = None,
) -> Conversations:
    """Return the conversations of the channels, with their records."""
    records = Records(settings, broker)
    return Conversations(
        client,
        shards=settings.shards,
        ttl_seconds=ttl_seconds,
        ttl_of=ttl_of,
        on_rated=records.announce_rating,
        forget_recorded=records.forget,
    )


@asynccontextmanager
async def recording(runtime: "Runtime") -> AsyncIterator[None]:
    """Record the messages that end, as far as the settings keep records."""
    if not runtime.settings.keeps_records:
        yield
        return
    async with (
        _open_recorder(runtime) as recorder,
        runtime.jobs.running("records", recorder.run),
    ):
        yield


async def record_waiting(runtime: "Runtime") -> None:
    """Record what ended while no process recorded, such as questions of `refdesk ask`.

    Does nothing if the processes may use databases in other data folders, because each message is
    recorded by one of them.
    """
    settings = runtime.settings
    is_own = settings.redis_url is None or settings.records_url is not None
    if settings.keeps_records and is_own:
        async with _open_recorder(runtime) as recorder:
            while await recorder.record_next():
                pass


@asynccontextmanager
async def finding_gaps(
    settings: Settings, store: "RecordStore", embedder: "Embedder | None" = None
) -> AsyncIterator["GapFinder"]:
    """Provide what finds the gaps; the embedder is made when it is first used, if none is given."""
    from knowledge.calibration.queries import find_foreign_questions
    from knowledge.embedding import name_vectors
    from records.gaps import GapFinder

    lazy = _LazyEmbedder(settings, embedder)
    try:
        yield GapFinder(
            store,
            lazy.embed,
            name_vectors(settings.embedding_model),
            find_foreign_questions(settings.default_language) or find_foreign_questions("en"),
        )
    finally:
        await lazy.close()


@asynccontextmanager
async def _open_recorder(runtime: "Runtime") -> AsyncIterator["Recorder"]:
    from records.record import redact
    from records.recorder import Recorder, RecordRules

    settings = runtime.settings
    rules = RecordRules(
        days={
            one.assistant_key: settings.records_days_of(one.tenant, one.assistant)
            for one in settings.of_assistants()
        },
        redact=partial(redact, kinds=settings.records_redact),
    )
    store, client = (
        connect_records(settings.records_url, settings.refdesk_data),
        runtime.endpoint.client(),
    )
    sessions = RedisSessionStore(client, shards=settings.shards, ttl_seconds=1, empty_seconds=1)

    async def find_rating(question: Question) -> Feedback | None:
        return (await sessions.feedback(question)).get(question.message_id)

    try:
        yield Recorder(runtime.broker.ended, runtime.broker.replies, store, rules, find_rating)
    finally:
        await asyncio.to_thread(store.close)
        await client.aclose()
