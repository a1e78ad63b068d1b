"""The routes for conversation documents: attach one, and list them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field

from gateway.api_keys import Scope
from gateway.http.context import (
    ConversationAccess,
    HttpChannel,
    require_conversation,
)
from gateway.http.errors import InvalidRequestError
from gateway.http.middleware import visitors_refused
from gateway.http.review_documents import StoredAttachments
from gateway.review_ports import DocumentEntry

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


class ConversationDocument(BaseModel, frozen=True):
    """A document of a conversation, or of the index, without its text."""

    id: str = Field(examples=["attached:0f3c1c8f3d6a4b7e9d2a5c6b7e8f9a0b"])
    title: str
    name: str = Field(description="name of the file", examples=["contract.pdf"])
    language: str = Field(description="ISO 639-1")
    chunks: int = Field(description="number of passages")


class ConversationDocuments(BaseModel):
    """The documents of a conversation, by name."""

    documents: list[ConversationDocument]


class AttachmentRoutes:
    """Stores documents that belong to one conversation only."""

    def __init__(self, channel: HttpChannel, attachments: StoredAttachments) -> None:
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
            """Store the file in the request body with the conversation, and return its id. The
            document is not indexed, and it is erased with the conversation.
            """
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
            """Return the documents that were attached to the conversation."""
            entries = await self._attachments.list_attached(access.question(), access.caller.groups)
            return ConversationDocuments(documents=[show_document(entry) for entry in entries])

        return router


def refuse_visitors(access: ConversationAccess) -> None:
    """Raise `ForbiddenError` for a public key, because every reader of a web page has it."""
    if access.caller.public:
        raise visitors_refused()


async def read_upload(request: Request) -> bytes:
    """Return the bytes of the file in the request body; raises `InvalidRequestError` for a form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.startswith("multipart/") or kind == "application/x-www-form-urlencoded":
        raise InvalidRequestError(
            "the body is a form; send the bytes of the file as the body, with "
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
