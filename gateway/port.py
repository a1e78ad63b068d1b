"""The interfaces that the channels use, which the assembly implements.

A conversation is identified by any `Question` in it, unless stated otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from pydantic import Field

from broker.ports import ReplySubscription
from broker.values import Accepted, Duplicate
from envelope.question import Question
from knowledge.library.shown import LibraryDocument, LibraryFindings
from memory.http_state import VisitorAddress


@dataclass(frozen=True, slots=True)
class SubmittedQuestion:
    """A question that was just submitted, with the subscription to its reply."""

    question: Question
    language: str
    result: Accepted | Duplicate
    subscription: ReplySubscription
    deadline_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ReadableSection:
    """The blocks (Markdown) below a heading of a document, and whether the section is `cited`.

    `pictures` contains the IDs and captions of its pictures, and `links` the labels and URLs of its
    web links, whose labels are part of the text.
    """

    heading_path: tuple[str, ...]
    anchor: str | None
    text: str
    cited: bool = False
    pictures: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StoredPicture:
    """A picture of a document: its bytes, and its media type, which is detected from the bytes."""

    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ReadableDocument:
    """A document for human readers; `language` is an ISO 639-1 code."""

    title: str
    crumbs: tuple[str, ...]
    language: str
    sections: tuple[ReadableSection, ...]


class Documents(Protocol):
    """Provides the documents of the assistants."""

    async def citing(
        self, tenant: str, assistant: str, chunk_id: str, groups: tuple[str, ...]
    ) -> ReadableDocument | None:
        """Return the document of a cited chunk, or None if this assistant does not currently have
        it.

        Also returns None if a person in these groups may not read it.
        """
        ...

    async def picture(
        self, tenant: str, assistant: str, chunk_id: str, picture: str, groups: tuple[str, ...]
    ) -> StoredPicture | None:
        """Return a picture in the document of a chunk, or None as in `citing`."""
        ...


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A document in an index, without its text; `source` is relative to its ingested folder."""

    id: str
    title: str
    source: str
    language: str
    chunks: int
    url: str | None = None
    kind: str = ""
    version: Annotated[str, Field(validation_alias="stated_version")] = ""
    groups: tuple[str, ...] = ()
    content_hash: str = ""
    groups_chosen: bool = False


@dataclass(frozen=True, slots=True)
class CatalogSelection:
    """Selects documents by id, or by patterns for ids, sources, and URLs; None selects all.

    `text` must occur in the title, id, source, or URL, ignoring case.
    """

    ids: tuple[str, ...] | None = None
    patterns: tuple[str, ...] | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class CatalogUpload:
    """The result of writing a file into an index; `failures` lists parts that could not be read.

    `written` counts new and changed documents. `refused` is the reason why nothing was stored.
    """

    written: int = 0
    unchanged: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    refused: str = ""


class DocumentCatalog(Protocol):
    """Lists and removes the documents of the assistants, for operators."""

    async def find(
        self,
        tenant: str,
        assistant: str,
        selection: CatalogSelection,
        *,
        after: str = "",
        limit: int,
    ) -> tuple[Sequence[CatalogEntry], int]:
        """Return the first documents whose id is greater than `after`, sorted by id, and the total
        number of selected documents.
        """
        ...

    async def remove(self, tenant: str, assistant: str, selection: CatalogSelection) -> int:
        """Remove the selected documents from the index, and return how many there were."""
        ...


class DocumentWriter(DocumentCatalog, Protocol):
    """A catalog that also accepts files."""

    async def write(self, tenant: str, assistant: str, name: str, data: bytes) -> CatalogUpload:
        """Store a file under a name that may include folders, replacing an earlier one, and index
        it.
        """
        ...


class SearchableLibrary(Protocol):
    """Searches and reads the documents that a person in these groups may read.

    All methods raise the errors of stores that do not respond.
    """

    async def search(
        self, tenant: str, assistant: str, query: str, *, groups: Sequence[str], limit: int
    ) -> LibraryFindings:
        """Return the best passages for a query, in the same way as the assistant's own search."""
        ...

    async def read(
        self, tenant: str, assistant: str, document_id: str, *, groups: Sequence[str]
    ) -> LibraryDocument | None:
        """Return a document with its text, or None if it does not exist for these groups."""
        ...

    async def browse(
        self, tenant: str, assistant: str, *, groups: Sequence[str], after: str, limit: int
    ) -> Sequence[LibraryDocument]:
        """Return documents, without their text, whose id is greater than `after`, sorted by id."""
        ...


@dataclass(frozen=True, slots=True)
class OpenCase:
    """A conversation that is waiting for a person, with its messages, oldest first."""

    turns: tuple[tuple[str, str], ...]


class HandOver(Protocol):
    """Hands conversations over to people, and returns their answers to the conversations."""

    def hands_over(self, tenant: str, assistant: str) -> bool:
        """Return whether the conversations of an assistant can be handed over."""
        ...

    @property
    def mails_visitors(self) -> bool:
        """Whether answers from people can be sent to visitors by email."""
        ...

    async def request(
        self, question: Question, *, note: str, language: str, visitor: str, address: str = ""
    ) -> bool:
        """Send the question's conversation to a person; return whether it was accepted.

        The conversation is sent only once per message. `note` is a message from the visitor to the
        person, `visitor` identifies the owner of the limit, and `address` is an email address of
        the visitor. Raises `HandOverLimitedError`, and `BusyError` while it is being sent.
        """
        ...

    async def ask_to_confirm(
        self, question: Question, *, language: str, visitor: str
    ) -> Literal["asked", "confirmed", "failed"]:
        """Send a link to the address that the visitor entered, unless it is already confirmed."""
        ...

    def read_confirmation(self, ticket: str) -> str | None:
        """Return the language of a ticket that confirms an address, or None if it is not such a
        ticket.
        """
        ...

    async def confirm(self, ticket: str) -> bool:
        """Confirm the address in a ticket, and send it the answers that people have given so far.

        Returns False if the ticket is not valid, or if the conversation or the address is no longer
        stored.
        """
        ...

    async def find_address(self, question: Question) -> VisitorAddress | None:
        """Return the address that the visitor of a conversation entered, if any."""
        ...

    async def answer(self, question: Question, text: str, language: str) -> bool:
        """Show a person's answer after this message, and return whether it was accepted, as in
        `reply`.
        """
        ...

    def is_ticket(self, ticket: str) -> bool:
        """Return whether a ticket was signed here and has not expired."""
        ...

    async def read(self, ticket: str) -> OpenCase | None:
        """Return the conversation of a ticket, or None if it is no longer stored."""
        ...

    async def reply(self, ticket: str, text: str, *, reply_id: str = "") -> bool:
        """Show a person's answer in the conversation; return whether it was accepted.

        The same `reply_id` or, without one, the same text is shown only once.
        """
        ...
