"""Searches and reads documents for callers: groups, limits and links hold as for questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from broker.values import Fields
from gateway.api_keys import Scope
from gateway.http.access import Principal
from gateway.http.context import HttpChannel
from gateway.http.errors import ForbiddenError, unknown
from gateway.port import FoundPassage, FoundPassages, LibraryDocument, SearchableLibrary
from gateway.text import clean_text

MOST_PASSAGES = 50
LONGEST_QUERY = 2_000


@dataclass(frozen=True, slots=True)
class LinkedPassage:
    """A passage, and the link that opens its document at its heading."""

    passage: FoundPassage
    link: str | None


class CallersLibrary:
    """The documents of an assistant as a caller may read them; raises `HttpError`.

    Whoever may ask may search: the answers show the same passages. A search counts as a question.
    Public keys are refused, because a search has no conversation that a visitor opened.
    """

    def __init__(self, channel: HttpChannel, library: SearchableLibrary) -> None:
        self._channel = channel
        self._library = library

    async def search(
        self, caller: Principal, assistant: str | None, query: str, *, limit: int
    ) -> tuple[FoundPassages, Sequence[LinkedPassage]]:
        """Return what a search found, and its passages with their links."""
        tenant, name = self._enter(caller, assistant)
        wanted = clean_text(query, longest=LONGEST_QUERY)
        await self._channel.guard.admit_question(caller, once=uuid4().hex)
        found = await self._library.search(tenant, name, wanted, groups=caller.groups, limit=limit)
        question = self._channel.desk(caller, name).name_question("-", "-")
        opens = self._channel.links.of(caller, question)
        linked = [
            LinkedPassage(one, opens(_as_source(one.chunk_id, one.url, one.path, one.anchor)))
            for one in found.passages
        ]
        return found, linked

    async def read(
        self, caller: Principal, assistant: str | None, document_id: str
    ) -> tuple[LibraryDocument, str | None]:
        """Return a document and the link that opens it; one of other groups does not exist."""
        tenant, name = self._enter(caller, assistant)
        found = await self._library.read(tenant, name, document_id, groups=caller.groups)
        if found is None:
            raise unknown("document")
        question = self._channel.desk(caller, name).name_question("-", "-")
        source = _as_source(found.first_chunk_id, found.url, found.source, None)
        return found, self._channel.links.of(caller, question)(source)

    async def browse(
        self, caller: Principal, assistant: str | None, *, after: str, limit: int
    ) -> Sequence[LibraryDocument]:
        """Return the documents that come after an id, without their text."""
        tenant, name = self._enter(caller, assistant)
        return await self._library.browse(
            tenant, name, groups=caller.groups, after=after, limit=limit
        )

    def _enter(self, caller: Principal, assistant: str | None) -> tuple[str, str]:
        caller.need(Scope.ASK)
        refuse_public(caller)
        question = self._channel.desk(caller, assistant).name_question("-", "-")
        return question.tenant, question.assistant


def refuse_public(caller: Principal) -> None:
    """Raise `ForbiddenError` for a public key."""
    if caller.public:
        raise ForbiddenError(
            "expected a secret key: a public key can only be used for conversations on its "
            "websites",
            code="secret_key_required",
        )


def _as_source(chunk_id: str, url: str | None, path: str, anchor: str | None) -> Fields:
    return {"chunk_id": chunk_id, "url": url, "path": path, "anchor": anchor}
