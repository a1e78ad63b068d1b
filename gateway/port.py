"""The interfaces that the channels use; the assembly implements them.

A conversation is identified by any `Question` of it, unless stated otherwise.
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
    """The blocks (Markdown) below one heading of a document, and whether it is `cited`.

    `pictures` are the ids and captions of its pictures, `links` the labels and addresses of its
    links to the web, whose labels are part of the text.
    """

    heading_path: tuple[str, ...]
    anchor: str | None
    text: str
    cited: bool = False
    pictures: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StoredPicture:
    """A picture of a document: its media type, found by its bytes, and its bytes."""

    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ReadableDocument:
    """A document for readers; `language` in ISO 639-1."""

    title: str
    crumbs: tuple[str, ...]
    language: str
    sections: tuple[ReadableSection, ...]


class Documents(Protocol):
    """Provides the documents of the assistants."""

    async def citing(
        self, tenant: str, assistant: str, chunk_id: str, groups: tuple[str, ...]
    ) -> ReadableDocument | None:
        """Return the document of a cited chunk; None when this assistant does not have it now.

        None, too, when a person of these groups may not read it.
        """
        ...

    async def picture(
        self, tenant: str, assistant: str, chunk_id: str, picture: str, groups: tuple[str, ...]
    ) -> StoredPicture | None:
        """Return a picture of the document of a chunk; None as for `citing`."""
        ...


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A document of an index without its text; `source` is relative to its ingested folder."""

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
    """Selects documents by id, or by patterns of ids, sources and web addresses; None: all.

    `text` occurs in title, id, source or web address, in any case.
    """

    ids: tuple[str, ...] | None = None
    patterns: tuple[str, ...] | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class CatalogUpload:
    """The result of writing a file into an index; `failures` name parts that could not be read.

    `written` counts new and changed documents. `refused` states why nothing was stored.
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
        """Return the first documents whose id is greater than `after`, by id, and the number of all
        that the selection contains.
        """
        ...

    async def remove(self, tenant: str, assistant: str, selection: CatalogSelection) -> int:
        """Remove the selected documents from the index, and return their number."""
        ...


class DocumentWriter(DocumentCatalog, Protocol):
    """A catalog that also takes in files."""

    async def write(self, tenant: str, assistant: str, name: str, data: bytes) -> CatalogUpload:
        """Keep a file under a name with folders, in place of an earlier one, and index it."""
        ...


class SearchableLibrary(Protocol):
    """Searches and reads the documents that a person of these groups may read.

    Every method raises an error of a store that does not answer.
    """

    async def search(
        self, tenant: str, assistant: str, query: str, *, groups: Sequence[str], limit: int
    ) -> LibraryFindings:
        """Return the best passages for a query, as the assistant itself would find them."""
        ...

    async def read(
        self, tenant: str, assistant: str, document_id: str, *, groups: Sequence[str]
    ) -> LibraryDocument | None:
        """Return a document with its text, or None if these groups have no such document."""
        ...

    async def browse(
        self, tenant: str, assistant: str, *, groups: Sequence[str], after: str, limit: int
    ) -> Sequence[LibraryDocument]:
        """Return documents without their text whose id is greater than `after`, by id."""
        ...


@dataclass(frozen=True, slots=True)
class OpenCase:
    """A conversation that waits for a person: its messages, oldest first."""

    turns: tuple[tuple[str, str], ...]


class HandOver(Protocol):
    """Hands conversations over to people, and brings their answers back."""

    def hands_over(self, tenant: str, assistant: str) -> bool:
        """Return whether the conversations of an assistant can be handed over."""
        ...

    @property
    def mails_visitors(self) -> bool:
        """Whether answers of people can be sent to visitors by e-mail."""
        ...

    async def request(
        self, question: Question, *, note: str, language: str, visitor: str, address: str = ""
    ) -> bool:
        """Send the question's conversation to a person; return whether it was accepted.

        It is sent once for a message. `note` is what the visitor says to the person, `visitor`
        names the owner of the limit, `address` is an e-mail address of the visitor. Raises
        `HandOverLimitedError`, and `BusyError` while it is being sent.
        """
        ...

    async def ask_to_confirm(
        self, question: Question, *, language: str, visitor: str
    ) -> Literal["asked", "confirmed", "failed"]:
        """Send a link to the address that the visitor left, unless it is confirmed."""
        ...

    def read_confirmation(self, ticket: str) -> str | None:
        """Return the language of a ticket that confirms an address; None: it is none."""
        ...

    async def confirm(self, ticket: str) -> bool:
        """Confirm the address of a ticket, and send it what people have answered so far."""
        ...

    async def find_address(self, question: Question) -> VisitorAddress | None:
        """Return the address that the visitor of a conversation left, if any."""
        ...

    async def answer(self, question: Question, text: str, language: str) -> bool:
        """Show a person's answer after this message, as `reply` does."""
        ...

    def is_ticket(self, ticket: str) -> bool:
        """Return whether a ticket was signed here and has not expired."""
        ...

    async def read(self, ticket: str) -> OpenCase | None:
        """Return the conversation of a ticket; None: it has none that is still kept."""
        ...

    async def reply(self, ticket: str, text: str, *, reply_id: str = "") -> bool:
        """Show a person's answer in the conversation; return whether it was accepted.

        The same `reply_id`, or without one the same text, appears once.
        """
        ...
