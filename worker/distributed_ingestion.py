"""Distributes an ingestion across processes, with one message for each document to read or write.

The process that runs the ingestion, called the owner, surveys the sources, assigns document IDs,
and composes documents from the content that was read. It learns about the progress only from
replies. A message is executed at least once. Reading a document again is free, and writing it again
reuses the vectors that were already paid for and replaces the whole document. A finished message is
not valid for a later ingestion, so the owner then sends a new one.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import PurePosixPath
from typing import TypeVar

import orjson
from pydantic import BaseModel

from broker.errors import BrokerUnavailableError
from broker.outages import bridge_outage
from broker.ports import Broker
from broker.values import (
    Accepted,
    Busy,
    Delivery,
    Duplicate,
    Fields,
    Finish,
    Settlement,
    Submission,
)
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.question import Question, qualify_conversation
from envelope.role import Role
from knowledge import chunking
from knowledge.document import Document
from knowledge.document_writer import CHUNKS_PER_BATCH, DocumentWriter, Vectors
from knowledge.documents.errors import ReaderDiedError, ReadingError
from knowledge.documents.formats import Item
from knowledge.documents.location import Location
from knowledge.embedding import Embedder
from knowledge.errors import IndexUnavailable, KnowledgeError
from knowledge.ingestion_ledger import ReadingAllowance
from knowledge.ingestion_report import EmbeddingUsage
from knowledge.isolation.messages import (
    ReadRequest,
    decode_error,
    decode_preparation,
    decode_request,
    encode_error,
    encode_preparation,
)
from knowledge.isolation.preparation import Preparation
from knowledge.isolation.reader_pool import ReaderPool
from knowledge.open_index import OpenIndex
from knowledge.ordered_tasks import Room
from memory.errors import MemoryUnavailableError
from memory.ingestion_exchange import Parcel, RedisExchange, RedisKeptAnswers
from worker.paid_embedder import PaidEmbedder

T = TypeVar("T")
CHANNEL = "ingestion"
LONGEST_SECONDS = 6 * 3600.0
KEPT_SECONDS = 60.0
"""How long Redis keeps the state of a finished message; the owner has received the reply by then.
"""
BLOCK_SECONDS = 30.0
OUTAGE_SECONDS = 600.0
"""How long an ingestion waits for Redis during an outage before it fails. It may have been running
for hours.
"""
READ_AT_ONCE = 128
BYTES_AT_ONCE = 64_000_000
"""Maximum total size of the documents that wait to be read, in bytes. A larger document is sent
alone.
"""
CHUNKS_AT_ONCE = 64 * CHUNKS_PER_BATCH
DOCUMENTS_PER_WRITER = 64
"""Maximum number of documents that a process embeds and writes at the same time."""
MOST_FAILURES = 2
"""The number of times that an order may fail. An order that kills its processes is started three
times before it counts as a failure.
"""


class ReadOrder(BaseModel, frozen=True, extra="ignore"):
    """A document to read, and how many seconds of processor time that may take."""

    parcel: Parcel
    seconds: float


class Reply(BaseModel, frozen=True, extra="ignore"):
    """The result of an order; `order` is the name of the parcel sent with it."""

    order: str


class ReadReply(Reply, frozen=True):
    """The content of a document, or its error; `seconds` is the processor time that reading it
    took.
    """

    seconds: float
    parcel: Parcel | None = None
    error: str = ""


class WriteOrder(BaseModel, frozen=True, extra="ignore"):
    """A document to embed and write, with the vectors that are already known; see
    `SentDocument`.
    """

    parcel: Parcel


class SentDocument(BaseModel, frozen=True, extra="ignore"):
    """A document with its known vectors, and the source to which it belongs."""

    document: Document
    vectors: list[list[float] | None]
    root: str


class WriteReply(Reply, frozen=True):
    """The usage of embedding calls for this document, and for earlier ones if not yet reported."""

    usage: EmbeddingUsage | None = None


class Orders:
    """Sends orders to other processes and waits for their replies.

    `name` is the tenant and assistant. Equal orders that are open at the same time are merged.
    """

    def __init__(self, broker: Broker, exchange: RedisExchange, name: tuple[str, str]) -> None:
        self._exchange = exchange
        self._broker = broker
        self._name = name

    @asynccontextmanager
    async def sent(self, data: bytes) -> AsyncIterator[Parcel]:
        """Provide a parcel with the data, and remove it when the context exits."""
        parcel = await _bridge(partial(self._exchange.send, data))
        try:
            yield parcel
        finally:
            # Redis removes it later if this fails.
            with suppress(MemoryUnavailableError):
                await self._exchange.remove(parcel)

    async def take(self, parcel: Parcel) -> bytes | None:
        """Return and remove the data in a parcel of another process, or None if it no longer
        exists.
        """
        data = await _bridge(partial(self._exchange.receive, parcel))
        with suppress(MemoryUnavailableError):
            await self._exchange.remove(parcel)
        return data

    async def give(self, role: Role, key: str, order: ReadOrder | WriteOrder) -> Fields:
        """Execute an order in another process and return the reply; `key` identifies the order.

        Raises `IndexUnavailable` if the order repeatedly fails.
        """
        failures, payload = 0, order.model_dump()
        for attempt in count():
            question = self._name_question(role, f"{key}-{attempt}")
            submitted = await self._submit(question, role, payload)
            reply = submitted.reply if isinstance(submitted, Duplicate) else None
            if reply is not None and reply.get("order") != order.parcel.name:
                # The reply to an earlier ingestion; otherwise, the response to `submit` was lost.
                continue
            if reply is None:
                reply = await self._await_reply(question, role, payload)
            if reply.get("outcome") == "answered":
                return reply
            # Another ingestion that gave the same order may have been stopped.
            failures += reply.get("outcome") != "superseded"
            if failures == MOST_FAILURES:
                raise IndexUnavailable(f"a document was not ingested: {reply.get('error')}")
        raise AssertionError

    async def _submit(
        self, question: Question, role: Role, payload: Fields
    ) -> Accepted | Duplicate:
        while True:
            submitted = await bridge_outage(
                partial(self._broker.producer.submit, _make_submission(question, role, payload)),
                OUTAGE_SECONDS,
            )
            if not isinstance(submitted, Busy):
                return submitted
            await asyncio.sleep(submitted.retry_after_seconds)

    async def _await_reply(self, question: Question, role: Role, payload: Fields) -> Fields:
        wait = partial(self._broker.replies.await_reply, question, block_seconds=BLOCK_SECONDS)
        try:
            while (reply := await bridge_outage(wait, OUTAGE_SECONDS)) is None:
                # Again, in case Redis has lost it, or has forgotten the reply.
                submitted = await self._submit(question, role, payload)
                if isinstance(submitted, Duplicate) and submitted.reply is not None:
                    return submitted.reply
        except asyncio.CancelledError:
            # An order that has not started is no longer needed; a running one ends by itself.
            with suppress(BrokerUnavailableError):
                await self._broker.producer.cancel(question)
            raise
        return reply

    def _name_question(self, role: Role, key: str) -> Question:
        tenant, assistant = self._name
        return Question(
            tenant=tenant,
            assistant=assistant,
            conversation_id=qualify_conversation(CHANNEL, f"{role.value}-{key}"),
            message_id=key,
        )


class DistributedReading:
    """Reads documents in other processes; see `knowledge.ingestion.DocumentReading`."""

    at_once = READ_AT_ONCE

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._room = Room(BYTES_AT_ONCE)

    async def read(
        self, item: Item, file: PurePosixPath, place: Location, allowance: ReadingAllowance
    ) -> Preparation | None:
        if allowance.is_spent:
            return None
        request = ReadRequest(item, file, place).encode()
        await self._room.enter(len(request))
        try:
            return await self._read(request, allowance)
        finally:
            await self._room.leave(len(request))

    async def _read(self, request: bytes, allowance: ReadingAllowance) -> Preparation:
        key, seconds = _digest(request), allowance.next_seconds
        async with self._orders.sent(request) as parcel:
            order = ReadOrder(parcel=parcel, seconds=seconds)
            while True:
                try:
                    given = await self._orders.give(Role.READ, key, order)
                except IndexUnavailable as error:
                    # This document alone: others may be read.
                    raise ReaderDiedError(str(error)) from error
                reply = ReadReply.model_validate(given)
                if reply.parcel is None:
                    allowance.spend(reply.seconds)
                    raise decode_error(reply.error.encode())
                body = await self._orders.take(reply.parcel)
                if body is not None:
                    break
                # Another ingestion of the same document has taken it.
        allowance.spend(reply.seconds)
        return await asyncio.to_thread(decode_preparation, body)


class DistributedWriting:
    """Writes documents in other processes; see `knowledge.ingestion.DocumentWriting`."""

    most_chunks = CHUNKS_AT_ONCE

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self.usage: EmbeddingUsage | None = None
        """The usage of the embedding calls for all documents written so far."""

    async def write(self, document: Document, vectors: Vectors, root: str) -> None:
        data = orjson.dumps(
            {"document": document.model_dump(), "vectors": list(vectors), "root": root}
        )
        key = _digest(data)
        async with self._orders.sent(data) as parcel:
            order = WriteOrder(parcel=parcel)
            reply = WriteReply.model_validate(await self._orders.give(Role.WRITE, key, order))
        if reply.usage is not None:
            self.usage = reply.usage if self.usage is None else self.usage + reply.usage


class ReadHandler:
    """Reads documents for other processes."""

    role = Role.READ

    def __init__(self, pool: ReaderPool, exchange: RedisExchange) -> None:
        self._pool = pool
        self._exchange = exchange

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        """Read the document in an order."""
        order = ReadOrder.model_validate(envelope.payload)
        name = order.parcel.name
        data = await self._exchange.receive(order.parcel)
        if data is None:
            return _fail("the bytes of the document expired before they were read")
        request = decode_request(data)
        spent = SpentSeconds(order.seconds)
        try:
            prepared = await self._pool.read(request.item, request.path, request.location, spent)
        except ReadingError as error:
            return _reply(
                ReadReply(order=name, seconds=spent.seconds, error=encode_error(error).decode())
            )
        except KnowledgeError as error:
            return _fail(str(error))
        if prepared is None:
            return _fail("the time limit of its file was reached")
        parcel = await self._exchange.send(await asyncio.to_thread(encode_preparation, prepared))
        return _reply(ReadReply(order=name, seconds=spent.seconds, parcel=parcel))


class WriteHandler:
    """Embeds documents and writes them into the index, for other processes.

    `own` is the assistant of `knowledge`; `choose_embedder` returns the embedder of an index.
    """

    role = Role.WRITE

    def __init__(
        self,
        own: tuple[str, str],
        knowledge: OpenIndex,
        choose_embedder: Callable[[OpenIndex], Embedder],
        exchange: RedisExchange,
        kept: RedisKeptAnswers | None,
    ) -> None:
        self._own = own
        self._knowledge = knowledge
        self._choose_embedder = choose_embedder
        self._exchange = exchange
        self._kept = kept
        self._writers: dict[int, tuple[object, PaidEmbedder, DocumentWriter]] = {}

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        """Write the document in an order."""
        question = delivery.question
        knowledge = self._knowledge.of(question.tenant, question.assistant, own=self._own)
        if knowledge is None:
            return _fail(f"no index of {question.assistant!r} of {question.tenant!r} is open here")
        order = WriteOrder.model_validate(envelope.payload)
        data = await self._exchange.receive(order.parcel)
        if data is None:
            return _fail("the text of the document expired before it was written")
        sent = await asyncio.to_thread(SentDocument.model_validate_json, data)
        try:
            await knowledge.follow()
            embedder, writer = self._find_writer(knowledge)
            if delivery.starts == 1 or not await _is_written(knowledge, sent.document):
                await writer.write(sent.document, sent.vectors, sent.root)
        except KnowledgeError as error:
            return _fail(str(error))
        if self._kept is not None:
            texts = (chunking.text_to_embed(sent.document, chunk) for chunk in sent.document.chunks)
            await self._kept.remove([embedder.name_text(text) for text in texts])
        usage, embedder.usage = embedder.usage, None
        return _reply(WriteReply(order=order.parcel.name, usage=usage))

    def _find_writer(self, knowledge: OpenIndex) -> tuple[PaidEmbedder, DocumentWriter]:
        """Return the writer for the index that currently serves searches."""
        index, embedder, writer = self._writers.get(id(knowledge), (None, None, None))
        if index is not knowledge.index or embedder is None or writer is None:
            embedder = PaidEmbedder(self._choose_embedder(knowledge), self._kept)
            writer = DocumentWriter(knowledge.index, embedder)
            self._writers[id(knowledge)] = knowledge.index, embedder, writer
        return embedder, writer


class SpentSeconds:
    """Measures the processor time spent reading one document."""

    def __init__(self, seconds: float) -> None:
        self.seconds = 0.0
        self._seconds = seconds

    @property
    def next_seconds(self) -> float:
        return self._seconds

    @property
    def is_spent(self) -> bool:
        return False

    def spend(self, seconds: float) -> None:
        self.seconds += seconds


async def _is_written(knowledge: OpenIndex, document: Document) -> bool:
    """Return whether the document was already written by a process that was killed before it could
    reply.
    """
    listed = await knowledge.index.list_documents([document.id])
    return any(item.content_hash == document.content_hash for item in listed)


async def _bridge(call: Callable[[], Awaitable[T]]) -> T:
    return await bridge_outage(call, OUTAGE_SECONDS, (MemoryUnavailableError,))


def _make_submission(question: Question, role: Role, payload: Fields) -> Submission:
    now = time.time()
    envelope = Envelope(
        tenant=question.tenant,
        assistant=question.assistant,
        channel=CHANNEL,
        conversation_id=question.conversation_id,
        message_id=question.message_id,
        create_ts=now,
        update_ts=now,
        deadline_ts=now + LONGEST_SECONDS,
        target_role=role.value,
        payload=dict(payload),
    )
    return Submission(
        question=question,
        frame=envelope.encode(),
        role=role.value,
        deadline_seconds=LONGEST_SECONDS,
        last_resort={
            "outcome": "failed",
            "error": "the document was not ingested before its time limit",
        },
        accepted={"role": role.value},
        keep_seconds=KEPT_SECONDS,
        dead_letter_changes={"error": "each process that read the document terminated"},
    )


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _reply(reply: BaseModel) -> Finish:
    return Finish(Outcome.ANSWERED, {"outcome": "answered", **reply.model_dump(mode="json")})


def _fail(error: str) -> Finish:
    return Finish(Outcome.FAILED, {"outcome": "failed", "error": error})
