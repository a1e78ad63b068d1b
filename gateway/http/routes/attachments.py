"""The routes of the documents of a conversation: give one, list them."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field

from gateway.api_keys import Scope
from gateway.errors import BusyError
from gateway.http.admission_queue import Party, Room
from gateway.http.context import (
    ConversationAccess,
    HttpChannel,
    require_conversation,
)
from gateway.http.errors import InvalidRequestError
from gateway.http.middleware import visitors_refused
from gateway.review_ports import Attachments, DocumentEntry

READ_AT_ONCE = 2
"""Files that are read side by side; the files of one key never take more than one of these."""
MOST_WAITING = 32
RETRY_SECONDS = 5.0

_Keys = OrderedDict[str, deque[asyncio.Future[None]]]
LONGEST_FILE_NAME = 300
FileName = Annotated[
    str,
    Query(
        alias="name",
        min_length=1,
        max_length=LONGEST_FILE_NAME,
        description="the file name; its suffix determines the format",
        examples=["contract.pdf"],
    ),
]
UPLOAD: dict[str, object] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class ReadingTurns:
    """The files that are read and those that wait; `Room` bounds those of a key and a tenant."""

    def __init__(self, *, at_once: int = READ_AT_ONCE, most_waiting: int = MOST_WAITING) -> None:
        self._at_once = at_once
        self._room = Room(most=most_waiting, most_of_visitor=most_waiting)
        self._reading: set[tuple[str, str]] = set()
        self._waiting: OrderedDict[str, _Keys] = OrderedDict()

    @asynccontextmanager
    async def take(self, tenant: str, key: str) -> AsyncIterator[None]:
        """Wait for a turn, which lasts as long as the context; raises `BusyError`."""
        if not self._room.has_place(tenant, Party(key)):
            raise BusyError(
                "too many documents are waiting to be read: try again in a moment", RETRY_SECONDS
            )
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._room.place(tenant, Party(key)):
            keys = self._waiting.setdefault(tenant, OrderedDict())
            keys.setdefault(key, deque()).append(mine)
            self._begin_next()
            try:
                await mine
                yield
            finally:
                self._leave(tenant, key, mine)
                self._begin_next()

    def _begin_next(self) -> None:
        while len(self._reading) < self._at_once:
            found = self._find_next()
            if found is None:
                return
            tenant, key = found
            first = self._waiting[tenant][key].popleft()
            if not first.cancelled():
                self._reading.add(found)
                first.set_result(None)
            self._move_to_end(tenant, key)
            self._forget_empty(tenant, key)

    def _find_next(self) -> tuple[str, str] | None:
        waiting = ((tenant, key) for tenant, keys in self._waiting.items() for key in keys)
        return next((one for one in waiting if one not in self._reading), None)

    def _leave(self, tenant: str, key: str, mine: asyncio.Future[None]) -> None:
        if mine.done() and not mine.cancelled():
            self._reading.discard((tenant, key))
            # Once more: others may have come while this file was read.
            self._move_to_end(tenant, key)
            return
        # Cancelled: it waits still, unless its turn was passed on meanwhile.
        keys = self._waiting.get(tenant)
        if keys is not None and mine in keys.get(key, ()):
            keys[key].remove(mine)
            self._forget_empty(tenant, key)

    def _move_to_end(self, tenant: str, key: str) -> None:
        if tenant in self._waiting:
            self._waiting.move_to_end(tenant)
            if key in self._waiting[tenant]:
                self._waiting[tenant].move_to_end(key)

    def _forget_empty(self, tenant: str, key: str) -> None:
        keys = self._waiting[tenant]
        if not keys[key]:
            del keys[key]
        if not keys:
            del self._waiting[tenant]


class ConversationDocument(BaseModel, frozen=True):
    """A document of a conversation, or one of the index, without its text."""

    id: str = Field(examples=["attached:0f3c1c8f3d6a4b7e9d2a5c6b7e8f9a0b"])
    title: str
    name: str = Field(description="its file name", examples=["contract.pdf"])
    language: str = Field(description="ISO 639-1")
    chunks: int = Field(description="number of passages")


class ConversationDocuments(BaseModel):
    """The documents of a conversation, by name."""

    documents: list[ConversationDocument]


class AttachmentRoutes:
    """Stores documents that belong to one conversation only."""

    def __init__(self, channel: HttpChannel, attachments: Attachments) -> None:
        self._channel = channel
        self._attachments = attachments

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(tags=["conversations"])
        base = "/v1/conversations/{conversation_id}/documents"
        ask = Depends(require_conversation(self._channel, Scope.ASK))
        read = Depends(require_conversation(self._channel, Scope.READ))

        @router.post(
            base, status_code=201, openapi_extra=UPLOAD, summary="Add a document to a conversation"
        )
        async def give_document(
            access: Annotated[ConversationAccess, ask], request: Request, name: FileName
        ) -> ConversationDocument:
            """Store the file of the body with the conversation, and return its id. The document is
            in no index; it is erased with the conversation."""
            refuse_visitors(access)
            question, groups = access.question(), access.caller.groups
            data = await read_upload(request)
            document = await self._attachments.attach(
                question, name, data, groups, access.caller.key_id
            )
            return show_document(document)

        @router.get(base, summary="List the documents of a conversation")
        async def list_documents(
            access: Annotated[ConversationAccess, read],
        ) -> ConversationDocuments:
            """Return the documents that were given to the conversation."""
            found = await self._attachments.list_attached(access.question(), access.caller.groups)
            return ConversationDocuments(documents=[show_document(one) for one in found])

        return router


def refuse_visitors(access: ConversationAccess) -> None:
    """Raise `ForbiddenError` for a public key: every reader of a page would have it."""
    if access.caller.public:
        raise visitors_refused()


async def read_upload(request: Request) -> bytes:
    """Return the bytes of a file that is the body; raises `InvalidRequestError` for a form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.startswith("multipart/") or kind == "application/x-www-form-urlencoded":
        raise InvalidRequestError(
            "expected the bytes of the file as the body, found a form: send it with "
            "--data-binary @FILE and -H 'Content-Type: application/octet-stream'",
            code="unsupported_body",
            status=415,
        )
    return await request.body()


def show_document(document: DocumentEntry) -> ConversationDocument:
    """Return the public form of a document."""
    return ConversationDocument(
        id=document.id,
        title=document.title,
        name=document.name,
        language=document.language,
        chunks=document.chunks,
    )
