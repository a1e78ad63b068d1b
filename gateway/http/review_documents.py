"""The documents of reviews: documents of a conversation, and indexed documents selected by name."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from envelope.question import Question
from gateway.http.reading_turns import ReadingTurns
from gateway.port import (
    CatalogEntry,
    CatalogSelection,
    DocumentCatalog,
    ReadableDocument,
    ReadableSection,
)
from gateway.review_ports import (
    DocumentEntry,
    DocumentRefusedError,
    DocumentUnknownError,
)
from knowledge.documents.errors import (
    NoTextError,
    ReadingError,
    TooLargeError,
    WrongFormatError,
)
from knowledge.documents.folder import make_sort_key
from knowledge.library.attached_documents import AttachedDocument
from knowledge.sections import document_of, join_chunks
from memory.work_store import RedisAttachments, Stored

if TYPE_CHECKING:
    from knowledge.library.attachment_reading import PreparingReader

_KINDS: tuple[tuple[type[ReadingError], str], ...] = (
    (NoTextError, "empty_document"),
    (TooLargeError, "document_too_large"),
    (WrongFormatError, "unsupported_document"),
)
MOST_FOUND = 150
"""Maximum number of documents in a folder. A larger scope exceeds the size that a branch may
return.
"""
MOST_COMPARED = 20_000
"""Maximum number of titles that are compared. In a larger index, documents are found only by id and
file.
"""
_PER_PAGE = 500
_WILDCARDS = frozenset("*?[")
_SHOWN = 5


class StoredAttachments:
    """Stores the documents that people attach to conversations. Any `Question` of a conversation
    identifies it.

    `make_reader` starts a process that reads files: one for the first file, and another one when
    two clients need one at the same time. It is closed by the stack that it receives.
    `ReadingTurns` determines the order of the files.
    """

    def __init__(
        self,
        store: RedisAttachments,
        make_reader: "Callable[[ExitStack], PreparingReader]",
        make_language_of: Callable[[], Callable[[str], str]],
    ) -> None:
        self._store = store
        self._make_reader = make_reader
        self._make_language_of = make_language_of
        self._language_of: Callable[[str], str] | None = None
        self._idle: list[PreparingReader] = []
        self._opened = ExitStack()
        self._turns = ReadingTurns()

    async def attach(
        self, question: Question, name: str, data: bytes, groups: Sequence[str], client: str = ""
    ) -> DocumentEntry:
        """Read and store the bytes of a file; raises `DocumentRefusedError`.

        Only people who are in all of `groups` can read it. The same file always gets the same id.
        Tenants, and clients of a tenant, take turns; `client` identifies the client, for example by
        its key. Raises `BusyError` if too many files are waiting.
        """
        async with self._turns.take(question.tenant, client):
            document = await self._read(name, data, groups)
        stored = await self._store.put(question, document.id, document.encode())
        if stored is Stored.NO_ROOM:
            raise DocumentRefusedError(
                f"the conversation is full; it can contain at most {self._store.most_documents} "
                "documents of a usual size. Start a new conversation",
                "too_many_documents",
            )
        return replace(name_document(document), is_new=stored is Stored.ADDED)

    async def remove(self, question: Question, document_id: str) -> None:
        """Remove a document of the conversation."""
        await self._store.remove(question, document_id)

    async def list_attached(
        self, question: Question, groups: Sequence[str]
    ) -> Sequence[DocumentEntry]:
        """Return the documents of the conversation that a person in these groups may read."""
        stored = await self._store.all(question)
        documents = [AttachedDocument.decode(item) for item in stored.values()]
        visible = [document for document in documents if document.is_visible_to(groups)]
        return [
            name_document(document)
            for document in sorted(visible, key=lambda item: (item.name, item.id))
        ]

    async def citing(
        self, question: Question, chunk_id: str, groups: Sequence[str]
    ) -> ReadableDocument | None:
        """Return the document of a cited chunk, or None if this conversation does not contain
        it.
        """
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
                ReadableSection(
                    chunk.heading_path, chunk.anchor, chunk.text, chunk_id in chunk.chunk_ids
                )
                for chunk in join_chunks(document.chunks)
            ),
        )

    async def list_anchors(self, question: Question, document_id: str) -> dict[str, str]:
        """Return the anchors of a document's passages, by passage id, for the passages that have
        one.
        """
        stored = await self._store.find(question, [document_id])
        chunks = [
            chunk for value in stored.values() for chunk in AttachedDocument.decode(value).chunks
        ]
        return {chunk.chunk_id: chunk.anchor for chunk in chunks if chunk.anchor}

    async def close(self) -> None:
        """Stop the processes that read files."""
        await asyncio.to_thread(self._opened.close)

    async def _read(self, name: str, data: bytes, groups: Sequence[str]) -> AttachedDocument:
        # Imported here: the readers are needed only if a document is added.
        from knowledge.library.attachment_reading import read_attachment

        reader = self._idle.pop() if self._idle else self._make_reader(self._opened)
        if self._language_of is None:
            self._language_of = self._make_language_of()
        try:
            return await read_attachment(
                reader, name, data, groups=groups, language_of=self._language_of
            )
        except ReadingError as error:
            raise DocumentRefusedError(str(error), _name_kind(error)) from error
        finally:
            self._idle.append(reader)


class NamedDocumentFinder:
    """Finds the documents that a request names, among those that its caller may read.

    A document that the caller may not read is treated in the same way as one that does not exist.
    """

    def __init__(self, attachments: StoredAttachments, catalog: DocumentCatalog) -> None:
        self._attachments = attachments
        self._catalog = catalog

    async def find(
        self, question: Question, name: str, groups: Sequence[str], *, is_rule: bool = False
    ) -> Sequence[DocumentEntry]:
        """Return the document with this id, file name, title, or URL, or the documents in a folder.

        Documents of the question's conversation are searched as well. For a rule (`is_rule`), the
        index is searched first, so that a document attached to the conversation cannot take its
        place. Raises `DocumentUnknownError`, also if the name matches more than one document.
        """
        wanted = name.strip()
        attached = await self._attachments.list_attached(question, groups)
        if by_id := [entry for entry in attached if entry.id == wanted]:
            return by_id
        own = [entry for entry in attached if wanted in (entry.name, entry.title)]
        _refuse_several(wanted, own)
        indexed = await self._find_indexed(question, wanted, groups) if is_rule or not own else []
        if own and indexed:
            ids = " and ".join(_show(entry.id) for entry in (*indexed[:1], *own))
            raise DocumentUnknownError(
                f"{_show(wanted)} is the name of both a document of the index and a document of "
                "this "
                f"conversation; specify one of their ids: {ids}"
            )
        if not (own or indexed):
            raise DocumentUnknownError(
                f"no document has the id, file name or title {_show(wanted)}"
            )
        return own or indexed

    async def _find_indexed(
        self, question: Question, name: str, groups: Sequence[str]
    ) -> list[DocumentEntry]:
        selections = [CatalogSelection(ids=(name,))]
        if not _WILDCARDS.intersection(name):
            selections.append(CatalogSelection(patterns=(name,)))
        for selection in selections:
            entries = await self._select(question, selection, groups, MOST_FOUND + 1)
            if len(entries) > MOST_FOUND:
                raise DocumentUnknownError(
                    f"the folder {_show(name)} contains more than {MOST_FOUND} documents, the "
                    "maximum of a review"
                )
            if entries:
                return [
                    _name(entry)
                    for entry in sorted(entries, key=lambda item: make_sort_key(item.source))
                ]
        return await self._find_by_title(question, name, groups)

    async def _find_by_title(
        self, question: Question, title: str, groups: Sequence[str]
    ) -> list[DocumentEntry]:
        wanted = _normalise(title)
        every = await self._select(question, CatalogSelection(), groups, MOST_COMPARED)
        entries = [entry for entry in every if _normalise(entry.title) == wanted]
        named = [_name(entry) for entry in entries]
        _refuse_several(title, named)
        return named

    async def _select(
        self, question: Question, selection: CatalogSelection, groups: Sequence[str], most: int
    ) -> list[CatalogEntry]:
        entries: list[CatalogEntry] = []
        after = ""
        while len(entries) < most:
            page, _ = await self._catalog.find(
                question.tenant, question.assistant, selection, after=after, limit=_PER_PAGE
            )
            entries += [
                entry for entry in page if not entry.groups or set(entry.groups) & set(groups)
            ]
            if len(page) < _PER_PAGE:
                break
            after = page[-1].id
        return entries[:most]


def name_document(document: AttachedDocument) -> DocumentEntry:
    """Return the entry under which people see a document of a conversation."""
    return DocumentEntry(
        id=document.id,
        title=document.title,
        name=document.name,
        language=document.language,
        chunks=len(document.passages),
    )


def _name_kind(error: ReadingError) -> str:
    return next((kind for own, kind in _KINDS if isinstance(error, own)), "unreadable_document")


def _name(entry: CatalogEntry) -> DocumentEntry:
    return DocumentEntry(
        id=entry.id,
        title=entry.title,
        name=entry.source,
        language=entry.language,
        chunks=entry.chunks,
    )


def _refuse_several(name: str, entries: Sequence[DocumentEntry]) -> None:
    if len(entries) > 1:
        shown = ", ".join(_show(entry.id) for entry in entries[:_SHOWN])
        raise DocumentUnknownError(
            f"{len(entries)} documents have the title {_show(name)}; specify the id of one of "
            f"them, such as {shown}"
        )


def _normalise(title: str) -> str:
    return " ".join(title.casefold().split())


def _show(name: str) -> str:
    return repr(name if len(name) <= 100 else f"{name[:99]}…")
