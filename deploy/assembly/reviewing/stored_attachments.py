"""Reads the documents that people give to a conversation, and stores them with it."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from config.settings import Settings
from deploy.assembly.languages import language_of, make_detector
from envelope.question import Question
from gateway.http.reading_turns import ReadingTurns
from gateway.port import ReadableDocument, ReadableSection
from gateway.reviewing.document_ports import DocumentEntry, DocumentRefusedError
from knowledge.documents.errors import (
    NoTextError,
    ReadingError,
    TooLargeError,
    WrongFormatError,
)
from knowledge.library.attached_documents import AttachedDocument
from knowledge.sections import document_of, join_chunks
from memory.attachments import MOST_ATTACHMENTS, RedisAttachments, Stored

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from knowledge.library.attachment_reading import PreparingReader

_KINDS: tuple[tuple[type[ReadingError], str], ...] = (
    (NoTextError, "empty_document"),
    (TooLargeError, "document_too_large"),
    (WrongFormatError, "unsupported_document"),
)


class StoredAttachments:
    """A `gateway.reviewing.document_ports.Attachments`.

    A process that reads starts with the first file, another when two clients need one at the same
    time. Each file is read within the limits of ingestion; `ReadingTurns` says whose is next.
    """

    def __init__(
        self,
        settings: Settings,
        client: "Redis",
        *,
        most_documents: int = MOST_ATTACHMENTS,
        make_reader: "Callable[[], PreparingReader] | None" = None,
    ) -> None:
        self._settings = settings
        self._most_documents = most_documents
        self._store = RedisAttachments(
            client,
            shards=settings.shards,
            ttl_of=lambda one: settings.memory_seconds_of(one.tenant, one.assistant),
            most_documents=most_documents,
        )
        self._language_of: Callable[[str], str] | None = None
        self._idle: list[PreparingReader] = []
        self._opened = ExitStack()
        self._make_reader = make_reader or self._open_reader
        self._turns = ReadingTurns()

    async def attach(
        self, question: Question, name: str, data: bytes, groups: Sequence[str], client: str = ""
    ) -> DocumentEntry:
        async with self._turns.take(question.tenant, client):
            document = await self._read(name, data, groups)
        stored = await self._store.put(question, document.id, document.encode())
        if stored is Stored.NO_ROOM:
            raise DocumentRefusedError(
                f"expected at most {self._most_documents} documents of a usual size in a "
                "conversation, found no room for one more: begin another conversation",
                "too_many_documents",
            )
        return replace(name_document(document), is_new=stored is Stored.ADDED)

    async def remove(self, question: Question, document_id: str) -> None:
        await self._store.remove(question, document_id)

    async def list_attached(
        self, question: Question, groups: Sequence[str]
    ) -> Sequence[DocumentEntry]:
        stored = await self._store.all(question)
        documents = [AttachedDocument.decode(one) for one in stored.values()]
        visible = [one for one in documents if one.is_visible_to(groups)]
        return [name_document(one) for one in sorted(visible, key=lambda one: (one.name, one.id))]

    async def citing(
        self, question: Question, chunk_id: str, groups: Sequence[str]
    ) -> ReadableDocument | None:
        name = document_of(chunk_id)
        stored = await self._store.find(question, [name])
        document = AttachedDocument.decode(stored[name]) if name in stored else None
        if document is None or not document.is_visible_to(groups):
            return None
        return ReadableDocument(
            title=document.title,
            crumbs=(document.title,),
            language=document.language,
            sections=tuple(
                ReadableSection(one.heading_path, one.anchor, one.text, chunk_id in one.chunk_ids)
                for one in join_chunks(document.chunks)
            ),
        )

    async def list_anchors(self, question: Question, document_id: str) -> dict[str, str]:
        """Return the anchors of a document's passages by their ids, where they have one."""
        stored = await self._store.find(question, [document_id])
        chunks = [one for value in stored.values() for one in AttachedDocument.decode(value).chunks]
        return {one.chunk_id: one.anchor for one in chunks if one.anchor}

    async def close(self) -> None:
        """End the processes that read."""
        await asyncio.to_thread(self._opened.close)

    async def _read(self, name: str, data: bytes, groups: Sequence[str]) -> AttachedDocument:
        # Imported here: the readers are needed only where somebody gives a document.
        from knowledge.library.attachment_reading import read_attachment

        reader = self._idle.pop() if self._idle else self._make_reader()
        if self._language_of is None:
            self._language_of = language_of(self._settings, make_detector(self._settings))
        try:
            return await read_attachment(
                reader, name, data, groups=groups, language_of=self._language_of
            )
        except ReadingError as error:
            raise DocumentRefusedError(str(error), _name_kind(error)) from error
        finally:
            self._idle.append(reader)

    def _open_reader(self) -> "PreparingReader":
        from deploy.assembly.ingestion import reading_limits
        from knowledge.isolation.reader_process import ReaderProcess

        return self._opened.enter_context(ReaderProcess(reading_limits(self._settings)))


def name_document(document: AttachedDocument) -> DocumentEntry:
    """Return what people read of a document of a conversation."""
    return DocumentEntry(
        id=document.id,
        title=document.title,
        name=document.name,
        language=document.language,
        chunks=len(document.passages),
    )


def _name_kind(error: ReadingError) -> str:
    return next((kind for own, kind in _KINDS if isinstance(error, own)), "unreadable_document")
